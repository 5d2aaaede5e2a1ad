import { z } from 'zod';

/** Joins blocks to a Markdown page with a note that the page is generated. */
export const page = (title: string, ...blocks: string[]): string =>
  `${[`# ${title}`, generatedNote, ...blocks].join('\n\n')}\n`;

const generatedNote =
  '<!-- Generated from the code by `npm run docs`: change the code, not this page. -->';

/** Formats a table. Cells are Markdown. Line breaks and `|` are escaped. */
export function table(headings: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.map(cell).join(' | ')} |`;
  return [line(headings), `|${'---|'.repeat(headings.length)}`, ...rows.map(line)].join('\n');
}

const cell = (text: string): string => text.replace(/\s*\n\s*/g, ' ').replaceAll('|', '\\|');

/** Formats a text as code. The text must not contain a backtick. */
export const code = (text: string): string => `\`${text}\``;

/** Formats a fenced code block. */
export const fenced = (language: string, text: string): string =>
  `\`\`\`${language}\n${text}\n\`\`\``;

/** Formats an integer with thousands separators, independent of the machine's locale. */
export const grouped = (value: number): string => String(value).replace(/\B(?=(\d{3})+$)/g, ',');

/** Formats a size in the largest unit that divides it. */
export function bytes(value: number): string {
  if (value % (1024 * 1024) === 0) return `${value / 1024 / 1024} MB`;
  return value % 1024 === 0 ? `${value / 1024} KB` : `${grouped(value)} bytes`;
}

/** The parts of a JSON schema that the pages use. */
export const jsonSchema = z.looseObject({
  $ref: z.string().optional(),
  type: z.union([z.string(), z.array(z.string())]).optional(),
  const: z.json().optional(),
  enum: z.array(z.json()).optional(),
  format: z.string().optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
  maxLength: z.number().optional(),
  maxItems: z.number().optional(),
  description: z.string().optional(),
  byDefault: z.string().optional(),
  required: z.array(z.string()).default([]),
  get additionalProperties() {
    return z.union([z.boolean(), jsonSchema]).optional();
  },
  get propertyNames() {
    return jsonSchema.optional();
  },
  get items() {
    return jsonSchema.optional();
  },
  get properties() {
    return z.record(z.string(), jsonSchema).optional();
  },
  get anyOf() {
    return z.array(jsonSchema).optional();
  },
  get oneOf() {
    return z.array(jsonSchema).optional();
  },
});

export type JsonSchema = z.infer<typeof jsonSchema>;

/** Member of an object, as shown in a table row. */
export interface Member {
  name: string;
  type: string;
  isRequired: boolean;
  /** Description in the schema, or an empty string. */
  meaning: string;
  /** Text for a default that is not a fixed value. */
  byDefault: string | undefined;
  schema: JsonSchema;
}

/** Converts a zod schema to the JSON schema of its input. */
export const shapeOf = (schema: z.ZodType): JsonSchema =>
  jsonSchema.parse(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }));

/** Lists the members of a schema. Returns an empty list for a schema of any object. */
export function membersOf({ properties = {}, required }: JsonSchema): Member[] {
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    type: typeText(schema),
    isRequired: required.includes(name),
    meaning: schema.description ?? '',
    byDefault: schema.byDefault,
    schema,
  }));
}

/**
 * Lists the members of a schema and of the objects inside it: `recall.status` for an object,
 * `keptTokens[].profile` for a list, `connectors.*.devices` for a dictionary. Does not list the
 * members of a schema for which `isLeaf` returns true.
 */
export function flatMembersOf(
  schema: JsonSchema,
  isLeaf: (schema: JsonSchema) => boolean = () => false,
): Member[] {
  return membersOf(schema).flatMap((member) => {
    const inner = isLeaf(member.schema) ? undefined : innerOf(member.schema);
    if (!inner) return [member];
    const within = flatMembersOf(inner.schema, isLeaf);
    return [
      { ...member, type: inner.type },
      ...within.map((one) => ({ ...one, name: `${member.name}${inner.suffix}.${one.name}` })),
    ];
  });
}

/** Returns the object whose members a member has, and how to name them. */
function innerOf(
  schema: JsonSchema,
): { schema: JsonSchema; type: string; suffix: string } | undefined {
  const { properties, items, additionalProperties: values } = schema;
  const orNull = [schema.type].flat().includes('null') ? ' or null' : '';
  if (properties) return { schema, type: `object${orNull}`, suffix: '' };
  if (items?.properties) return { schema: items, type: `list of objects${orNull}`, suffix: '[]' };
  if (typeof values === 'object' && values.properties)
    return { schema: values, type: `dictionary of objects${orNull}`, suffix: '.*' };
  return undefined;
}

/** Describes a type: `text, at most 100 characters`. */
export function typeText(schema: JsonSchema): string {
  // The schema of any JSON value is recursive and has no name of its own.
  if (schema.$ref?.includes('__schema')) return 'any JSON';
  if (schema.$ref !== undefined) return linkOf(schema.$ref);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return [...new Set(choices.map(typeText))].join(' or ');
  if (schema.const !== undefined) return code(JSON.stringify(schema.const));
  if (schema.enum) return schema.enum.map((value) => code(JSON.stringify(value))).join(', ');
  const types = [schema.type ?? 'any'].flat();
  return types.map((type) => `${wordOf(type, schema)}${boundsOf(type, schema)}`).join(' or ');
}

const formats = new Map([
  ['uri', 'URL'],
  ['date', 'day, `YYYY-MM-DD`'],
  ['date-time', 'time, ISO 8601'],
]);

/** Formats a link to the section of a named schema. */
function linkOf(reference: string): string {
  const name = reference.slice(reference.lastIndexOf('/') + 1);
  return `[${code(name)}](#${name.toLowerCase()})`;
}

/** Describes an object by its members, or a dictionary by the type of its values. */
function objectText({ properties, additionalProperties }: JsonSchema): string {
  const members = Object.entries(properties ?? {}).map(
    ([name, member]) => `${code(name)} (${typeText(member)})`,
  );
  if (members.length > 0) return `object with ${members.join(', ')}`;
  return typeof additionalProperties === 'object' && Object.keys(additionalProperties).length > 1
    ? `dictionary of: ${typeText(additionalProperties)}`
    : 'object';
}

function wordOf(type: string, schema: JsonSchema): string {
  const { format, items } = schema;
  switch (type) {
    case 'any':
      return 'any JSON';
    case 'string':
      return formats.get(format ?? '') ?? 'text';
    case 'object':
      return objectText(schema);
    case 'integer':
      return 'whole number';
    case 'boolean':
      return '`true` or `false`';
    case 'array':
      return items ? `list of: ${typeText(items)}` : 'list';
    default:
      return type;
  }
}

/**
 * True if the schema defines this bound. Zod also writes the bounds of safe integers, which are
 * ignored.
 */
const isBound = (value: number | undefined): value is number =>
  value !== undefined && Math.abs(value) < Number.MAX_SAFE_INTEGER;

function boundsOf(type: string, { minimum, maximum, maxLength, maxItems }: JsonSchema): string {
  if (type === 'string' && maxLength !== undefined)
    return `, at most ${grouped(maxLength)} characters`;
  if (type === 'array' && maxItems !== undefined) return `; at most ${grouped(maxItems)} entries`;
  if (type !== 'number' && type !== 'integer') return '';
  if (isBound(minimum) && isBound(maximum)) return `, ${grouped(minimum)} to ${grouped(maximum)}`;
  if (isBound(minimum)) return `, at least ${grouped(minimum)}`;
  return isBound(maximum) ? `, at most ${grouped(maximum)}` : '';
}
