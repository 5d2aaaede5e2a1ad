import { createHash } from 'node:crypto';
import { z } from 'zod';
import { openApiDocument } from '../../openapi/document.ts';
import { loadExamples } from '../../openapi/operation.ts';
import { hosts, processStatus, serverTime, socketRoute } from '../../replies/common.ts';
import { json, noBody, type Reply, route } from '../../route.ts';
import { loadRoutes } from '../../route-loader.ts';

/**
 * Query of the router calls. Clients also send `installationId`, `secure`, `features` and other
 * parameters, which are ignored.
 */
const query = z.object({
  appId: z
    .string()
    .regex(/^[\w-]{1,64}$/, 'expected an application id')
    .describe('Id of the app.'),
});

/** Media type of `/openapi.json`. */
const contentType = 'application/json; charset=utf-8';

interface Document {
  text: string;
  headers: Record<string, string>;
}

let document: Promise<Document> | undefined;

/** Builds the OpenAPI document at the first request. Later replies reuse its text. */
async function build(): Promise<Document> {
  const text = JSON.stringify(openApiDocument(await loadRoutes(), await loadExamples()));
  const etag = `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`;
  return { text, headers: { ETag: etag, 'Cache-Control': 'public, max-age=3600' } };
}

export default [
  route({
    method: 'GET',
    path: '/v1/route',
    operation: 'getSocketRoute',
    summary: 'Returns the WebSocket addresses of the device channel, in the form of JSON clients.',
    auth: 'none',
    limit: noBody,
    query,
    reply: socketRoute,
    refusals: ['notFound', 'unavailable'],
    handle: async (call, { appRouter }) => json(await appRouter.socketRoute(call.query.appId)),
  }),
  route({
    method: 'GET',
    path: '/2/route',
    operation: 'getHosts',
    summary: 'Returns the hosts of the service, in the form of older SDKs.',
    auth: 'none',
    limit: noBody,
    query,
    reply: hosts,
    refusals: ['notFound', 'unavailable'],
    handle: async (call, { appRouter }) => json(await appRouter.hosts(call.query.appId)),
  }),
  // Clients with a wrong clock use this time to sign their requests
  // (protocol/clients.md#server-time).
  route({
    method: 'GET',
    path: '/1.1/date',
    operation: 'getServerTime',
    summary: 'Returns the time of the server.',
    auth: 'none',
    isBatchable: true,
    limit: noBody,
    reply: serverTime,
    refusals: [],
    handle: (_call, { date }) => json(date.now()),
  }),
  route({
    method: 'GET',
    path: '/healthz',
    operation: 'getHealth',
    summary: 'Returns 200 while the process is running.',
    auth: 'none',
    limit: noBody,
    reply: processStatus,
    refusals: [],
    handle: () => json({ status: 'ok' }),
  }),
  route({
    method: 'GET',
    path: '/readyz',
    operation: 'getReadiness',
    summary: 'Returns 200 `ready` if the process can serve calls, otherwise 503.',
    auth: 'none',
    limit: noBody,
    reply: { 200: processStatus, 503: processStatus },
    refusals: [],
    handle: async (_call, { health }) => {
      const status = await health.readiness();
      return json({ status }, { status: status === 'ready' ? 200 : 503 });
    },
  }),
  route({
    method: 'GET',
    path: '/metrics',
    operation: 'getMetrics',
    summary:
      'Returns the metrics for Prometheus. Requires `METRICS_TOKEN`. If it is not set, only ' +
      'callers on the same machine get a reply.',
    auth: 'none',
    limit: noBody,
    hasRawBody: true,
    reply: { 200: { contentType: 'text/plain' } },
    refusals: ['unauthorized', 'unavailable'],
    handle: async ({ raw }, { health }) => {
      const { text, type } = await health.metrics({ headers: {}, socketAddress: '', ...raw });
      return { body: text, type };
    },
  }),
  route({
    method: 'GET',
    path: '/openapi.json',
    operation: 'getOpenApiDocument',
    summary: 'Returns the description of this API as OpenAPI 3.1.',
    auth: 'none',
    limit: noBody,
    hasRawBody: true,
    reply: { 200: { contentType } },
    refusals: [],
    handle: async ({ raw }): Promise<Reply> => {
      document ??= build().catch((error: unknown) => {
        document = undefined;
        throw error;
      });
      const { text, headers } = await document;
      const isKnown = raw?.headers['if-none-match'] === headers.ETag;
      return isKnown
        ? { status: 304, headers, body: '' }
        : { body: text, type: contentType, headers };
    },
  }),
];
