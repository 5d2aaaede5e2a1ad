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
import { canonicalTime, timeOfDate } from '../times.ts';
import { checkFields } from '../users/user.ts';

/** Relations of a role and the classes of their members (protocol/roles.md#membership). */
const roleRelations = { users: '_User', roles: '_Role' } as const;
export type RelationName = keyof typeof roleRelations;

/** Client-writable members of a role, without its relations. */
export interface RoleDraft {
  /** Name in ACLs; it never changes. */
  name: string;
  /** ACL of the role itself. */
  acl: Acl;
  /** Custom members. */
  fields: JsonObject;
}

/**
 * Role of an app, as its row stores it (protocol/roles.md#role-fields). Its members are rows of
 * other tables.
 */
export interface Role extends RoleDraft {
  /** Internal id within the app; never revealed. */
  id: number;
  objectId: string;
  createdAt: Date;
  updatedAt: Date;
}

/**
 * Returns a role as replies show it; the ACL with `returnACL=true` only
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

/** Change of a relation of a role. The steps of a body apply in order. */
export interface MemberStep {
  relation: RelationName;
  isAdded: boolean;
  /** Public ids, each once. */
  objectIds: string[];
}

/** Limit of members per operation (protocol/objects.md#relation-operations). */
const maxMembersPerOperation = 1000;
/** Limit of operations per `Batch`. */
const maxOperationsPerBatch = 10;

const isRelationName = (name: string): name is RelationName => Object.hasOwn(roleRelations, name);

/**
 * Reads `AddRelation`, `RemoveRelation`, or a `Batch` of them
 * (protocol/objects.md#relation-operations). A relation in the form of replies changes nothing:
 * SDKs send it back. Throws 111 for any other value and for pointers to another class, 106 for
 * malformed pointers, 128 for too many.
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
  /** `objectId`, `createdAt`, `updatedAt` as sent: a body may repeat but not change them. */
  readOnly: ReadonlyMap<string, Json>;
  /** Names of the top-level members that the body changes. */
  touched: ReadonlySet<string>;
}

const readOnlyNames = new Set(['objectId', 'createdAt', 'updatedAt']);
const maxMembersSent = 320;
/** Limit of a role with its ACL, without its members, as JSON in UTF-8. */
const maxRoleBytes = 256 * 1024;

/**
 * Default ACL of the master key. It denies writing, since any caller that may change a role could
 * join it.
 */
export const defaultRoleAcl: Acl = { '*': { read: true } };

/**
 * Reads a body. Ignores private members (`_…`, protocol/objects.md#private-members). Throws 105 for
 * an invalid name, 111, 106 and 128 for relations, 116 for too many members, 123 for the ACL, 1 for
 * a deleted ACL, 139 for the role's name. Values of custom members are checked when they are
 * applied.
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

/**
 * Returns a new role. Throws 139 without a name, 1 without an ACL unless for the master key, and as
 * `changedRole`.
 */
export function newRole(changes: RoleChanges, { isMaster }: { isMaster: boolean }): RoleDraft {
  const { name, acl = isMaster ? defaultRoleAcl : undefined } = changes;
  if (acl === undefined) throw aclRequired();
  return changedRole({ name: readRoleName(name), acl, fields: {} }, changes);
}

/**
 * Returns the changed role. Throws 117 for a changed name or read-only member, 105, 106, 111 and
 * 116 for custom members.
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
    typeof value === 'string'
      ? canonicalTime(value)
      : isJsonObject(value)
        ? timeOfDate(value)
        : undefined;
  const stored = name === 'createdAt' ? current.createdAt : current.updatedAt;
  return time === stored.toISOString();
}
