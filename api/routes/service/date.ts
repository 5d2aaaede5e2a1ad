import { json, noBody, route } from '../../route.ts';

export default [
  // The time of the server, for clients whose own is wrong, before they sign anything by it (protocol/clients.md#server-time).
  route({
    method: 'GET',
    path: '/1.1/date',
    summary: 'Returns the time of the server.',
    auth: 'none',
    isInBatches: true,
    limit: noBody,
    handle: (_call, { date }) => json(date.now()),
  }),
];
