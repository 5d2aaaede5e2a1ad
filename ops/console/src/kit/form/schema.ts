/** Kind of the control that a member of a JSON Schema gets. */
export type FieldKind =
  | 'text'
  | 'secret'
  | 'lines'
  | 'number'
  | 'boolean'
  | 'choice'
  | 'list'
  | 'json';

/** Member of an object, as a form shows it. */
export interface SchemaField {
  name: string;
  kind: FieldKind;
  isRequired: boolean;
  choices: string[];
  minimum: number | undefined;
  maximum: number | undefined;
  /** Whether the member takes null, which an empty field stands for. */
  isNullable: boolean;
}

/** One shape of an object: the members that have one value only in it, and the others. */
export interface SchemaShape {
  constants: Record<string, string>;
  fields: SchemaField[];
}

type JsonObject = Record<string, unknown>;

/** Tells whether a value is a JSON object. */
export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Returns the shapes that a JSON Schema of an object has: one, or one per entry of `oneOf`. A
 * choice of one value that is not required is a choice (`transport`), not a constant of the shape.
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
 * Names of members whose text has lines, such as PEM, and of those that the screen must not show.
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
