import { z } from 'zod';
import { flagQuery } from '../../../shared/domain/client-values.ts';
import { devicesBody, queryBody } from '../../../shared/domain/pushes/body.ts';
import { pushBodyBytesBelow } from '../../../shared/domain/pushes/push.ts';
import { pushEventsBody } from '../../../shared/domain/pushes/push-events.ts';
import { parseLimit } from '../../../shared/query/list/page.ts';
import { pushProgress } from '../../replies/admin/pushes.ts';
import { empty, listOf, receiptReply, resultsOf } from '../../replies/common.ts';
import { acceptedDocument, acceptedPush, pushRecord, scheduledPush } from '../../replies/pushes.ts';
import { ofPush, ofQuery } from '../../replies/refusals.ts';
import { parsedByService } from '../../requests/checked.ts';
import { json, noBody, route, smallBody } from '../../route.ts';
import type { AcceptedPush } from '../../services/push/pushes.ts';

/**
 * Body limit of `POST /1.1/push/devices`: 500 ids of up to about 500 bytes each, and the message.
 */
const devicesBodyBytesBelow = 512 * 1024;

const accepted = (push: AcceptedPush) => json(acceptedDocument('en', push));

/** Query parameters of `GET /1.1/notifications`. */
const listQuery = z
  .object({
    limit: z
      .string()
      .optional()
      .describe(
        'Number of records: 1 to 1,000, and 0 with `count=1`. 100 by default and for any ' +
          'other value.',
      ),
    skip: z.coerce
      .number('expected a number')
      .int()
      .min(0)
      .max(10_000_000)
      .default(0)
      .describe('Number of records to skip.'),
    order: z
      .enum(['createdAt', '-createdAt'], 'expected createdAt or -createdAt')
      .optional()
      .describe('`-createdAt`, the default, lists the newest push first.'),
    count: flagQuery.describe('`1`: the reply contains the number of all matches.'),
    where: z.unknown().meta({ type: 'string' }).optional().describe('Condition as JSON.'),
  })
  .transform(({ limit, skip, order, count = false, where }) => ({
    limit: parseLimit(limit, count),
    skip,
    oldestFirst: order === 'createdAt',
    isCounted: count,
    where,
  }));

/**
 * Path to which gateways send delivery receipts (shared/callbacks.ts). Each connector parses the
 * format of its gateway.
 */
const receiptPath = '/callbacks/:connector/:appId/:secret';

/**
 * Body limit of a receipt call. A gateway merges at most 1,000 receipts into one call, which is
 * about 400 KB.
 */
const receiptBodyBytesBelow = 2 * 1024 * 1024;

const addressOf = ({ connector = '', appId = '', secret = '' }: Record<string, string>) => ({
  connector,
  appId,
  secret,
});

export default [
  route({
    method: 'POST',
    path: '/1.1/push',
    operation: 'sendPush',
    summary: 'Sends a push to all installations that match `where` and `channels`.',
    auth: 'push',
    limit: { rate: 'push', bodyBytesBelow: pushBodyBytesBelow, isObject: true },
    isBodyRequired: true,
    body: parsedByService(queryBody),
    reply: acceptedPush,
    refusals: [...ofPush],
    handle: async (call, { pushes }) => accepted(await pushes.send(call, call.body)),
  }),
  route({
    method: 'POST',
    path: '/1.1/push/devices',
    operation: 'sendPushToDevices',
    summary: 'Sends a push to up to 500 device ids.',
    auth: 'push',
    limit: { rate: 'push', bodyBytesBelow: devicesBodyBytesBelow, isObject: true },
    isBodyRequired: true,
    body: parsedByService(devicesBody),
    reply: acceptedPush,
    refusals: [...ofPush],
    handle: async (call, { pushes }) => accepted(await pushes.sendToDevices(call, call.body)),
  }),
  route({
    method: 'POST',
    path: '/1.1/push/events',
    operation: 'reportPushEvents',
    summary:
      'Counts that a device received, opened or dismissed messages. Needs the option `reportOpens`.',
    auth: 'app',
    limit: smallBody,
    isBodyRequired: true,
    body: pushEventsBody,
    reply: empty,
    refusals: ['objectNotFound', 'invalidParameter', 'notForClients', 'tooManyRequests'],
    handle: async ({ app, body }, { pushEvents }) => {
      await pushEvents.report(app, body);
      return json({});
    },
  }),
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
    handle: async (call, { pushRecords }) =>
      json(await pushRecords.get(call.app, call.params.id ?? '')),
  }),
  route({
    method: 'DELETE',
    path: '/1.1/notifications/:id',
    operation: 'deletePush',
    summary: 'Cancels an unfinished push.',
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
  route({
    method: 'POST',
    path: receiptPath,
    operation: 'takeReceipts',
    summary: 'Accepts delivery receipts of a gateway. The body has the gateway’s form.',
    auth: 'none',
    hasRawBody: true,
    limit: { bodyBytesBelow: receiptBodyBytesBelow },
    admit: (params, { receipts }) => receipts.authenticate(addressOf(params)),
    reply: receiptReply,
    refusals: ['notFound', 'unauthorized', 'tooManyRequests'],
    handle: async ({ params, raw }, { receipts, date }) => {
      const call = {
        headers: raw?.headers ?? {},
        body: raw?.text ?? '',
        receivedAtMs: date.nowMs(),
      };
      return json(await receipts.record(addressOf(params), call));
    },
  }),
  // Some gateways check the address with GET or HEAD before they use it.
  route({
    method: 'GET',
    path: receiptPath,
    operation: 'checkReceiptAddress',
    summary: 'Returns 200 if the address for receipts exists, otherwise 404.',
    auth: 'none',
    limit: noBody,
    admit: (params, { receipts }) => receipts.authenticate(addressOf(params)),
    reply: empty,
    refusals: ['notFound'],
    handle: () => json({}),
  }),
];
