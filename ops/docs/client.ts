import { z } from 'zod';
import { openApiDocument } from '../../api/openapi/document.ts';
import { loadExamples } from '../../api/openapi/operation.ts';
import { loadRoutes } from '../../api/route-loader.ts';
import { type JsonSchema, jsonSchema } from './markdown.ts';

const base = '/console/api';

const parameter = z.object({
  name: z.string(),
  in: z.string(),
  required: z.boolean().default(false),
  schema: jsonSchema,
});
const content = z.object({ 'application/json': z.object({ schema: jsonSchema }).optional() });
const operation = z.object({
  operationId: z.string(),
  summary: z.string(),
  parameters: z.array(z.union([parameter, z.object({ $ref: z.string() })])).default([]),
  requestBody: z.object({ required: z.boolean().default(false), content }).optional(),
  responses: z.record(z.string(), z.object({ content: content.optional() })),
});
const document = z.object({
  paths: z.record(z.string(), z.record(z.string(), z.unknown())),
  components: z.object({ schemas: z.record(z.string(), jsonSchema) }),
});

/** Operation of the admin API. */
interface Call extends z.infer<typeof operation> {
  method: string;
  /** Path after the base of the admin API, with `{parameters}`. */
  path: string;
  /** Schema of the JSON reply. Undefined for a stream. */
  reply: JsonSchema | undefined;
}

const heading = `// Generated from the OpenAPI description by \`npm run docs\`. Do not edit.
// Types of the admin API: parameters, body and reply of each operation, and its method and path.
`;

/** Renders the types of the admin API for its client (ops/client). */
export async function clientFile(): Promise<string> {
  const { paths, components } = document.parse(
    openApiDocument(await loadRoutes(), await loadExamples()),
  );
  const calls = callsOf(paths);
  const schemas = namedSchemas(calls, components.schemas);
  return [
    heading,
    ...schemas.map(([name, schema]) => `export type ${name} = ${typeOf(schema)};\n`),
    'export interface Operations {',
    ...calls.map(renderCall),
    '}\n',
    'export type Operation = keyof Operations;\n',
    '/** Method and path of each operation. */',
    'export const operations: Readonly<Record<Operation, readonly [method: string, path: string]>> = {',
    ...calls.map(({ operationId, method, path }) => `  ${operationId}: ['${method}', '${path}'],`),
    '};\n',
  ].join('\n');
}

function callsOf(paths: z.infer<typeof document>['paths']): Call[] {
  return Object.entries(paths)
    .filter(([path]) => path.startsWith(base))
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, described]) => {
        const call = operation.parse(described);
        return {
          ...call,
          method: method.toUpperCase(),
          path: path.slice(base.length),
          reply: replyOf(call),
        };
      }),
    );
}

/** Returns the schema of the successful reply. */
function replyOf({ responses }: z.infer<typeof operation>): JsonSchema | undefined {
  const [success] = Object.entries(responses).filter(([status]) => status.startsWith('2'));
  return success?.[1].content?.['application/json']?.schema;
}

/** Returns the schemas of all replies, including refusals. */
const repliesOf = ({ responses }: Call): (JsonSchema | undefined)[] =>
  Object.values(responses).map((one) => one.content?.['application/json']?.schema);

const bodyOf = ({ requestBody }: Call): JsonSchema | undefined =>
  requestBody?.content['application/json']?.schema;

/**
 * Lists the named schemas that the operations use, directly or indirectly, sorted by name. The
 * schema of all refusals is left out, because the client declares it as `RefusedReply`.
 */
function namedSchemas(calls: Call[], all: Record<string, JsonSchema>): [string, JsonSchema][] {
  const found = new Map<string, JsonSchema>();
  const visit = (schema: JsonSchema | undefined): void => {
    for (const name of JSON.stringify(schema ?? {}).matchAll(
      /"#\/components\/schemas\/([^"/]+)"/g,
    )) {
      const [, key = ''] = name;
      const named = all[key];
      if (named === undefined || key === 'Error' || found.has(key)) continue;
      found.set(key, named);
      visit(named);
    }
  };
  for (const call of calls) for (const schema of [...repliesOf(call), bodyOf(call)]) visit(schema);
  return [...found].toSorted(([a], [b]) => (a < b ? -1 : 1));
}

