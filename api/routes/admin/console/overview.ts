import { z } from 'zod';
import { moveInState } from '../../../replies/admin/gateways.ts';
import { meta, overview, queueState } from '../../../replies/admin/records.ts';
import { resultsOf } from '../../../replies/common.ts';
import { json, noBody, route } from '../../../route.ts';

/** Calls of the console's first pages (protocol/admin-api.md#overview). */
const base = '/console/api';

const appQuery = z.object({
  app: z.string('expected one app').max(64).optional().describe('Only this app.'),
});

export default [
  route({
    method: 'GET',
    path: `${base}/meta`,
    operation: 'getMeta',
    summary:
      'Describes the service: version, connectors with their credentials, options and the ' +
      'body of a push.',
    auth: 'admin',
    role: 'viewer',
    isFiltered: true,
    limit: noBody,
    reply: meta,
    refusals: [],
    handle: ({ remoteAddress }, services) => json(services.meta.read(remoteAddress)),
  }),
  route({
    method: 'GET',
    path: `${base}/overview`,
    operation: 'getOverview',
    summary:
      'Returns the state of one app or of all apps: running pushes, today, open breakers, ' +
      'credentials that expire.',
    auth: 'admin',
    role: 'viewer',
    isFiltered: true,
    limit: noBody,
    query: appQuery,
    reply: overview,
    refusals: ['notFound'],
    handle: async ({ operator, query }, services) =>
      json(await services.overview.read(operator, query.app)),
  }),
  route({
    method: 'GET',
    path: `${base}/apps/:appId/move-in`,
    operation: 'getMoveIn',
    summary:
      'Returns the progress of an app’s move: steps, devices by day, gateways, the last import.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    reply: moveInState,
    refusals: ['notFound', 'timedOut'],
    handle: async ({ params }, { moveIn }) => json(await moveIn.read(params.appId ?? '')),
  }),
  route({
    method: 'GET',
    path: `${base}/queues`,
    operation: 'listQueues',
    summary: 'Lists the queues of the dispatchers with their jobs.',
    auth: 'admin',
    role: 'viewer',
    isFiltered: true,
    limit: noBody,
    reply: resultsOf(queueState),
    refusals: [],
    handle: async (_call, { queues }) => json({ results: await queues.list() }),
  }),
];
