import { STATUS_CODES } from 'node:http';
import { type ErrorName, errorTable, errorText } from '../../shared/domain/errors/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import { errorReply } from '../replies/common.ts';
import type { Access, ReplyBody, Route } from '../route.ts';
import { areaOf } from './areas.ts';
import { type ReplySchemas, requestSchema } from './json-schema.ts';

/** Refusals that a call may get because of its route's access. */
const byAccess: Record<Access, readonly ErrorName[]> = {
  none: [],
  login: ['unauthorized', 'forbidden', 'tooManyRequests', 'unsupportedMediaType'],
  admin: ['unauthorized', 'forbidden', 'tooManyRequests', 'unsupportedMediaType'],
  app: ['unauthorized', 'tooManyRequests'],
  push: ['unauthorized', 'masterKeyRequired', 'tooManyRequests'],
  master: ['unauthorized', 'masterKeyRequired', 'tooManyRequests'],
  scan: ['unauthorized', 'tooManyRequests'],
};

/**
 * Refusals of calls that read the database, if it is unavailable, slow, not set up, or refuses a
 * value.
 */
const ofDatabase = ['incorrectType', 'timedOut', 'unavailable', 'misconfigured'] as const;

const ofBody = [
  'malformedJson',
  'payloadTooLarge',
  'requestTimeout',
  'unsupportedMediaType',
  'tooManyRequests',
  'unavailable',
] as const;

/**
 * Returns every refusal that a route declares or that follows from its access, query and body,
 * sorted by name.
 */
export function refusalsOf(route: Route): ErrorName[] {
  const { auth, limit, session, query, body, refusals } = route;
  const names: ErrorName[] = [
    // For a malformed URL, and for a URL that is too long.
    'invalidParameter',
    'headersTooLarge',
    'internal',
    ...byAccess[auth],
    ...(auth === 'none' ? [] : ofDatabase),
    ...(limit.bodyBytesBelow > 0 ? ofBody : []),
    ...(limit.isObject ? (['tooLarge'] as const) : []),
    ...(query || body ? (['incorrectType'] as const) : []),
    ...(session === 'required' ? (['sessionNeeded'] as const) : []),
    ...refusals,
  ];
  return [...new Set(names)].sort();
}

/** Responses that several operations share, by name. */
export type SharedResponses = Map<string, JsonObject>;

/** Returns the responses of a route: its own replies, and its refusals by status. */
function responsesOf(
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
    return [
      status,
      body === undefined ? {} : replyResponse(status, contentOf(body, schemas, recorded)),
    ];
  });
  const refusals = [...byStatus(refusalsOf(route))].map(([status, names]): [string, JsonObject] => [
    String(status),
    refusalResponse(status, names, { schemas, shared, reply: route.replies[status] }),
  ]);
  return Object.fromEntries([...replies, ...refusals]);
}

const jsonType = 'application/json';

