import { canonicalTime, timeOfDate } from '../client-values.ts';
import { refuse } from '../errors/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../json.ts';
import { type Acl, readAcl, roleName } from '../objects/acl.ts';
import {
  applyWrites,
  isDeletion,
  isOperation,
  memberPath,
  type Write,
} from '../objects/operations.ts';
import { canonicalValue } from '../objects/typed-values.ts';
import { checkFields } from '../users/user.ts';

/** Relations of a role and the class of their members (protocol/roles.md#membership). */
const roleRelations = { users: '_User', roles: '_Role' } as const;
export type RelationName = keyof typeof roleRelations;

/** Members of a role that clients write, without its relations. */
export interface RoleDraft {
  /** Name in ACLs. It never changes. */
  name: string;
  /** ACL of the role itself. */
  acl: Acl;
  /** Custom members. */
  fields: JsonObject;
}

/**
 * Role of an app as stored in its row (protocol/roles.md#role-fields). Members of the role are rows
 * of other tables.
 */
export interface Role extends RoleDraft {
  /** Internal id in the app. Never part of a reply. */
  id: number;
  objectId: string;
  createdAt: Date;
  updatedAt: Date;
}

/**
 * Returns a role for a reply. The ACL is only included with `returnACL=true`
 * (protocol/queries.md#query-parameters).
 */
export function roleDocument(role: Role, { hasAcl }: { hasAcl: boolean }): JsonObject {
  return Object.fromEntries<Json>([
    ...Object.entries(role.fields),
    ['name', role.name],
    ...Object.entries(roleRelations).map(([name, className]): [string, Json] => [
      name,
      { __type: 'Relation', className },
    ]),
    ['objectId', role.objectId],
    ['createdAt', role.createdAt.toISOString()],
    ['updatedAt', role.updatedAt.toISOString()],
    ...(hasAcl ? [['ACL', role.acl] as [string, Json]] : []),
  ]);
}

/** Change of a role's relation. The steps of a body are applied in order. */
export interface MemberStep {
  relation: RelationName;
  isAdded: boolean;
  /** Public ids without duplicates. */
  objectIds: string[];
}

/** Maximum number of members per operation (protocol/objects.md#relation-operations). */
const maxMembersPerOperation = 1000;
/** Maximum number of operations per `Batch`. */
const maxOperationsPerBatch = 10;

const isRelationName = (name: string): name is RelationName => Object.hasOwn(roleRelations, name);

/**
 * Parses `AddRelation`, `RemoveRelation`, or a `Batch` of them
 * (protocol/objects.md#relation-operations). SDKs also send back a relation as they received it,
 * which changes nothing. Throws error 111 for other values and for pointers to another class, 106
 * for malformed pointers, and 128 for too many members or operations.
 */
function readMemberSteps(relation: RelationName, value: Json): MemberStep[] {
  if (!isOperation(value)) {
    if (isJsonObject(value) && value.__type === 'Relation') {
      const { className = null } = value;
      if (className === null || className === roleRelations[relation]) return [];
    }
    throw wrongType(relation);
  }
  if (value.__op !== 'Batch') return [readStep(relation, value)];
  if (!Array.isArray(value.ops)) throw wrongType(relation);
  if (value.ops.length > maxOperationsPerBatch)
    throw refuse(
      'invalidRelation',
      `A Batch holds at most ${maxOperationsPerBatch} operations of a relation.`,
    );
  return value.ops.map((operation) => readStep(relation, operation));
}

function readStep(relation: RelationName, operation: Json): MemberStep {
  const { __op, objects } = isJsonObject(operation) ? operation : {};
  if ((__op !== 'AddRelation' && __op !== 'RemoveRelation') || !Array.isArray(objects))
    throw wrongType(relation);
  if (objects.length > maxMembersPerOperation)
    throw refuse(
      'invalidRelation',
      `An operation takes at most ${maxMembersPerOperation} members.`,
    );
  const objectIds = new Set(objects.map((object) => idIn(relation, object)));
  return { relation, isAdded: __op === 'AddRelation', objectIds: [...objectIds] };
}

function idIn(relation: RelationName, object: Json): string {
  const pointer = canonicalValue(object);
  if (!isJsonObject(pointer) || pointer.__type !== 'Pointer') throw wrongType(relation);
  if (pointer.className !== roleRelations[relation] || typeof pointer.objectId !== 'string')
    throw wrongType(relation);
  return pointer.objectId;
}

