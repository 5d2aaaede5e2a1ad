import { refuse } from '../../domain/errors/errors.ts';
import { isJsonObject, type Json } from '../../domain/json.ts';
import { canonicalValue } from '../../domain/objects/typed-values.ts';
import { type ClassSchema, classes, type RelationColumn } from '../schema.ts';

/** Operand of `$relatedTo`: an object and one of its relations. */
export interface RelatedOperand {
  owner: ClassSchema;
  objectId: string;
  relation: RelationColumn;
}

/**
 * Parses `{"object":<pointer>,"key":"users"}` (protocol/queries.md#relations). Throws 102 for
 * another shape, for a key that is not a relation and for a relation with members of another class
 * than `asked`, 106 for a malformed pointer.
 */
export function parseRelatedOperand(operand: Json, asked: ClassSchema): RelatedOperand {
  const { object, key } = isJsonObject(operand) ? operand : {};
  const pointer =
    isJsonObject(object) && object.__type === 'Pointer' ? canonicalValue(object) : null;
  if (!isJsonObject(pointer) || typeof key !== 'string')
    throw refuse('invalidQuery', '$relatedTo takes an object and a key.');
  const owner = typeof pointer.className === 'string' ? classes.get(pointer.className) : undefined;
  const relation = owner && findRelation(owner, key);
  if (!relation || typeof pointer.objectId !== 'string')
    throw refuse('invalidQuery', '$relatedTo: there is no such relation.');
  if (relation.className !== asked.name)
    throw refuse('invalidQuery', `$relatedTo: the members are of the class ${relation.className}.`);
  return { owner, objectId: pointer.objectId, relation };
}

/** Returns the relation of a class under a key. */
export function findRelation(cls: ClassSchema, key: string): RelationColumn | undefined {
  const column = cls.columns.get(key);
  return column?.type === 'relation' ? column : undefined;
}