/** Returns the content of a reply: its media type without parameters, and the schema. */
function contentOf(
  body: ReplyBody,
  schemas: ReplySchemas,
  example?: Json,
): Record<string, { schema?: JsonObject; example?: Json }> {
  if (!('contentType' in body))
    return { [jsonType]: { schema: schemas.of(body), ...exampleOf(example) } };
  const [type = ''] = body.contentType.split(';');
  // Client generators need a schema for a binary body too.
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

/** Returns whether replies with this status may contain the time of a retry. */
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

/** Lists the code and text of each refusal. */
function describe(status: number, names: readonly ErrorName[]): string {
  const lines = names.map((name) => `- ${errorTable[name].code} \`${name}\`: ${errorText(name)}`);
  return [reasonOf(status), '', ...lines].join('\n');
}

const header = (name: string, description: string): JsonObject => ({
  type: 'apiKey',
  in: 'header',
  name,
  description,
});

/** Credentials that a call may need. */
export const securitySchemes = {
  appId: header(
    'X-LC-Id',
    'Id of the app. Every call of an app sends it beside a key or a signature.',
  ),
  appKey: header('X-LC-Key', 'App key.'),
  masterKey: header('X-LC-Key', 'Master key, with `,master` behind it.'),
  signature: header(
    'X-LC-Sign',
    'Signature in place of a key: `<md5 of timestamp and key in hex>,<timestamp in ms>`, and ' +
      '`,master` with the master key.',
  ),
  session: header('X-LC-Session', 'Session token of a user.'),
  adminToken: {
    type: 'http',
    scheme: 'bearer',
    description: 'CARILLON_ADMIN_TOKEN, or a token of `POST /console/api/tokens`.',
  },
  consoleSession: {
    type: 'apiKey',
    in: 'cookie',
    name: 'carillon',
    description: 'Session of the console; `__Host-carillon` where PUBLIC_URL is https.',
  },
  metricsToken: { type: 'http', scheme: 'bearer', description: 'METRICS_TOKEN, where it is set.' },
} as const satisfies JsonObject;

type SchemeName = keyof typeof securitySchemes;

/**
 * Returns alternatives of credentials. Each alternative lists the credentials that a call needs
 * together.
 */
const sets = (...alternatives: SchemeName[][]): JsonObject[] =>
  alternatives.map((names) => Object.fromEntries(names.map((name) => [name, []])));

/** Returns the credentials of a route. The secret of a receipt address is part of its path. */
function securityOf({ auth, session, paths }: Route): JsonObject[] {
  if (paths.includes('/metrics')) return sets([], ['metricsToken']);
  switch (auth) {
    case 'none':
    case 'login':
      return [];
    case 'admin':
      return sets(['adminToken'], ['consoleSession']);
    case 'master':
    case 'scan':
      return sets(['appId', 'masterKey'], ['appId', 'signature']);
    default:
      return ofApp(session);
  }
}

function ofApp(session: Route['session']): JsonObject[] {
  const keys: SchemeName[][] = [
    ['appId', 'appKey'],
    ['appId', 'masterKey'],
    ['appId', 'signature'],
  ];
  if (session === undefined) return sets(...keys);
  const withSession = keys.map((names): SchemeName[] => [...names, 'session']);
  const needed: SchemeName[][] = [['appId', 'masterKey'], ...withSession];
  return session === 'required' ? sets(...needed) : sets(...keys, ...withSession);
}

/** Returns a path in the form of the document: `/apps/:appId` becomes `/apps/{appId}`. */
export const templateOf = (path: string): string => path.replace(/:(\w+)/g, '{$1}');

/** Returns the operation of a route at one of its paths. Paths after the first are aliases. */
export function operationOf(
  route: Route,
  path: string,
  parts: { schemas: ReplySchemas; shared: SharedResponses; examples: Examples },
): JsonObject {
  const index = route.paths.indexOf(path);
  // An alias has the examples of the first path.
  const example = parts.examples[route.operation];
  const parameters = [
    ...pathParameters(path, example),
    ...queryParameters(route, example),
    ...sessionParameter(route),
    ...headerParameters(route),
  ];
  return {
    operationId: `${route.operation}${index === 0 ? '' : `Alias${index === 1 ? '' : index}`}`,
    summary: route.summary,
    description: index === 0 ? descriptionOf(route) : sameAs(route),
    tags: [areaOf(route).title],
    ...(parameters.length > 0 ? { parameters } : {}),
    ...bodyOf(route, example),
    security: securityOf(route),
    responses: responsesOf(route, { ...parts, example }),
  };
}

/** Returns the description of an alias: the first path, and the rules that apply to both. */
const sameAs = (route: Route): string =>
  `Same as \`${route.method} ${route.paths[0]}\`. ${descriptionOf(route)}`;

/** Any name or id that can be a segment of a path (protocol/clients.md#paths). */
const pathPart = { type: 'string', pattern: '^(?!\\.{1,2}$)[^/\\\\\\x00]+$' };

/** Path parameters with a stricter form. */
const pathForms: Readonly<Record<string, JsonObject>> = {
  appId: { type: 'string', pattern: '^[A-Za-z0-9_-]{1,64}$' },
  className: { type: 'string', pattern: '^[A-Za-z_][A-Za-z0-9_]{0,127}$' },
  key: { type: 'string', enum: ['appKey', 'masterKey', 'hookKey'] },
};

/** Meanings of path parameters. */
const pathMeanings: Readonly<Record<string, string>> = {
  appId: 'Id of the app.',
  objectId: 'Id of the object (`objectId`).',
  className: '`_Installation`, `_User` or `_Role`.',
  name: 'Name of the entry.',
  id: 'Id of the entry.',
  key: 'Name of the key.',
  connector: 'Connector: its id, such as `vendor_a`.',
  code: 'Code that was sent.',
  token: 'Token of the link in the mail.',
  secret: 'Secret of the address.',
  provider: 'Provider of SMS.',
  message: 'Id of the SMS.',
  channel: 'Id of the broadcast channel, with `/` and `+` percent-encoded.',
  activityId: 'Id of the activity, which the app chose.',
  installation: 'Id of the installation (`objectId`).',
  queue: 'Name of the queue.',
};

const pushRecordId = {
  id: 'Id of the push record (`objectId`).',
  objectId: 'Id of the push record.',
};

/** Meanings of path parameters that depend on the part of the path before them. */
const meaningsByParent: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  notifications: pushRecordId,
  Notifications: pushRecordId,
  scheduledPushMessages: { id: '`id` of the entry. It is a number.' },
  scheduled: { id: '`id` of the entry. It is a number.' },
  functions: { name: 'Name of the function.' },
  call: { name: 'Name of the function.' },
  installations: { id: 'Id of the installation (`objectId`).' },
  users: { id: 'Id of the user (`objectId`).' },
  breakers: { id: '`<connector>:<appId>:<profile>`.' },
  captchas: { token: '`captcha_token` of the captcha.' },
};