function renderCall(call: Call): string {
  const body = bodyOf(call);
  const isBodyRequired = call.requestBody?.required === true;
  const input = [
    ...parametersOf(call, 'path'),
    ...parametersOf(call, 'query'),
    ...(body ? [`body${isBodyRequired ? '' : '?'}: ${typeOf(body, '      ')};`] : []),
  ];
  return [
    docComment(call.summary),
    `  ${call.operationId}: {`,
    `    input: {${input.map((line) => `\n      ${line}`).join('')}${input.length > 0 ? '\n    ' : ''}};`,
    // A stream has a URL but no reply for a call to return.
    `    reply: ${call.reply ? typeOf(call.reply, '    ') : 'never'};`,
    '  };',
  ].join('\n');
}

/** Renders a doc comment of a member, wrapped at 100 columns. */
function docComment(text: string): string {
  if (text.length <= 91) return `  /** ${text} */`;
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line.length + 1 + word.length > 95) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return ['  /**', ...[...lines, line].map((one) => `   * ${one}`), '   */'].join('\n');
}

/** Renders the member for the path or query parameters. Returns no line without parameters. */
function parametersOf({ parameters }: Call, kind: 'path' | 'query'): string[] {
  const own = parameters.flatMap((one) => ('in' in one && one.in === kind ? [one] : []));
  if (own.length === 0) return [];
  const schema = jsonSchema.parse({
    type: 'object',
    properties: Object.fromEntries(own.map((one) => [one.name, one.schema])),
    required: own.filter((one) => one.required).map((one) => one.name),
  });
  const isOptional = own.every((one) => !one.required);
  return [`${kind}${isOptional ? '?' : ''}: ${typeOf(schema, '      ')};`];
}

/** Renders a schema as a TypeScript type. `indent` is the indentation of its first line. */
function typeOf(schema: JsonSchema, indent = ''): string {
  const { $ref, anyOf, oneOf, properties } = schema;
  // The schema of any JSON value is recursive and has no name of its own.
  if ($ref !== undefined)
    return $ref.includes('__schema') ? 'unknown' : $ref.slice($ref.lastIndexOf('/') + 1);
  const choices = anyOf ?? oneOf;
  if (choices) {
    const union = unionOf(choices.map((choice) => typeOf(choice, indent)));
    return properties ? `(${union}) & ${objectOf(schema, indent)}` : union;
  }
  if (schema.const !== undefined) return literal(schema.const);
  if (schema.enum) return unionOf(schema.enum.map(literal));
  return unionOf([schema.type ?? []].flat().map((type) => typeNamed(type, schema, indent)));
}

const unionOf = (types: string[]): string => [...new Set(types)].join(' | ') || 'unknown';

const literal = (value: unknown): string =>
  typeof value === 'string' ? `'${value.replaceAll(/['\\]/g, '\\$&')}'` : JSON.stringify(value);

function typeNamed(type: string, schema: JsonSchema, indent: string): string {
  switch (type) {
    case 'integer':
      return 'number';
    case 'array':
      return `(${schema.items ? typeOf(schema.items, indent) : 'unknown'})[]`.replace(
        /^\((\w+)\)/,
        '$1',
      );
    case 'object':
      return objectOf(schema, indent);
    default:
      return type;
  }
}

function objectOf(schema: JsonSchema, indent: string): string {
  const { properties = {}, propertyNames, required, additionalProperties } = schema;
  if (propertyNames?.enum && typeof additionalProperties === 'object') {
    const record = `Record<${unionOf(propertyNames.enum.map(literal))}, ${typeOf(additionalProperties, indent)}>`;
    return required.length === 0 ? `Partial<${record}>` : record;
  }
  const inner = `${indent}  `;
  const members = Object.entries(properties).map(([name, member]) => {
    const key = /^[A-Za-z_]\w*$/.test(name) ? name : literal(name);
    return `${key}${required.includes(name) ? '' : '?'}: ${typeOf(member, inner)};`;
  });
  if (members.length === 0) {
    if (additionalProperties === false) return 'object';
    const value =
      typeof additionalProperties === 'object' ? typeOf(additionalProperties, indent) : 'unknown';
    return `Record<string, ${value}>`;
  }
  // TypeScript requires that an index signature allows the types of the named members too.
  if (additionalProperties !== undefined && additionalProperties !== false)
    members.push('[member: string]: unknown;');
  return `{\n${members.map((one) => `${inner}${one}\n`).join('')}${indent}}`;
}
