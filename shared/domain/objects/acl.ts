import { refuse } from '../errors/errors.ts';
import { isJsonObject, type Json } from '../json.ts';

/** Who may read and write an object (protocol/users.md#access-control-lists): user ids, `role:<name>` or `*`, and what they may. */
export type Acl = Record<string, Partial<Record<Permission, true>>>;
export type Permission = 'read' | 'write';

/** A user as ACLs see it. */
export interface AclUser {
  objectId: string;
  /** Names of its roles, those included that it has through other roles. */
  roles: readonly string[];
}

/** Names of roles: what the SDKs let through (letters, digits, `_`, `-`, blanks). The documentation names the first three (protocol/roles.md#role-fields). */
export const roleName = /^[A-Za-z0-9_ -]{1,128}$/;
const subject = /^(\*|[A-Za-z0-9_-]{1,64}|role:[A-Za-z0-9_ -]{1,128})$/;
const maxSubjects = 1000;

/** Throws 123 for anything but a dictionary of subjects, each with permissions that are `true`. */
export function readAcl(value: unknown): Acl {
  if (!isJsonObject(value)) throw refuse('invalidAcl');
  const entries = Object.entries(value);
  if (entries.length > maxSubjects) throw refuse('invalidAcl');
  return Object.fromEntries(entries.map(([name, permissions]) => [name, readPermissions(name, permissions)]));
}

function readPermissions(name: string, value: Json): Partial<Record<Permission, true>> {
  const isSound =
    subject.test(name) &&
    isJsonObject(value) &&
    Object.entries(value).every(([word, is]) => (word === 'read' || word === 'write') && is === true);
  if (!isSound) throw refuse('invalidAcl');
  return { ...(value.read ? { read: true } : {}), ...(value.write ? { write: true } : {}) };
}

/** The entries of an ACL that count for a user, or for a caller without one. */
export const subjectsOf = (user: AclUser | undefined): string[] =>
  user ? [user.objectId, ...user.roles.map((name) => `role:${name}`), '*'] : ['*'];

/** Whether a user, or anybody when there is none, has a permission. An object without an ACL is everybody's. */
export function mayUser(acl: Acl | null, permission: Permission, user: AclUser | undefined): boolean {
  if (acl === null) return true;
  return subjectsOf(user).some((name) => Object.hasOwn(acl, name) && acl[name]?.[permission] === true);
}
