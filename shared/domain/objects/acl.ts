import { refuse } from '../errors/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../json.ts';

/**
 * Access control list (protocol/users.md#access-control-lists): permissions by user id,
 * `role:<name>` or `*`.
 */
export type Acl = Record<string, Partial<Record<Permission, true>>>;
export type Permission = 'read' | 'write';

/** User in an ACL check. */
export interface AclUser {
  objectId: string;
  /** Names of the user's roles, including inherited roles. */
  roles: readonly string[];
}

/**
 * Role names that the SDKs accept: letters, digits, `_`, `-` and blanks. The public documentation
 * names only the first three (protocol/roles.md#role-fields).
 */
export const roleName = /^[A-Za-z0-9_ -]{1,128}$/;
/** Subject of an ACL entry: everybody, a user id, or a role. */
export const aclSubject = /^(\*|[A-Za-z0-9_-]{1,64}|role:[A-Za-z0-9_ -]{1,128})$/;
const maxSubjects = 1000;

/** ACL of an object without an ACL, as LeanCloud returns it. */
export const publicAcl: Acl = { '*': { read: true, write: true } };

/**
 * Parses an ACL. A permission may be `false`, which SDKs send for a removed permission; it is not
 * stored. Throws error 123 if the ACL is not a dictionary of subjects with boolean permissions.
 */
export function readAcl(value: unknown): Acl {
  if (!isJsonObject(value)) throw refuse('invalidAcl');
  const entries = Object.entries(value);
  if (entries.length > maxSubjects) throw refuse('invalidAcl');
  return Object.fromEntries(
    entries.map(([name, permissions]) => [name, readPermissions(name, permissions)]),
  );
}

function readPermissions(name: string, value: Json): Partial<Record<Permission, true>> {
  const isSound =
    aclSubject.test(name) &&
    isJsonObject(value) &&
    Object.entries(value).every(
      ([word, is]) => (word === 'read' || word === 'write') && typeof is === 'boolean',
    );
  if (!isSound) throw refuse('invalidAcl');
  return { ...(value.read ? { read: true } : {}), ...(value.write ? { write: true } : {}) };
}

/** Returns a stored ACL, reduced to valid permissions. */
export function validAcl(stored: JsonObject): Acl {
  return Object.fromEntries(
    Object.entries(stored).map(([name, value]) => {
      const { read, write } = isJsonObject(value) ? value : {};
      return [name, { ...(read === true ? { read } : {}), ...(write === true ? { write } : {}) }];
    }),
  );
}

/** Returns the ACL subjects of a user, or of a caller without a user. */
export const subjectsOf = (user: AclUser | undefined): string[] =>
  user ? [user.objectId, ...user.roles.map((name) => `role:${name}`), '*'] : ['*'];

/**
 * True if a user, or a caller without a user, has a permission. An object without an ACL is public.
 */
export function mayUser(
  acl: Acl | null,
  permission: Permission,
  user: AclUser | undefined,
): boolean {
  if (acl === null) return true;
  return subjectsOf(user).some(
    (name) => Object.hasOwn(acl, name) && acl[name]?.[permission] === true,
  );
}
