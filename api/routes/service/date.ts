import { serverTime } from '../../replies/server.ts';
import { json, noBody, route } from '../../route.ts';

export default [
  // Clients with a wrong clock need it to sign their requests (protocol/clients.md#server-time).
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
];
