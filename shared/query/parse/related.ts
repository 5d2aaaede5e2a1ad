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
 * Parses `{"object":<pointer>,"key":"users"}` (protocol/queries.md#relations). Throws error 102 if
 * the shape is wrong, if the key is not a relation, or if the members of the relation are not of
 * `queriedClass`. Throws error 106 if the pointer is malformed.
 */
export function parseRelatedOperand(operand: Json, queriedClass: ClassSchema): RelatedOperand {
  const { object, key } = isJsonObject(operand) ? operand : {};
  const pointer =
    isJsonObject(object) && object.__type === 'Pointer' ? canonicalValue(object) : null;
  if (!isJsonObject(pointer) || typeof key !== 'string')
    throw refuse('invalidQuery', '$relatedTo takes an object and a key.');
  const owner = typeof pointer.className === 'string' ? classes.get(pointer.className) : undefined;
  const relation = owner && findRelation(owner, key);
  if (!relation || typeof pointer.objectId !== 'string')
    throw refuse('invalidQuery', '$relatedTo: there is no such relation.');
  if (relation.className !== queriedClass.name)
    throw refuse('invalidQuery', `$relatedTo: the members are of the class ${relation.className}.`);
  return { owner, objectId: pointer.objectId, relation };
}

/** Returns the relation with this key, if the class has it. */
export function findRelation(cls: ClassSchema, key: string): RelationColumn | undefined {
  const column = cls.columns.get(key);
  return column?.type === 'relation' ? column : undefined;
}
