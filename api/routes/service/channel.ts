import { z } from 'zod';
import { json, noBody, route } from '../../route.ts';

/** `installationId`, `secure`, `features` and others are sent too, and decide nothing here. */
const query = z.object({ appId: z.string().regex(/^[\w-]{1,64}$/, 'expected an application id') });

/** Routers: clients ask them before they connect, and take 403 and 404 for final (protocol/channel.md#router). */
export default [
  route({
    method: 'GET',
    path: '/v1/route',
    summary: 'Returns the WebSocket addresses of the device channel, in the form of JSON clients.',
    auth: 'none',
    limit: noBody,
    query,
    handle: async (call, { appRouter }) => json(await appRouter.socketRoute(call.query.appId)),
  }),
  route({
    method: 'GET',
    path: '/2/route',
    summary: 'Returns the hosts of the service, in the form of older SDKs.',
    auth: 'none',
    limit: noBody,
    query,
    handle: async (call, { appRouter }) => json(await appRouter.hosts(call.query.appId)),
  }),
];
