import { empty, resultsOf } from '../../replies/common.ts';
import { scheduledPush } from '../../replies/pushes.ts';
import { json, noBody, route, smallBody } from '../../route.ts';

/** Pushes with a `push_time` that is yet to come (protocol/push.md#scheduled-pushes). */
export default [
  route({
    method: 'GET',
    path: '/1.1/scheduledPushMessages',
    operation: 'listScheduledPushes',
    summary: 'Lists pushes that wait for their `push_time`.',
    auth: 'master',
    limit: noBody,
    reply: resultsOf(scheduledPush),
    refusals: [],
    handle: async (call, { schedules }) => json({ results: await schedules.list(call.app) }),
  }),
  route({
    method: 'DELETE',
    path: '/1.1/scheduledPushMessages/:id',
    operation: 'cancelScheduledPush',
    summary: 'Cancels a push that waits for its `push_time`.',
    auth: 'master',
    limit: smallBody,
    reply: empty,
    refusals: ['objectNotFound', 'conflict'],
    handle: async (call, { schedules }) => {
      await schedules.cancel(call.app, call.params.id ?? '');
      return json({});
    },
  }),
];