/** Returns the meaning of a path parameter in a path, such as `id` behind `/notifications/`. */
function pathMeaning(path: string, name: string): string {
  const [, parent = ''] = new RegExp(`/([^/:]+)/:${name}(?:/|$)`).exec(path) ?? [];
  return meaningsByParent[parent]?.[name] ?? pathMeanings[name] ?? '';
}

function pathParameters(path: string, example: Example | undefined): JsonObject[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    description: pathMeaning(path, name),
    schema: pathForms[name] ?? pathPart,
    ...exampleOf(example?.path?.[name]),
  }));
}

function queryParameters({ query }: Route, example: Example | undefined): JsonObject[] {
  if (!query) return [];
  const { properties = {}, required = [] } = requestSchema(query);
  return Object.entries(properties ?? {}).map(([name, member]) => {
    const { description, ...schema } = isJsonObject(member) ? member : {};
    const isRequired = Array.isArray(required) && required.includes(name);
    return {
      name,
      in: 'query',
      ...(isRequired ? { required: true } : {}),
      ...(description === undefined ? {} : { description }),
      schema,
      ...exampleOf(example?.query?.[name]),
    };
  });
}

/** Calls that read a session from the header also read it from the query. */
const sessionParameter = ({ session }: Route): JsonObject[] =>
  session === undefined ? [] : [{ $ref: '#/components/parameters/SessionToken' }];

/** `X-LC-Prod` applies to pushes and to calls that a function host handles. */
const headerParameters = ({ limit, forwardsBody }: Route): JsonObject[] =>
  limit.rate === 'push' || forwardsBody ? [{ $ref: '#/components/parameters/Prod' }] : [];

function bodyOf(route: Route, example: Example | undefined): JsonObject {
  const { limit, body, hasRawBody, forwardsBody, isBodyRequired, method } = route;
  if (limit.bodyBytesBelow === 0) return {};
  const own = exampleOf(example?.body);
  if (hasRawBody) return { requestBody: { content: { '*/*': { schema: {}, ...own } } } };
  if (forwardsBody)
    return { requestBody: { content: { 'application/json': { schema: {}, ...own } } } };
  if (!body) return {};
  const schema = requestSchema(body);
  const isRequired = isBodyRequired || (method !== 'DELETE' && Array.isArray(schema.required));
  return {
    requestBody: {
      ...(isRequired ? { required: true } : {}),
      content: { 'application/json': { schema: { type: 'object', ...schema }, ...own } },
    },
  };
}

