import { refuse } from './errors.ts';
import { isJsonObject, type Json } from './json.ts';

/** Who may read and write an object (accounts.md "Access control list"): user ids or `*`, and what they may. */
export type Acl = Record<string, Partial<Record<Permission, true>>>;
export type Permission = 'read' | 'write';

const subject = /^(\*|(role:)?[A-Za-z0-9_-]{1,64})$/;
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

/** Whether a user, or anybody when there is none, has a permission. An object without an ACL is everybody's. */
export function mayUser(acl: Acl | null, permission: Permission, userId: string | undefined): boolean {
  if (acl === null) return true;
  const has = (name: string) => Object.hasOwn(acl, name) && acl[name]?.[permission] === true;
  return has('*') || (userId !== undefined && has(userId));
}
