import { refuse } from '../../domain/errors/errors.ts';
import { isJsonObject, type Json } from '../../domain/json.ts';
import { canonicalValue } from '../../domain/objects/typed-values.ts';
import { classes } from '../schema/classes.ts';
import type { ClassSchema, RelationColumn } from '../schema/fields.ts';

/** Whose members a `$relatedTo` asks for. */
export interface RelatedOperand {
  owner: ClassSchema;
  objectId: string;
  relation: RelationColumn;
}

/**
 * Reads `{"object":<pointer>,"key":"users"}` (protocol/queries.md#relations). Throws 102 for another shape, for what is no relation and
 * where the members are of another class than the one that is asked, 106 for a malformed pointer.
 */
export function parseRelatedOperand(operand: Json, asked: ClassSchema): RelatedOperand {
  const { object, key } = isJsonObject(operand) ? operand : {};
  const pointer = isJsonObject(object) && object.__type === 'Pointer' ? canonicalValue(object) : null;
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

/** The relation of a class that a key names. */
export function findRelation(cls: ClassSchema, key: string): RelationColumn | undefined {
  const column = cls.columns.get(key);
  return column?.type === 'relation' ? column : undefined;
}
