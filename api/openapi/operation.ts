import type { JsonObject } from '../../shared/domain/json.ts';
import { isJsonObject } from '../../shared/domain/json.ts';
import type { Route } from '../route.ts';
import { areaOf } from './areas.ts';
import { descriptionOf } from './description.ts';
import { type ReplySchemas, requestSchema } from './json-schema.ts';
import { responsesOf, type SharedResponses } from './responses.ts';
import { securityOf } from './security.ts';

/** Path in the form of the document: `/apps/:appId` becomes `/apps/{appId}`. */
export const templateOf = (path: string): string => path.replace(/:(\w+)/g, '{$1}');

/** Returns the operation of a route at one of its paths; paths after the first are aliases. */
export function operationOf(
  route: Route,
  path: string,
  { schemas, shared }: { schemas: ReplySchemas; shared: SharedResponses },
): JsonObject {
  const place = route.paths.indexOf(path);
  const parameters = [
    ...pathParameters(path),
    ...queryParameters(route),
    ...sessionParameter(route),
    ...headerParameters(route),
  ];
  return {
    operationId: `${route.operation}${place === 0 ? '' : `Alias${place === 1 ? '' : place}`}`,
    summary: route.summary,
    description: place === 0 ? descriptionOf(route) : sameAs(route),
    tags: [areaOf(route).title],
    ...(parameters.length > 0 ? { parameters } : {}),
    ...bodyOf(route),
    security: securityOf(route),
    responses: responsesOf(route, schemas, shared),
  };
}

/** Description of an alias: the first path and what holds for both. */
const sameAs = (route: Route): string =>
  `Same as \`${route.method} ${route.paths[0]}\`. ${descriptionOf(route)}`;

/** Any name or id that can be one part of a path (protocol/clients.md#paths). */
const pathPart = { type: 'string', pattern: '^(?!\\.{1,2}$)[^/\\\\\\x00]+$' };

/** Parameters of paths with a form of their own. */
const pathForms: Readonly<Record<string, JsonObject>> = {
  appId: { type: 'string', pattern: '^[A-Za-z0-9_-]{1,64}$' },
  objectId: { type: 'string', pattern: '^[A-Za-z0-9_-]{1,64}$' },
  className: { type: 'string', pattern: '^[A-Za-z_][A-Za-z0-9_]{0,127}$' },
  key: { type: 'string', enum: ['appKey', 'masterKey', 'hookKey'] },
};

function pathParameters(path: string): JsonObject[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    schema: pathForms[name] ?? pathPart,
  }));
}

function queryParameters({ documented }: Route): JsonObject[] {
  if (!documented.query) return [];
  const { properties = {}, required = [] } = requestSchema(documented.query);
  return Object.entries(properties ?? {}).map(([name, member]) => {
    const { description, ...schema } = isJsonObject(member) ? member : {};
    const isRequired = Array.isArray(required) && required.includes(name);
    return {
      name,
      in: 'query',
      ...(isRequired ? { required: true } : {}),
      ...(description === undefined ? {} : { description }),
      schema,
    };
  });
}

/** Every call that reads a session reads it from the query too. */
const sessionParameter = ({ session }: Route): JsonObject[] =>
  session === undefined ? [] : [{ $ref: '#/components/parameters/SessionToken' }];

/** `X-LC-Prod` counts for pushes and for calls that a function host answers. */
const headerParameters = ({ limit, forwardsBody }: Route): JsonObject[] =>
  limit.rate === 'push' || forwardsBody ? [{ $ref: '#/components/parameters/Prod' }] : [];

function bodyOf(route: Route): JsonObject {
  const { limit, documented, hasRawBody, forwardsBody, isBodyRequired, method } = route;
  if (limit.bodyBytesBelow === 0) return {};
  if (hasRawBody) return { requestBody: { content: { '*/*': { schema: {} } } } };
  if (forwardsBody) return { requestBody: { content: { 'application/json': { schema: {} } } } };
  if (!documented.body) return {};
  const schema = requestSchema(documented.body);
  const isRequired = isBodyRequired || (method !== 'DELETE' && Array.isArray(schema.required));
  return {
    requestBody: {
      ...(isRequired ? { required: true } : {}),
      content: { 'application/json': { schema: { type: 'object', ...schema } } },
    },
  };
}
