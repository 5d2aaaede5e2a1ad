import { refuse } from '../errors/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../json.ts';
import { type Acl, readAcl, roleName } from '../objects/acl.ts';
import { memberPath } from '../objects/member-path.ts';
import { applyWrites, isDeletion, type Write } from '../objects/operations.ts';
import { canonicalTime, timeOfDate } from '../times.ts';
import { checkFields } from '../users/members.ts';
import { isRelationName, type MemberStep, readMemberSteps } from './members.ts';
import type { Role, RoleDraft } from './role.ts';

/** Changes in a body of POST or PUT. */
export interface RoleChanges {
  name?: string;
  acl?: Acl;
  members: MemberStep[];
  /** Writes of custom members. */
  writes: Write[];
  /** `objectId`, `createdAt`, `updatedAt` as sent: a body may repeat but not change them. */
  readOnly: ReadonlyMap<string, Json>;
  /** Names of the top-level members that the body changes. */
  touched: ReadonlySet<string>;
}

const readOnlyNames = new Set(['objectId', 'createdAt', 'updatedAt']);
const maxMembersSent = 320;
/** Limit of a role with its ACL, without its members, as JSON in UTF-8. */
const maxRoleBytes = 256 * 1024;

/** Default ACL of the master key. It denies writing, since any caller that may change a role could join it. */
export const defaultRoleAcl: Acl = { '*': { read: true } };

/**
 * Reads a body. Ignores private members (`_…`, protocol/objects.md#private-members). Throws 105 for an invalid name, 111,
 * 106 and 128 for relations, 116 for too many members, 123 for the ACL, 1 for a deleted ACL, 139 for the role's name.
 * Values of custom members are checked when they are applied.
 */
export function readRoleChanges(body: JsonObject): RoleChanges {
  const entries = Object.entries(body).filter(([name, value]) => !isHint(name, value));
  if (entries.length > maxMembersSent)
    throw refuse('tooLarge', `A call writes at most ${maxMembersSent} members.`);
  const readOnly = new Map<string, Json>();
  const touched = new Set<string>();
  const changes: RoleChanges = { members: [], writes: [], readOnly, touched };
  for (const [name, value] of entries) {
    const path = memberPath(name);
    const [first] = path;
    if (readOnlyNames.has(first)) readOnly.set(first, value);
    else {
      touched.add(first);
      if (!readBuiltIn(changes, path, value)) changes.writes.push({ path, value });
    }
  }
  return changes;
}

const isHint = (name: string, value: Json): boolean =>
  name.startsWith('_') || (name === 'className' && value === '_Role');

/** Reads a built-in member, which is written as a whole. Returns false for a custom one. */
function readBuiltIn(changes: RoleChanges, [first, ...inner]: string[], value: Json): boolean {
  if (first === 'name') changes.name = readRoleName(value);
  else if (first === 'ACL') changes.acl = readRoleAcl(value);
  else if (first !== undefined && isRelationName(first))
    changes.members.push(...readMemberSteps(first, value));
  else return false;
  if (inner.length > 0) throw refuse('invalidKeyName', `${first} has no members.`);
  return true;
}

/** Reads the name of a role. Throws 139. */
export function readRoleName(value: Json | undefined): string {
  if (typeof value === 'string' && roleName.test(value)) return value;
  throw refuse(
    'invalidRoleName',
    "Role's name is invalid: it has 1 to 128 letters, digits, '_', '-' and blanks.",
  );
}

function readRoleAcl(value: Json): Acl {
  if (value === null || isDeletion(value)) throw aclRequired();
  return readAcl(value);
}

/** Returns the refusal with the text of the public service (protocol/errors.md#texts-of-code-1). */
const aclRequired = () => refuse('invalidParameter', 'Role ACL is required.');

/** Returns a new role. Throws 139 without a name, 1 without an ACL unless for the master key, and as `changedRole`. */
export function newRole(changes: RoleChanges, { isMaster }: { isMaster: boolean }): RoleDraft {
  const { name, acl = isMaster ? defaultRoleAcl : undefined } = changes;
  if (acl === undefined) throw aclRequired();
  return changedRole({ name: readRoleName(name), acl, fields: {} }, changes);
}

/** Returns the changed role. Throws 117 for a changed name or read-only member, 105, 106, 111 and 116 for custom members. */
export function changedRole(current: Role | RoleDraft, changes: RoleChanges): RoleDraft {
  const { name } = current;
  if (changes.name !== undefined && changes.name !== name) throw readOnlyKey('name');
  for (const [key, value] of changes.readOnly) if (!isRepeated(key, value, current)) throw readOnlyKey(key);
  const members = new Map(Object.entries(current.fields));
  applyWrites(members, changes.writes);
  const draft = { name, acl: changes.acl ?? current.acl, fields: checkFields(members, 'A role') };
  requireRoleSize(draft);
  return draft;
}

/** Throws 116 for a role that is too large. */
export function requireRoleSize(draft: RoleDraft): void {
  if (Buffer.byteLength(JSON.stringify(draft)) > maxRoleBytes)
    throw refuse('tooLarge', `A role is at most ${maxRoleBytes} bytes.`);
}

const readOnlyKey = (name: string) =>
  refuse('readOnlyKey', `The key is read only. The column is: '${name}'.`);

/** Tells whether a read-only member is unchanged: clients send members back as shown. */
function isRepeated(name: string, value: Json, current: Role | RoleDraft): boolean {
  if (!('objectId' in current)) return false;
  if (name === 'objectId') return value === current.objectId;
  const time =
    typeof value === 'string' ? canonicalTime(value) : isJsonObject(value) ? timeOfDate(value) : undefined;
  const stored = name === 'createdAt' ? current.createdAt : current.updatedAt;
  return time === stored.toISOString();
}
