import { z } from 'zod';
import { flagQuery } from '../../../shared/domain/plain-values.ts';
import { parseLimit } from '../../../shared/query/list/page.ts';
import { pushProgress } from '../../replies/admin/pushes.ts';
import { empty, listOf } from '../../replies/common.ts';
import { pushRecord } from '../../replies/pushes.ts';
import { ofQuery } from '../../replies/refusals.ts';
import { json, noBody, route, smallBody } from '../../route.ts';

const listQuery = z
  .object({
    limit: z
      .string()
      .optional()
      .describe(
        'Number of records: 1 to 1,000, and 0 with `count=1`; 100 by default and for any other value.',
      ),
    skip: z.coerce.number('expected a number').int().min(0).max(10_000_000).default(0),
    order: z.enum(['createdAt', '-createdAt'], 'expected createdAt or -createdAt').optional(),
    count: flagQuery,
    where: z.unknown().meta({ type: 'string' }).optional().describe('Condition as JSON.'),
  })
  .transform(({ limit, skip, order, count = false, where }) => ({
    limit: parseLimit(limit, count),
    skip,
    oldestFirst: order === 'createdAt',
    isCounted: count,
    where,
  }));

export default [
  route({
    method: 'GET',
    path: '/1.1/notifications',
    operation: 'listPushes',
    summary: 'Lists the records of pushes that meet `where`, newest first.',
    auth: 'master',
    limit: noBody,
    query: listQuery,
    reply: listOf(pushRecord),
    refusals: [...ofQuery],
    handle: async (call, { pushRecords }) => json(await pushRecords.list(call.app, call.query)),
  }),
  route({
    method: 'GET',
    path: ['/1.1/notifications/:id', '/1.1/tables/Notifications/:id'],
    operation: 'getPush',
    summary: 'Returns the record of a push: its status and counts.',
    auth: 'app',
    limit: noBody,
    reply: pushRecord,
    refusals: ['objectNotFound'],
    handle: async (call, { pushRecords }) => json(await pushRecords.get(call.app, call.params.id ?? '')),
  }),
  route({
    method: 'DELETE',
    path: '/1.1/notifications/:id',
    operation: 'deletePush',
    summary: 'Cancels a push that is not done.',
    auth: 'master',
    limit: smallBody,
    reply: empty,
    refusals: ['objectNotFound', 'conflict'],
    handle: async (call, { pushRecords, pushControl }) => {
      await pushRecords.get(call.app, call.params.id ?? '');
      await pushControl.cancel({ appId: call.app.appId, publicId: call.params.id ?? '' });
      return json({});
    },
  }),
  route({
    method: 'GET',
    path: '/console/api/apps/:appId/notifications/:id/progress',
    operation: 'getPushProgress',
    summary: 'Returns how far a push is: outcomes by connector, rate and time left.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    reply: pushProgress,
    refusals: ['objectNotFound'],
    handle: async (call, { pushRecords }) =>
      json(await pushRecords.progress(call.params.appId ?? '', call.params.id ?? '')),
  }),
];
