import { json, noBody, route, smallBody } from '../../route.ts';

/** Pushes that wait for their time (protocol/push.md#scheduled-pushes). */
export default [
  route({
    method: 'GET',
    path: '/1.1/scheduledPushMessages',
    summary: 'Lists pushes that wait for their `push_time`.',
    auth: 'master',
    limit: noBody,
    handle: async (call, { schedules }) => json({ results: await schedules.list(call.app) }),
  }),
  route({
    method: 'DELETE',
    path: '/1.1/scheduledPushMessages/:id',
    summary: 'Cancels a push that waits for its `push_time`.',
    auth: 'master',
    limit: smallBody,
    handle: async (call, { schedules }) => {
      await schedules.cancel(call.app, call.params.id ?? '');
      return json({});
    },
  }),
];
