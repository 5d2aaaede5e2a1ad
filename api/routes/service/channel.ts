import { z } from 'zod';
import { hosts, socketRoute } from '../../replies/server.ts';
import { json, noBody, route } from '../../route.ts';

/** Query of routers; clients also send `installationId`, `secure`, `features` and others, which have no effect. */
const query = z.object({ appId: z.string().regex(/^[\w-]{1,64}$/, 'expected an application id') });

/** Routers: clients call them before they connect, and do not retry after 403 and 404 (protocol/channel.md#router). */
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
];
