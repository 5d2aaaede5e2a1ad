import { STATUS_CODES } from 'node:http';
import { type ErrorName, errorTable, errorText } from '../../shared/domain/errors/errors.ts';
import type { Json, JsonObject } from '../../shared/domain/json.ts';
import { errorReply } from '../replies/common.ts';
import type { ReplyBody, Route } from '../route.ts';
import { type Example, exampleOf } from './examples.ts';
import type { ReplySchemas } from './json-schema.ts';
import { refusalsOf } from './refusals.ts';

/** Responses that several operations share, by name. */
export type SharedResponses = Map<string, JsonObject>;

/** Returns the responses of a route: its own replies, and its refusals by status. */
export function responsesOf(
  route: Route,
  {
    schemas,
    shared,
    example,
  }: { schemas: ReplySchemas; shared: SharedResponses; example: Example | undefined },
): JsonObject {
  const replies = Object.entries(route.replies).map(([status, body]): [string, JsonObject] => {
    const isRecorded = status === String(example?.status) || status === 'default';
    const recorded = isRecorded ? example?.reply : undefined;
    return [status, body === undefined ? {} : replyResponse(status, contentOf(body, schemas, recorded))];
  });
  const refusals = [...byStatus(refusalsOf(route))].map(([status, names]): [string, JsonObject] => [
    String(status),
    refusalResponse(status, names, { schemas, shared, reply: route.replies[status] }),
  ]);
  return Object.fromEntries([...replies, ...refusals]);
}

const jsonType = 'application/json';

/** Content of a reply: its media type without parameters, and the schema. */
function contentOf(
  body: ReplyBody,
  schemas: ReplySchemas,
  example?: Json,
): Record<string, { schema?: JsonObject; example?: Json }> {
  if (!('contentType' in body)) return { [jsonType]: { schema: schemas.of(body), ...exampleOf(example) } };
  const [type = ''] = body.contentType.split(';');
  // Generators of clients need a schema for a binary body too.
  const schema = { type: 'string', ...(type.startsWith('text/') ? {} : { format: 'binary' }) };
  return { [type]: { schema: type === jsonType ? { type: 'object' } : schema } };
}

function replyResponse(status: string, content: JsonObject): JsonObject {
  const description =
    status === 'default' ? 'Reply of the server behind this call' : reasonOf(Number(status));
  return { description, content };
}

const reasonOf = (status: number): string => STATUS_CODES[status] ?? String(status);

function byStatus(names: readonly ErrorName[]): Map<number, ErrorName[]> {
  return Map.groupBy(names, (name) => errorTable[name].status);
}

/** Statuses whose replies may say when to try again. */
const isRetryable = (status: number): boolean => status === 429 || status === 503;

function refusalResponse(
  status: number,
  names: readonly ErrorName[],
  {
    schemas,
    shared,
    reply,
  }: { schemas: ReplySchemas; shared: SharedResponses; reply: ReplyBody | undefined },
): JsonObject {
  const refusal = errorSchema(names, schemas);
  if (reply) {
    const own = contentOf(reply, schemas);
    const schema = jsonType in own ? { anyOf: [own[jsonType]?.schema ?? {}, refusal] } : refusal;
    return { description: describe(status, names), content: { ...own, [jsonType]: { schema } } };
  }
  const response = {
    description: describe(status, names),
    ...(isRetryable(status)
      ? { headers: { 'Retry-After': { $ref: '#/components/headers/RetryAfter' } } }
      : {}),
    content: { [jsonType]: { schema: refusal } },
  };
  if (names.length > 2) return response;
  const id = names.map(capitalised).join('Or');
  shared.set(id, response);
  return { $ref: `#/components/responses/${id}` };
}

const capitalised = (name: string): string => `${name.charAt(0).toUpperCase()}${name.slice(1)}`;

function errorSchema(names: readonly ErrorName[], schemas: ReplySchemas): JsonObject {
  const codes = [...new Set(names.map((name) => errorTable[name].code))].sort((a, b) => a - b);
  return { allOf: [schemas.of(errorReply), { properties: { code: { enum: codes } } }] };
}

/** Lists code and text of each refusal. */
function describe(status: number, names: readonly ErrorName[]): string {
  const lines = names.map((name) => `- ${errorTable[name].code} \`${name}\`: ${errorText(name)}`);
  return [reasonOf(status), '', ...lines].join('\n');
}