/** Sentences that follow from a route's access. */
const callers: Record<Access, string> = {
  none: 'Needs no credentials.',
  login: 'Needs a token of the admin API or a login code in the body.',
  admin: 'Needs a token or a session of the admin API.',
  app: 'Needs the app key or the master key of the app.',
  push: 'Needs the master key. The app key is enough if `forbidClientPush` is off.',
  master: 'Needs the master key of the app.',
  scan: 'Needs the master key of the app. The app key is refused with code 1.',
};

const sessions = {
  optional: 'Uses the session token of a user if the call has one.',
  required: 'Needs the session token of a user, or the master key.',
} as const;

/**
 * Returns the description of a route's operation in `/openapi.json`. It states who may call it, its
 * limits of body and rate, whether it is audited, and whether a batch may contain it. Every
 * sentence follows from the declaration of the route.
 */
export function descriptionOf(route: Route): string {
  return [callerOf(route), ...limitsOf(route), ...effectsOf(route)].join(' ');
}

/** Returns sentences that state who may call a route. */
export function callerOf({ auth, role, session, paths, isPublic }: Route): string {
  if (paths.includes('/metrics')) return 'Needs `METRICS_TOKEN` if the service has one.';
  if (auth === 'none' && !isPublic) return 'Needs the secret that is part of the path.';
  const sentences = [
    callers[auth],
    ...(role === undefined ? [] : [`The lowest role that may call it is \`${role}\`.`]),
    ...(session === undefined ? [] : [sessions[session]]),
  ];
  return sentences.join(' ');
}

function limitsOf({ limit, role }: Route): string[] {
  const { bodyBytesBelow, rate, weight = 1 } = limit;
  const isWeighted = role !== undefined && weight > 1;
  return [
    ...(bodyBytesBelow === 0 ? [] : [`The body has at most ${bodyBytesBelow - 1} bytes.`]),
    ...(rate === 'push' ? ['Counts for the option `pushCallsPerMinute` of the app.'] : []),
    ...(isWeighted ? [`Counts as ${weight} calls for the limit of the token.`] : []),
  ];
}

function effectsOf({ method, role, changesNothing, isBatch, isBatchable }: Route): string[] {
  const isAudited = role !== undefined && method !== 'GET' && !changesNothing;
  return [
    ...(isAudited ? ['A change is recorded in the audit.'] : []),
    ...(isBatchable && !isBatch ? ['A batch may contain this call.'] : []),
  ];
}

/** Kind of a credential. The recorded request has its header. */
export type ExampleCredential = 'appKey' | 'masterKey' | 'session' | 'adminToken';

/** Request and reply that a test recorded (`docs/examples.json`). */
export interface Example {
  /** Status of the reply. */
  status: number;
  /** Credentials of the request. Absent for a call that needs none. */
  credentials?: readonly ExampleCredential[];
  /** Parameters in the path. */
  path?: Record<string, string>;
  query?: Record<string, string | number>;
  body?: Json;
  reply?: Json;
}

/** Examples by operation. An alias has the examples of its first path. */
export type Examples = Record<string, Example>;

/**
 * Reads the examples. They are a separate module, so that they are loaded only when somebody reads
 * the description.
 */
export async function loadExamples(): Promise<Examples> {
  const file: { default: unknown } = await import('../../docs/examples.json', {
    with: { type: 'json' },
  });
  // A test compares the file with the replies of the service.
  return file.default as Examples;
}

/** Returns `{ example }`, or an empty object if the operation has no example. */
export const exampleOf = (example: Json | undefined): { example?: Json } =>
  example === undefined ? {} : { example };
