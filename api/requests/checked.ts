import { z } from 'zod';
import type { ErrorName } from '../../shared/domain/errors/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import { jsonValue } from '../../shared/domain/json-schema.ts';

/**
 * What a schema of a request says besides its form: the refusals of its members, and the schema
 * that a service parses a part by. A schema of a route is both its check and its description.
 */

/**
 * Refusals of a member in place of 111: `missing` where it is absent, null or empty. `isNamed`: the
 * text of `invalid` is the name of the member and the rule that it breaks, not that of the code.
 */
export interface MemberRefusals {
  missing?: ErrorName;
  invalid?: ErrorName;
  isNamed?: boolean;
}

const refusals = z.registry<MemberRefusals>();

/** Names the refusals of a member, or of all members of an object without refusals of their own. */
export function refusedAs<S extends z.ZodType>(schema: S, names: MemberRefusals): S {
  refusals.add(schema, names);
  return schema;
}

/** Returns the refusal of a fault at this path of a value; undefined for the default. */
export function refusalAt(
  schema: z.ZodType,
  path: readonly PropertyKey[],
  value: unknown,
): { name: ErrorName; isNamed: boolean } | undefined {
  let { missing, invalid, isNamed = false } = refusals.get(schema) ?? {};
  let at: unknown = schema;
  let found = value;
  for (const key of path) {
    at = memberOf(at, key);
    if (at instanceof z.ZodType)
      ({ missing, invalid, isNamed = false } = namesOf(at) ?? { missing, invalid, isNamed });
    found = isJsonObject(found) ? found[String(key)] : undefined;
  }
  if (missing && (found === undefined || found === null || found === ''))
    return { name: missing, isNamed: false };
  return invalid && { name: invalid, isNamed };
}

/** A member that may be absent or null: undefined then. */
export const optional = <S extends z.ZodType>(schema: S) =>
  schema.nullish().transform((value) => value ?? undefined);

/** Body with these members and any others, for a service that takes JSON. */
export const openBody = (shape: z.ZodRawShape): z.ZodType<JsonObject> =>
  z.looseObject(shape).pipe(z.custom<JsonObject>(isJsonObject));

/** Returns the schema without the parts that allow its absence or convert its value. */
function unwrapped(schema: unknown): unknown {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) return unwrapped(schema.unwrap());
  if (schema instanceof z.ZodPipe)
    return unwrapped(schema.in instanceof z.ZodTransform ? schema.out : schema.in);
  return schema;
}

function memberOf(schema: unknown, key: PropertyKey): unknown {
  const inner = unwrapped(schema);
  if (inner instanceof z.ZodObject) return inner.shape[String(key)];
  if (inner instanceof z.ZodRecord) return inner.valueType;
  if (!(inner instanceof z.ZodUnion)) return undefined;
  return inner.options.map((option) => memberOf(option, key)).find((member) => member !== undefined);
}

function namesOf(schema: z.ZodType): MemberRefusals | undefined {
  const inner = unwrapped(schema);
  return refusals.get(schema) ?? (inner instanceof z.ZodType ? refusals.get(inner) : undefined);
}

/** Schemas by which services parse. */
const described = new WeakMap<object, z.ZodType>();

/**
 * Schema of a body that a service parses by `schema` itself, because a fault is more than a refusal
 * of the call. The route requires a JSON object only.
 */
export const parsedByService = (schema: z.ZodType): z.ZodType<JsonObject> =>
  describedBy(z.custom<JsonObject>(isJsonObject), schema);

/** As `parsedByService`, of a part of a body: the route takes any JSON. */
export const partParsedByService = (schema: z.ZodType): z.ZodType<Json> => describedBy(jsonValue, schema);

function describedBy<T>(checked: z.ZodType<T>, schema: z.ZodType): z.ZodType<T> {
  const own = checked.clone();
  described.set(own, schema);
  return own;
}

/** Returns the schema that describes the values of another one: mostly itself. */
export const descriptionOf = (schema: object): z.ZodType | undefined => described.get(schema);