const wrongType = (relation: RelationName) =>
  refuse(
    'incorrectType',
    `${relation} is a relation: it takes AddRelation and RemoveRelation of pointers to ${roleRelations[relation]}.`,
  );

/** Changes in a body of POST or PUT. */
export interface RoleChanges {
  name?: string;
  acl?: Acl;
  members: MemberStep[];
  /** Writes of custom members. */
  writes: Write[];
  /** `objectId`, `createdAt` and `updatedAt` as sent. A body may repeat but not change them. */
  readOnly: ReadonlyMap<string, Json>;
  /** Names of the top-level members that the body changes. */
  touched: ReadonlySet<string>;
}

const readOnlyNames = new Set(['objectId', 'createdAt', 'updatedAt']);
const maxMembersSent = 320;
/** Maximum size of a role with its ACL, as JSON in UTF-8. Members of the role do not count. */
const maxRoleBytes = 256 * 1024;

/**
 * ACL of roles that the master key creates without one. It denies writing, because anyone who may
 * change a role could join it.
 */
export const defaultRoleAcl: Acl = { '*': { read: true } };

/**
 * Parses a body. Ignores private members (`_…`, protocol/objects.md#private-members). Throws error
 * 105 for an invalid name, 111, 106 and 128 for relations, 116 for too many members, 123 for an
 * invalid ACL, 1 for a deleted ACL, and 139 for an invalid role name. Values of custom members are
 * checked when they are applied.
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

/**
 * Parses a built-in member, which is always written as a whole. Returns false if the member is a
 * custom member.
 */
function readBuiltIn(changes: RoleChanges, [first, ...inner]: string[], value: Json): boolean {
  if (first === 'name') changes.name = readRoleName(value);
  else if (first === 'ACL') changes.acl = readRoleAcl(value);
  else if (first !== undefined && isRelationName(first))
    changes.members.push(...readMemberSteps(first, value));
  else return false;
  if (inner.length > 0) throw refuse('invalidKeyName', `${first} has no members.`);
  return true;
}

/** Parses the name of a role. Throws error 139 if it is invalid. */
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

/** Returns the error with the text of LeanCloud (protocol/errors.md#texts-of-code-1). */
const aclRequired = () => refuse('invalidParameter', 'Role ACL is required.');

/**
 * Returns a new role. Throws error 139 if it has no name, 1 if it has no ACL and the caller has no
 * master key, and the errors of `changedRole`.
 */
export function newRole(changes: RoleChanges, { isMaster }: { isMaster: boolean }): RoleDraft {
  const { name, acl = isMaster ? defaultRoleAcl : undefined } = changes;
  if (acl === undefined) throw aclRequired();
  return changedRole({ name: readRoleName(name), acl, fields: {} }, changes);
}

/**
 * Returns the changed role. Throws error 117 if the name or a read-only member changes, and 105,
 * 106, 111 and 116 for custom members.
 */
export function changedRole(current: Role | RoleDraft, changes: RoleChanges): RoleDraft {
  const { name } = current;
  if (changes.name !== undefined && changes.name !== name) throw readOnlyKey('name');
  for (const [key, value] of changes.readOnly)
    if (!isRepeated(key, value, current)) throw readOnlyKey(key);
  const members = new Map(Object.entries(current.fields));
  applyWrites(members, changes.writes);
  const draft = { name, acl: changes.acl ?? current.acl, fields: checkFields(members, 'A role') };
  requireRoleSize(draft);
  return draft;
}

/** Throws error 116 if a role is too large. */
export function requireRoleSize(draft: RoleDraft): void {
  if (Buffer.byteLength(JSON.stringify(draft)) > maxRoleBytes)
    throw refuse('tooLarge', `A role is at most ${maxRoleBytes} bytes.`);
}

const readOnlyKey = (name: string) =>
  refuse('readOnlyKey', `The key is read only. The column is: '${name}'.`);

/** True if a read-only member is unchanged. Clients send back members as they received them. */
function isRepeated(name: string, value: Json, current: Role | RoleDraft): boolean {
  if (!('objectId' in current)) return false;
  if (name === 'objectId') return value === current.objectId;
  const time =
    typeof value === 'string'
      ? canonicalTime(value)
      : isJsonObject(value)
        ? timeOfDate(value)
        : undefined;
  const stored = name === 'createdAt' ? current.createdAt : current.updatedAt;
  return time === stored.toISOString();
}
