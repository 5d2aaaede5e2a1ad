import { z } from 'zod';
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import { components } from '../replies/common.ts';
import { descriptionOf } from '../requests/checked.ts';
import type { Route } from '../route.ts';

/** JSON schemas of replies, in the form of the OpenAPI document. */
export interface ReplySchemas {
  /** Named schemas for `#/components/schemas`, by name. */
  named: JsonObject;
  /** Returns the schema of a reply. If the schema has a name, returns a reference. */
  of(schema: z.ZodType): JsonObject;
}

const componentPath = '#/components/schemas/';
const inlinePrefix = 'inline:';

/** Returns the schemas of the replies that are JSON. */
export const jsonReplies = ({ replies }: Pick<Route, 'replies'>): z.ZodType[] =>
  Object.values(replies).filter((body): body is z.ZodType => body instanceof z.ZodType);

/** Converts the schemas of all replies together, so that each named schema appears once. */
export function replySchemas(schemas: readonly z.ZodType[]): ReplySchemas {
  const idOf = new Map<z.ZodType, string>();
  const registry = z.registry<{ id: string }>();
  for (const [name, schema] of components) add(schema, name);
  for (const schema of schemas) if (!idOf.has(schema)) add(schema, `${inlinePrefix}${idOf.size}`);

  function add(schema: z.ZodType, id: string): void {
    idOf.set(schema, id);
    registry.add(schema, { id });
  }

  const all = convert(registry, 'output');
  const isNamed = (id: string) => !id.startsWith(inlinePrefix);
  return {
    named: Object.fromEntries([...all].filter(([id]) => isNamed(id)).sort(byName)),
    of: (schema) => {
      const id = idOf.get(schema) ?? '';
      return isNamed(id) ? { $ref: `${componentPath}${id}` } : (all.get(id) ?? {});
    },
  };
}

const byName = ([a]: [string, Json], [b]: [string, Json]): number => (a < b ? -1 : 1);

/** Converts the schema of a query or a body to the schema of the values that a caller sends. */
export function requestSchema(schema: z.ZodType): JsonObject {
  const registry = z.registry<{ id: string }>();
  registry.add(descriptionOf(schema) ?? schema, { id: inlinePrefix });
  return convert(registry, 'input').get(inlinePrefix) ?? {};
}

function convert(
  registry: z.core.$ZodRegistry<{ id: string }>,
  io: 'input' | 'output',
): Map<string, JsonObject> {
  const { schemas } = z.toJSONSchema(registry, {
    io,
    uri: (id) => `${componentPath}${id}`,
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      const parsedLater = descriptionOf(zodSchema);
      if (!parsedLater) return;
      const { description } = jsonSchema;
      for (const name of Object.keys(jsonSchema)) Reflect.deleteProperty(jsonSchema, name);
      Object.assign(jsonSchema, requestSchema(parsedLater), description && { description });
    },
  });
  const converted = Object.entries(schemas).filter(([id]) => id !== '__shared');
  return new Map(converted.map(([id, schema]) => [id, objectOf(tidy(jsonOf(schema)))]));
}

const jsonOf = (value: unknown): Json => JSON.parse(JSON.stringify(value));
const objectOf = (value: Json): JsonObject => (isJsonObject(value) ? value : {});

/**
 * Removes members without information, such as the bounds of all safe integers. Rewrites forms that
 * client generators cannot read: null in addition to a type, a constant boolean, any object or
 * list.
 */
function tidy(value: Json): Json {
  if (Array.isArray(value)) return value.map(tidy);
  if (!isJsonObject(value)) return value;
  // The schema of any JSON value refers to itself.
  if (typeof value.$ref === 'string' && value.$ref.includes('__shared'))
    return withoutReference(value);
  return withPlainForm(
    Object.fromEntries(
      Object.entries(value)
        .filter(([name, member]) => !isNoise(name, member, value))
        .map(([name, member]) => [name, tidy(name === 'anyOf' ? withoutTimes(member) : member)]),
    ),
  );
}

/**
 * Removes the format of times among alternatives and keeps their pattern. With the format, a
 * generated Java client would not compile.
 */
function withoutTimes(options: Json): Json {
  if (!Array.isArray(options)) return options;
  const others = options.filter((option) => !isJsonObject(option) || option.type !== 'null');
  return others.length > 1 ? options.map(withoutTime) : options;
}

function withoutTime(option: Json): Json {
  if (!isJsonObject(option) || option.format !== 'date-time') return option;
  const { format: _, ...rest } = option;
  return rest;
}

function withPlainForm(schema: JsonObject): JsonObject {
  const { anyOf, const: constant, ...rest } = schema;
  const { properties } = rest;
  // In most languages, a member that is always null has no type, so it becomes a nullable string.
  if (isJsonObject(properties))
    rest.properties = Object.fromEntries(
      Object.entries(properties).map(([name, one]) => [
        name,
        isJsonObject(one) && one.type === 'null' ? { ...one, type: ['string', 'null'] } : one,
      ]),
    );
  if (typeof constant === 'boolean') return { ...rest, type: 'boolean' };
  if (!Array.isArray(anyOf)) return constant === undefined ? rest : { ...rest, const: constant };
  const options = anyOf.filter(isJsonObject).flatMap(alternativesOf);
  if (options.every(isFree)) return rest;
  const [one, ...others] = options.filter(({ type }) => type !== 'null');
  if (others.length > 0 || options.length !== 2 || !one || typeof one.type !== 'string')
    return { ...rest, anyOf: options };
  const { enum: values, const: only, ...inner } = one;
  const named = values ?? (only === undefined ? undefined : [only]);
  return {
    ...rest,
    ...inner,
    type: [one.type, 'null'],
    ...(Array.isArray(named) ? { enum: [...named, null] } : {}),
  };
}

/** Flattens an alternative that only contains alternatives. */
function alternativesOf(option: JsonObject): JsonObject[] {
  const { anyOf, ...rest } = option;
  const inner = Array.isArray(anyOf) ? anyOf.filter(isJsonObject) : [];
  return inner.length > 0 && isEmpty(rest) ? inner.flatMap(alternativesOf) : [option];
}

/** Returns whether a schema accepts any object or any list. */
const isFree = ({ type, properties, items, additionalProperties }: JsonObject): boolean =>
  (type === 'object' && properties === undefined && additionalProperties === undefined) ||
  (type === 'array' && isEmpty(items));
const isEmpty = (schema: Json | undefined): boolean =>
  schema === undefined || (isJsonObject(schema) && Object.keys(schema).length === 0);

const withoutReference = ({ $ref: _, ...rest }: JsonObject): JsonObject => rest;

function isNoise(name: string, member: Json, { format, properties }: JsonObject): boolean {
  switch (name) {
    case '$schema':
    case '$id':
    case 'byDefault':
      return true;
    case 'minimum':
    case 'maximum':
      return Math.abs(Number(member)) === Number.MAX_SAFE_INTEGER;
    case 'pattern':
      // Only JavaScript can read Unicode property classes. Other readers refuse the whole document.
      return format === 'date-time' || format === 'date' || String(member).includes('\\p{');
    case 'additionalProperties':
      // An object that may have any members. With this member, a generated Java client would not
      // compile.
      return properties === undefined && isEmpty(member);
    case 'propertyNames':
      return JSON.stringify(member) === '{"type":"string"}';
    default:
      return false;
  }
}
