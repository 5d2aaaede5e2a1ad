import { z } from 'zod';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import { queryBody } from '../../../../shared/domain/pushes/body.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import { scheduledEntry } from '../../../replies/admin/sending.ts';
import { empty, keysetPageOf } from '../../../replies/common.ts';
import { refusedAs } from '../../../requests/checked.ts';
import { json, noBody, operatorBody, route, smallBody } from '../../../route.ts';
import { pageQuery } from '../../../services/operator/lists/page.ts';

/** Pushes that wait for their `push_time` (protocol/admin-api.md#scheduled-pushes). */
const base = '/console/api/apps/:appId/scheduled';

const listQuery = z.object({
  limit: pageQuery.limit,
  cursor: z
    .string('expected one cursor')
    .regex(/^\d{1,15}-\d{1,10}$/, 'expected the `next` of a page before')
    .optional()
    .describe('`next` of the page before.'),
});

const { push_time, expiration_time, expiration_interval } = queryBody.shape;
const change = z
  .strictObject({
    push_time: refusedAs(push_time, { missing: 'invalidPushTime' }),
    expiration_time,
    expiration_interval,
  })
  .required({ push_time: true });

export default [
  route({
    method: 'GET',
    path: base,
    operation: 'listScheduledAppPushes',
    summary: 'Lists the pushes of an app that wait for their time, the next one first.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    query: listQuery,
    reply: keysetPageOf(scheduledEntry),
    refusals: ['notFound'],
    handle: async ({ operator, params, query }, { scheduled }) =>
      json(await scheduled.list(operator, params.appId ?? '', { limit: query.limit, cursor: query.cursor })),
  }),
  route({
    method: 'PATCH',
    path: `${base}/:id`,
    operation: 'moveScheduledAppPush',
    summary:
      'Moves a push that waits for its time. Its expiry stays unless the body has another one; the default of seven days moves with it.',
    auth: 'admin',
    role: 'sender',
    limit: operatorBody,
    body: change,
    reply: scheduledEntry,
    refusals: ['objectNotFound', 'invalidPushTime'],
    handle: async ({ operator, params, body }, { scheduled }) => {
      const { push_time: pushTime, expiration_time: time, expiration_interval: seconds } = body;
      if (!pushTime) throw refuse('invalidPushTime', detail('pushTimeRequired'));
      if (time && seconds) throw refuse('invalidParameter', detail('oneExpiry'));
      const expiration = { expirationTime: time ?? null, expirationSeconds: seconds ?? null };
      const times = { pushTime, ...expiration };
      return json(await scheduled.move(operator, params.appId ?? '', params.id ?? '', times));
    },
  }),
  route({
    method: 'DELETE',
    path: `${base}/:id`,
    operation: 'cancelScheduledAppPush',
    summary: 'Cancels a push that waits for its time.',
    auth: 'admin',
    role: 'sender',
    limit: smallBody,
    reply: empty,
    refusals: ['objectNotFound'],
    handle: async ({ operator, params }, { scheduled }) => {
      await scheduled.cancel(operator, params.appId ?? '', params.id ?? '');
      return json({});
    },
  }),
];
