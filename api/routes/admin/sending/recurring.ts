import { z } from 'zod';
import { jsonObject } from '../../../../shared/domain/json-schema.ts';
import { recurringPush, recurringTimes, sentPush } from '../../../replies/admin/sending.ts';
import { empty, keysetPageOf } from '../../../replies/common.ts';
import { ofPush } from '../../../replies/refusals.ts';
import { json, noBody, operatorBody, route, smallBody } from '../../../route.ts';
import { pageOf, pageQuery, timeQuery } from '../../../services/operator/lists/page.ts';

/** Recurring pushes of an app (protocol/admin-api.md#recurring-pushes). */
const base = '/console/api/apps/:appId/recurring-pushes';

const listQuery = z.object(pageQuery);

const time = timeQuery.unwrap().nullable();

const recurrence = {
  expression: z
    .string('expected a cron expression')
    .describe('Cron expression of five fields, of at most 100 characters.'),
  timeZone: z
    .string('expected an IANA time zone')
    .max(64)
    .describe('IANA time zone of the expression.'),
  startsAt: time.describe('Time before which no push is made.'),
  endsAt: time.describe('Time from which no push is made.'),
};

const definition = {
  name: z.string('expected a name').describe('Name of 1 to 100 characters, unique in the app.'),
  ...recurrence,
  body: jsonObject.describe(
    'Body of each push, without `push_time`, `expiration_time` and `req_id`.',
  ),
  isEnabled: z
    .boolean('expected true or false')
    .describe('Whether pushes are made. The default is true.'),
};

const createBody = z.strictObject({
  ...definition,
  startsAt: recurrence.startsAt.default(null),
  endsAt: recurrence.endsAt.default(null),
  isEnabled: definition.isEnabled.default(true),
});

const changeBody = z.strictObject(definition).partial();

const previewBody = z.strictObject({
  ...recurrence,
  startsAt: recurrence.startsAt.default(null),
  endsAt: recurrence.endsAt.default(null),
  count: z
    .int('expected a whole number')
    .min(1)
    .max(50, 'must be at most 50')
    .default(10)
    .describe('Maximum number of times.'),
});

const nameOf = (params: Record<string, string>) => ({ appId: params.appId ?? '', id: params.id });

export default [
  route({
    method: 'GET',
    path: base,
    operation: 'listRecurringPushes',
    summary: 'Lists the recurring pushes of an app, newest first.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    query: listQuery,
    reply: keysetPageOf(recurringPush),
    refusals: ['notFound'],
    handle: async ({ operator, params, query }, { recurring }) =>
      json(await recurring.list(operator, params.appId ?? '', pageOf(query))),
  }),
  route({
    method: 'POST',
    path: base,
    operation: 'createRecurringPush',
    summary: 'Creates a recurring push, which sends a push at each time of its cron expression.',
    auth: 'admin',
    role: 'sender',
    limit: operatorBody,
    isBodyRequired: true,
    body: createBody,
    status: 201,
    reply: recurringPush,
    refusals: ['notFound', 'duplicate', ...ofPush],
    handle: async ({ operator, params, body }, { recurring }) =>
      json(await recurring.create(operator, params.appId ?? '', body), { status: 201 }),
  }),
  route({
    method: 'POST',
    path: `${base}/preview`,
    operation: 'previewRecurringPush',
    summary:
      'Returns the next times of a cron expression, in UTC and in its time zone, and stores ' +
      'nothing.',
    auth: 'admin',
    role: 'viewer',
    changesNothing: true,
    // A body is required because the search for an expression's times takes up to twenty
    // milliseconds.
    limit: { ...smallBody, weight: 20 },
    isBodyRequired: true,
    body: previewBody,
    reply: recurringTimes,
    refusals: [],
    handle: async ({ body: { count, ...request } }, { recurring }) =>
      json(await recurring.preview(request, count)),
  }),
  route({
    method: 'GET',
    path: `${base}/:id`,
    operation: 'getRecurringPush',
    summary: 'Returns a recurring push.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    reply: recurringPush,
    refusals: ['notFound', 'objectNotFound'],
    handle: async ({ operator, params }, { recurring }) =>
      json(await recurring.get(operator, nameOf(params))),
  }),
  route({
    method: 'PATCH',
    path: `${base}/:id`,
    operation: 'changeRecurringPush',
    summary:
      'Changes members of a recurring push, or enables or disables it. New times apply from ' +
      'now on.',
    auth: 'admin',
    role: 'sender',
    limit: operatorBody,
    isBodyRequired: true,
    body: changeBody,
    reply: recurringPush,
    refusals: ['notFound', 'duplicate', ...ofPush],
    handle: async ({ operator, params, body }, { recurring }) =>
      json(await recurring.change(operator, nameOf(params), body)),
  }),
  route({
    method: 'DELETE',
    path: `${base}/:id`,
    operation: 'deleteRecurringPush',
    summary: 'Deletes a recurring push. The pushes that it made stay.',
    auth: 'admin',
    role: 'sender',
    limit: smallBody,
    reply: empty,
    refusals: ['notFound', 'objectNotFound'],
    handle: async ({ operator, params }, { recurring }) => {
      await recurring.delete(operator, nameOf(params));
      return json({});
    },
  }),
  route({
    method: 'POST',
    path: `${base}/:id/start`,
    operation: 'startRecurringPush',
    summary:
      'Sends a push from a recurring push now. Its times do not change. `Idempotency-Key` is ' +
      'the `req_id` of the push.',
    auth: 'admin',
    role: 'sender',
    limit: smallBody,
    status: 201,
    reply: sentPush,
    refusals: ['notFound', ...ofPush],
    handle: async ({ operator, params, idempotencyKey }, { recurring }) => {
      const { createdAt, ...sent } = await recurring.start(
        operator,
        nameOf(params),
        idempotencyKey,
      );
      const { objectId, status } = sent;
      return json({ objectId, createdAt: createdAt.toISOString(), status }, { status: 201 });
    },
  }),
];
