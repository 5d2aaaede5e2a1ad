/** Kind of input for a member of a JSON Schema. */
export type FieldKind =
  | 'text'
  | 'secret'
  | 'lines'
  | 'number'
  | 'boolean'
  | 'choice'
  | 'list'
  | 'json';

/** Member of an object in a form. */
export interface SchemaField {
  name: string;
  kind: FieldKind;
  isRequired: boolean;
  choices: string[];
  minimum: number | undefined;
  maximum: number | undefined;
  /** True if the member may be null. An empty input means null. */
  isNullable: boolean;
}

/** Variant of an object: members with a fixed value, and the other members. */
export interface SchemaShape {
  constants: Record<string, string>;
  fields: SchemaField[];
}

type JsonObject = Record<string, unknown>;

/** True if a value is a JSON object. */
export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Returns the variants of a JSON Schema: one, or one per entry of `oneOf`. An optional member with
 * a single possible value, such as `transport`, is a choice and not a constant.
 */
export function shapesOf(schema: unknown): SchemaShape[] {
  if (!isObject(schema)) return [];
  if (Array.isArray(schema.oneOf)) return schema.oneOf.flatMap(shapesOf);
  const required = Array.isArray(schema.required) ? schema.required : [];
  const members = Object.entries(isObject(schema.properties) ? schema.properties : {});
  const constants: Record<string, string> = {};
  const fields: SchemaField[] = [];
  for (const [name, member] of members) {
    const isRequired = required.includes(name);
    if (isRequired && isObject(member) && typeof member.const === 'string')
      constants[name] = member.const;
    else fields.push(fieldOf(name, member, isRequired));
  }
  return [{ constants, fields }];
}

function fieldOf(name: string, given: unknown, isRequired: boolean): SchemaField {
  const options = isObject(given) && Array.isArray(given.anyOf) ? given.anyOf.filter(isObject) : [];
  const isNullable = options.some(({ type }) => type === 'null');
  const inner = options.find(({ type }) => type !== 'null') ?? given;
  const schema = isObject(inner) ? inner : {};
  return {
    name,
    kind: kindOf(name, schema),
    isRequired,
    choices: choicesOf(schema),
    minimum: typeof schema.minimum === 'number' ? schema.minimum : undefined,
    maximum: typeof schema.maximum === 'number' ? schema.maximum : undefined,
    isNullable,
  };
}

function choicesOf(schema: JsonObject): string[] {
  const values = Array.isArray(schema.enum) ? schema.enum : [schema.const];
  return values.filter((value): value is string => typeof value === 'string');
}

/**
 * Names of members with a multi-line text, such as PEM, and of members that the screen must not
 * show.
 */
const lineNames = /^(privateKey|certificate|ca)$/;
const secretNames = /secret|^(callbackKey|receiptToken)$/i;

function kindOf(name: string, schema: JsonObject): FieldKind {
  if (choicesOf(schema).length > 0) return 'choice';
  if (schema.type === 'boolean') return 'boolean';
  if (schema.type === 'integer' || schema.type === 'number') return 'number';
  if (schema.type === 'array') return 'list';
  if (schema.type !== 'string') return 'json';
  if (lineNames.test(name)) return 'lines';
  return secretNames.test(name) ? 'secret' : 'text';
}
