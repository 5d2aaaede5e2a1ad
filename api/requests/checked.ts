import { z } from 'zod';
import type { ErrorName } from '../../shared/domain/errors/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import { jsonObject, jsonValue } from '../../shared/domain/json-schema.ts';

/**
 * Refusals of a member instead of 111. They are part of the member's schema:
 *
 * - `missing`: the member is absent, null or empty.
 * - `empty`: the member is an empty text.
 * - `tooBig`: the member exceeds its maximum length or number.
 * - `isNamed`: true if the error text names the member and the rule that it breaks. Otherwise the
 *   text is the one of the code.
 */
export interface MemberRefusals {
  missing?: ErrorName;
  empty?: ErrorName;
  invalid?: ErrorName;
  tooBig?: ErrorName;
  isNamed?: boolean;
}

const refusals = z.registry<MemberRefusals>();

/**
 * Sets the refusals of a member, or of all members of an object that have no refusals of their own.
 */
export function refusedAs<S extends z.ZodType>(schema: S, names: MemberRefusals): S {
  const own = schema.clone();
  refusals.add(own, names);
  return own;
}

/** An error in a value: its path, and zod's code. */
interface Fault {
  path: readonly PropertyKey[];
  code: string;
}

/** Returns the refusal for an error in a value. Returns undefined for the default refusal. */
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

/** Returns the schema of a member that may be absent or null. Both become undefined. */
export const optional = <S extends z.ZodType>(schema: S) =>
  schema.nullish().transform((value) => value ?? undefined);

/** Returns the present members of a parsed body, for a service that accepts JSON. */
export const presentMembers = (body: object): JsonObject =>
  jsonObject.parse(
    Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined)),
  );

/**
 * Returns the schema of a body with these members and any others, for a service that accepts JSON.
 */
export const openBody = (shape: z.ZodRawShape): z.ZodType<JsonObject> =>
  z.looseObject(shape).pipe(z.custom<JsonObject>(isJsonObject));

/**
 * Returns the schema inside a schema that allows absence or converts the value. Returns undefined
 * for other schemas.
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

/** Schemas that describe the values which services check themselves, by the schema of the route. */
const described = z.registry<{ by: object }>();

/**
 * Returns the schema of a body that the service checks itself, because an error is more than a
 * refusal of the call, or because the same rules hold for the results of operations. `schema`
 * describes the body. The route requires only a JSON object.
 */
export const parsedByService = (schema: z.ZodType): z.ZodType<JsonObject> =>
  describedBy(z.custom<JsonObject>(isJsonObject), schema);

/**
 * Marks a part of a body that the service parses, as `parsedByService` does for a whole body. The
 * route accepts any JSON.
 */
export const partParsedByService = (schema: z.ZodType): z.ZodType<Json> =>
  describedBy(jsonValue, schema);

/**
 * Returns a copy of `checked` that is described by `schema`, which accepts the values that callers
 * should send.
 */
export function describedBy<T>(checked: z.ZodType<T>, schema: z.ZodType): z.ZodType<T> {
  const own = checked.clone();
  described.add(own, { by: schema });
  return own;
}

/** Returns the schema that describes the values of a schema, if another schema does. */
export function descriptionOf(schema: z.core.$ZodType): z.ZodType | undefined {
  const by = described.get(schema)?.by;
  return by instanceof z.ZodType ? by : undefined;
}
