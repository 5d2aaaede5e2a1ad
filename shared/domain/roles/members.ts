import { refuse } from '../errors/errors.ts';
import { isJsonObject, type Json } from '../json.ts';
import { isOperation } from '../objects/operations.ts';
import { canonicalValue } from '../objects/typed-values.ts';
import { type RelationName, roleRelations } from './role.ts';

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

export const isRelationName = (name: string): name is RelationName => Object.hasOwn(roleRelations, name);

/**
 * Reads `AddRelation`, `RemoveRelation`, or a `Batch` of them (protocol/objects.md#relation-operations). A relation in the
 * form of replies changes nothing: SDKs send it back. Throws 111 for any other value and for pointers to another class,
 * 106 for malformed pointers, 128 for too many.
 */
export function readMemberSteps(relation: RelationName, value: Json): MemberStep[] {
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
    throw refuse('invalidRelation', `An operation takes at most ${maxMembersPerOperation} members.`);
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
