import { z } from 'zod';
import type { ErrorName } from '../../shared/domain/errors/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import { jsonObject, jsonValue } from '../../shared/domain/json-schema.ts';

/**
 * What a schema of a request says besides its form: the refusals of its members, and the schema
 * that a service parses a part by. A schema of a route is both its check and its description.
 */

/**
 * Refusals of a member in place of 111: `missing` where it is absent, null or empty, `empty` where
 * it is an empty text, `tooBig` beyond its greatest length or number. `isNamed`: the text is the
 * name of the member and the rule that it breaks, not that of the code.
 */
export interface MemberRefusals {
  missing?: ErrorName;
  empty?: ErrorName;
  invalid?: ErrorName;
  tooBig?: ErrorName;
  isNamed?: boolean;
}

const refusals = z.registry<MemberRefusals>();

/** Names the refusals of a member, or of all members of an object without refusals of their own. */
export function refusedAs<S extends z.ZodType>(schema: S, names: MemberRefusals): S {
  const own = schema.clone();
  refusals.add(own, names);
  return own;
}

/** A fault of a value: where it is, and zod's code of it. */
interface Fault {
  path: readonly PropertyKey[];
  code: string;
}

/** Returns the refusal of a fault of a value; undefined for the default. */
export function refusalOfFault(
  schema: z.ZodType,
  { path, code }: Fault,
  value: unknown,
): { name: ErrorName; isNamed: boolean } | undefined {
  let names = namesOf(schema) ?? {};
  let at: unknown = schema;
  let found = value;
  for (const key of path) {
    at = memberOf(at, key);
    names = namesOf(at) ?? names;
    found = isJsonObject(found) ? found[String(key)] : undefined;
  }
  const { missing, empty = missing, invalid, tooBig, isNamed = false } = names;
  const absent = found === '' ? empty : found === undefined || found === null ? missing : undefined;
  if (absent) return { name: absent, isNamed: false };
  const name = (code === 'too_big' ? tooBig : undefined) ?? invalid;
  return name && { name, isNamed };
}

/** A member that may be absent or null: undefined then. */
export const optional = <S extends z.ZodType>(schema: S) =>
  schema.nullish().transform((value) => value ?? undefined);

/** Returns the members of a parsed body that are present, for a service that takes JSON. */
export const presentMembers = (body: object): JsonObject =>
  jsonObject.parse(
    Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined)),
  );

/** Body with these members and any others, for a service that takes JSON. */
export const openBody = (shape: z.ZodRawShape): z.ZodType<JsonObject> =>
  z.looseObject(shape).pipe(z.custom<JsonObject>(isJsonObject));

/**
 * Returns the schema inside one that allows absence or converts the value; undefined without one.
 */
function innerOf(schema: unknown): unknown {
  if (
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodNullable ||
    schema instanceof z.ZodNonOptional
  )
    return schema.unwrap();
  if (!(schema instanceof z.ZodPipe)) return undefined;
  return schema.in instanceof z.ZodTransform ? schema.out : schema.in;
}

function memberOf(schema: unknown, key: PropertyKey): unknown {
  if (schema instanceof z.ZodObject) return schema.shape[String(key)];
  if (schema instanceof z.ZodRecord) return schema.valueType;
  if (schema instanceof z.ZodUnion)
    return schema.options
      .map((option) => memberOf(option, key))
      .find((member) => member !== undefined);
  const inner = innerOf(schema);
  return inner && memberOf(inner, key);
}

function namesOf(schema: unknown): MemberRefusals | undefined {
  if (!(schema instanceof z.ZodType)) return undefined;
  return refusals.get(schema) ?? namesOf(innerOf(schema));
}

/** Schemas by which services parse. */
const described = z.registry<{ by: object }>();

/**
 * Schema of a body that a service parses by `schema` itself, because a fault is more than a refusal
 * of the call. The route requires a JSON object only.
 */
export const parsedByService = (schema: z.ZodType): z.ZodType<JsonObject> =>
  describedBy(z.custom<JsonObject>(isJsonObject), schema);

/** As `parsedByService`, of a part of a body: the route takes any JSON. */
export const partParsedByService = (schema: z.ZodType): z.ZodType<Json> =>
  describedBy(jsonValue, schema);

/** Schema that is described by another one, which takes the values that callers should send. */
export function describedBy<T>(checked: z.ZodType<T>, schema: z.ZodType): z.ZodType<T> {
  const own = checked.clone();
  described.add(own, { by: schema });
  return own;
}

/** Returns the schema that describes the values of another one: mostly itself. */
export function descriptionOf(schema: z.core.$ZodType): z.ZodType | undefined {
  const by = described.get(schema)?.by;
  return by instanceof z.ZodType ? by : undefined;
}
