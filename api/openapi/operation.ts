import type { JsonObject } from '../../shared/domain/json.ts';
import { isJsonObject } from '../../shared/domain/json.ts';
import type { Route } from '../route.ts';
import { areaOf } from './areas.ts';
import { descriptionOf } from './description.ts';
import { type Example, type Examples, exampleOf } from './examples.ts';
import { type ReplySchemas, requestSchema } from './json-schema.ts';
import { responsesOf, type SharedResponses } from './responses.ts';
import { securityOf } from './security.ts';

/** Path in the form of the document: `/apps/:appId` becomes `/apps/{appId}`. */
export const templateOf = (path: string): string => path.replace(/:(\w+)/g, '{$1}');

/** Returns the operation of a route at one of its paths; paths after the first are aliases. */
export function operationOf(
  route: Route,
  path: string,
  parts: { schemas: ReplySchemas; shared: SharedResponses; examples: Examples },
): JsonObject {
  const place = route.paths.indexOf(path);
  // An alias has the examples of the first path.
  const example = parts.examples[route.operation];
  const parameters = [
    ...pathParameters(path, example),
    ...queryParameters(route, example),
    ...sessionParameter(route),
    ...headerParameters(route),
  ];
  return {
    operationId: `${route.operation}${place === 0 ? '' : `Alias${place === 1 ? '' : place}`}`,
    summary: route.summary,
    description: place === 0 ? descriptionOf(route) : sameAs(route),
    tags: [areaOf(route).title],
    ...(parameters.length > 0 ? { parameters } : {}),
    ...bodyOf(route, example),
    security: securityOf(route),
    responses: responsesOf(route, { ...parts, example }),
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
  className: { type: 'string', pattern: '^[A-Za-z_][A-Za-z0-9_]{0,127}$' },
  key: { type: 'string', enum: ['appKey', 'masterKey', 'hookKey'] },
};

function pathParameters(path: string, example: Example | undefined): JsonObject[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
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

/** Every call that reads a session reads it from the query too. */
const sessionParameter = ({ session }: Route): JsonObject[] =>
  session === undefined ? [] : [{ $ref: '#/components/parameters/SessionToken' }];

/** `X-LC-Prod` counts for pushes and for calls that a function host answers. */
const headerParameters = ({ limit, forwardsBody }: Route): JsonObject[] =>
  limit.rate === 'push' || forwardsBody ? [{ $ref: '#/components/parameters/Prod' }] : [];

function bodyOf(route: Route, example: Example | undefined): JsonObject {
  const { limit, body, hasRawBody, forwardsBody, isBodyRequired, method } = route;
  if (limit.bodyBytesBelow === 0) return {};
  const own = exampleOf(example?.body);
  if (hasRawBody) return { requestBody: { content: { '*/*': { schema: {}, ...own } } } };
  if (forwardsBody) return { requestBody: { content: { 'application/json': { schema: {}, ...own } } } };
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
