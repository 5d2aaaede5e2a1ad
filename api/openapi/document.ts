import type { JsonObject } from '../../shared/domain/json.ts';
import { errorReply } from '../replies/common.ts';
import type { Route } from '../route.ts';
import { areaOf, areas, routesOf } from './areas.ts';
import { jsonReplies, replySchemas } from './json-schema.ts';
import {
  type Examples,
  operationOf,
  type SharedResponses,
  securitySchemes,
  templateOf,
} from './operation.ts';

const description = `Push delivery, accounts and verification codes of mobile apps. Refusals are \`{"code","error"}\`; a code may appear with several
HTTP statuses. Query members that hold conditions are JSON. Replies may carry members of the app's own where a schema says
\`additionalProperties\`.`;

/** Builds the OpenAPI 3.1 document of all routes with their examples. */
export function openApiDocument(routes: readonly Route[], examples: Examples): JsonObject {
  const schemas = replySchemas([errorReply, ...routes.flatMap(jsonReplies)]);
  const shared: SharedResponses = new Map();
  const paths = pathsOf(routes, (route, path) =>
    operationOf(route, path, { schemas, shared, examples }),
  );
  return {
    openapi: '3.1.1',
    info: {
      title: 'Carillon',
      version: '1.1',
      description,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'The server that hands out this document' }],
    tags: areas
      .filter((area) => routes.some((route) => areaOf(route) === area))
      .map(({ title, rules }) => ({
        name: title,
        description: `Rules: docs/reference/protocol/${rules}.md.`,
      })),
    paths,
    components: {
      schemas: schemas.named,
      responses: Object.fromEntries([...shared].sort(([a], [b]) => (a < b ? -1 : 1))),
      parameters: { Prod: prodParameter, SessionToken: sessionParameter },
      headers: { RetryAfter: retryAfter },
      securitySchemes,
    },
  };
}

const prodParameter = {
  name: 'X-LC-Prod',
  in: 'header',
  description:
    'Pushes: `0` sends to devices of the APNs sandbox, `1` to production. Cloud functions: ' +
    '`0` calls the staging host. Any other text counts as one of both.',
  schema: { type: 'string' },
};

const sessionParameter = {
  name: 'session_token',
  in: 'query',
  description: 'Session token of a user. It comes before the header `X-LC-Session`.',
  schema: { type: 'string' },
};

const retryAfter = {
  description: 'Seconds to wait, where the time is known.',
  schema: { type: 'integer', minimum: 0 },
};

/** Returns the operations by path and method. Paths are in the order of the reference. */
function pathsOf(
  routes: readonly Route[],
  operation: (route: Route, path: string) => JsonObject,
): Record<string, JsonObject> {
  const paths: Record<string, JsonObject> = {};
  for (const area of areas)
    for (const route of routesOf(area, routes))
      for (const path of route.paths) {
        const template = templateOf(path);
        paths[template] = {
          ...paths[template],
          [route.method.toLowerCase()]: operation(route, path),
        };
      }
  return paths;
}
