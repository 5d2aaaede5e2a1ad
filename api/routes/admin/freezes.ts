import { z } from 'zod';
import type { Freeze } from '../../../shared/db/tables/apps.ts';
import { freeze } from '../../replies/admin/service.ts';
import { resultsOf } from '../../replies/common.ts';
import { json, noBody, route, smallBody } from '../../route.ts';

/** Freezes of an app and of the whole service (protocol/admin-api.md#freezes). */
const ofService = '/console/api/freeze';
const ofApp = '/console/api/apps/:appId/freeze';

const maxReason = 200;

const reasonBody = z.strictObject({
  reason: z
    .string()
    .max(maxReason, `must have at most ${maxReason} characters`)
    .default('')
    .describe('Why, for the other operators.'),
});

const shown = ({ appId, reason, by, since }: Freeze) => ({ appId, reason, by, since: since.toISOString() });

export default [
  route({
    method: 'GET',
    path: '/console/api/freezes',
    operation: 'listFreezes',
    summary: 'Lists the freezes: apps whose pushes are held, and the whole service.',
    auth: 'admin',
    role: 'viewer',
    isFiltered: true,
    limit: noBody,
    reply: resultsOf(freeze),
    refusals: [],
    handle: async ({ operator }, { freezes }) => json({ results: (await freezes.list(operator)).map(shown) }),
  }),
  route({
    method: 'PUT',
    path: ofService,
    operation: 'freezeService',
    summary:
      'Freezes the service: pushes are accepted and held until it is released; those being sent stop within a second.',
    auth: 'admin',
    role: 'operator',
    limit: smallBody,
    body: reasonBody,
    reply: freeze,
    refusals: [],
    handle: async ({ operator, body }, { freezes }) =>
      json(shown(await freezes.freeze(operator, null, body.reason))),
  }),
  route({
    method: 'DELETE',
    path: ofService,
    operation: 'releaseService',
    summary: 'Ends the freeze of the service; the held pushes go on in their order. Returns the freeze.',
    auth: 'admin',
    role: 'operator',
    limit: noBody,
    reply: freeze,
    refusals: ['notFound'],
    handle: async (_call, { freezes }) => json(shown(await freezes.release(null))),
  }),
  route({
    method: 'PUT',
    path: ofApp,
    operation: 'freezeApp',
    summary:
      'Freezes an app: its pushes are accepted and held until it is released; those being sent stop within a second.',
    auth: 'admin',
    role: 'operator',
    limit: smallBody,
    body: reasonBody,
    reply: freeze,
    refusals: ['notFound'],
    handle: async ({ operator, params, body }, { freezes }) =>
      json(shown(await freezes.freeze(operator, params.appId ?? '', body.reason))),
  }),
  route({
    method: 'DELETE',
    path: ofApp,
    operation: 'releaseApp',
    summary: 'Ends the freeze of an app; its held pushes go on in their order. Returns the freeze.',
    auth: 'admin',
    role: 'operator',
    limit: noBody,
    reply: freeze,
    refusals: ['notFound'],
    handle: async ({ params }, { freezes }) => json(shown(await freezes.release(params.appId ?? ''))),
  }),
];
