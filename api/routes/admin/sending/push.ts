import { z } from 'zod';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import type { Json } from '../../../../shared/domain/json.ts';
import { devicesBody, queryBody } from '../../../../shared/domain/pushes/body.ts';
import type { Language } from '../../../../shared/domain/texts/catalogue.ts';
import { detail, writeText } from '../../../../shared/domain/texts/texts.ts';
import {
  audience,
  movedAudience,
  sampledField,
  sampledValue,
  scheduledEntry,
  sentPush,
} from '../../../replies/admin/sending.ts';
import { empty, keysetPageOf, resultsOf } from '../../../replies/common.ts';
import { acceptedDocument } from '../../../replies/pushes.ts';
import { ofPush } from '../../../replies/refusals.ts';
import {
  parsedByService,
  partParsedByService,
  presentMembers,
  refusedAs,
} from '../../../requests/checked.ts';
import { json, noBody, operatorBody, type Reply, route, smallBody } from '../../../route.ts';
import { pageQuery } from '../../../services/operator/lists/page.ts';
import type { SentPush } from '../../../services/operator/sending/sending.ts';
import type { MovedAudience } from '../../../services/push/explain/dry-run.ts';

/** Body limit of a call with ids, as for POST /1.1/push/devices. */
const bodyBytesBelow = 512 * 1024;

const sendQuery = z.object({
  undoSeconds: z.coerce
    .number('expected a number of seconds')
    .int('expected whole seconds')
    .min(0)
    .max(60, 'must be at most 60')
    .default(0)
    .describe('Seconds by which the push is delayed, so that it can be cancelled.'),
});

/** Returns the reply to an accepted push. */
const sent = (language: Language, push: SentPush): Reply =>
  json({ ...acceptedDocument(language, push), status: push.status }, { status: 201 });

function moved(language: Language, { devices, explained, digest }: MovedAudience): Reply {
  const text =
    explained === undefined
      ? detail('noDryRun', { devices })
      : detail('audienceMoved', { devices, explained });
  const error = writeText('details', text, language);
  return json({ code: 409, error, devices, explained: explained ?? null, digest }, { status: 409 });
}

/** Path of pushes that wait for their `push_time` (protocol/admin-api.md#scheduled-pushes). */
const base = '/console/api/apps/:appId/scheduled';

const listQuery = z.object({
  limit: pageQuery.limit,
  cursor: z
    .string('expected one cursor')
    .regex(/^\d{1,15}-\d{1,10}$/, 'expected the `next` of a page before')
    .optional()
    .describe('`next` of the previous page.'),
});

const { push_time, expiration_time, expiration_interval } = queryBody.shape;
const change = z
  .strictObject({
    push_time: refusedAs(push_time, { missing: 'invalidPushTime' }),
    expiration_time,
    expiration_interval,
  })
  .required({ push_time: true });

const members = {
  ...queryBody.pick({ where: true, cql: true, channels: true, prod: true, topic: true }).shape,
  ...devicesBody.pick({ device_ids: true, device_type: true, device_profile: true, vendor: true })
    .shape,
};

/**
 * Members of the target of a push (protocol/admin-api.md#audience). The service parses them in the
 * same way as for a push.
 */
const targetMembers: Record<string, z.ZodType<Json | undefined>> = Object.fromEntries(
  Object.entries(members).map(([name, schema]) => [name, partParsedByService(schema).optional()]),
);

const target = z.strictObject({
  ...targetMembers,
  sample: z
    .int('expected a whole number')
    .min(0)
    .max(20, 'must be at most 20')
    .default(0)
    .describe('Number of devices to return.'),
  clauses: z
    .boolean('expected true or false')
    .default(false)
    .describe('True to also count the audience without each clause.'),
});

/** Query parameters of the suggestions for conditions (protocol/admin-api.md#suggestions). */
const query = z.object({
  prefix: z
    .string('expected one prefix')
    .max(100)
    .refine((text) => !text.includes('\0'), 'must not hold NUL')
    .default('')
    .describe('Prefix of the names.'),
});

export default [
  route({
    method: 'POST',
    path: '/console/api/apps/:appId/push',
    operation: 'sendAppPush',
    summary:
      'Sends a push. The body is the same as for `POST /1.1/push` or `POST /1.1/push/devices`. ' +
      '`Idempotency-Key` is its `req_id`. With the digest of a dry run in ' +
      '`X-Carillon-Explained`, 409 if the audience changed by more than 5 %.',
    auth: 'admin',
    role: 'sender',
    limit: { rate: 'push', bodyBytesBelow, isObject: true },
    isBodyRequired: true,
    query: sendQuery,
    body: parsedByService(z.union([queryBody, devicesBody])),
    status: 201,
    reply: { 201: sentPush, 409: movedAudience },
    refusals: ['notFound', ...ofPush],
    handle: async (call, { sending }) => {
      const { operator, params, body, bodyBytes, prodHeader, idempotencyKey, explained } = call;
      const request = { body, bodyBytes, prodHeader, idempotencyKey, explained, ...call.query };
      const result = await sending.send(operator, params.appId ?? '', request);
      return 'objectId' in result ? sent(call.language, result) : moved(call.language, result);
    },
  }),
  route({
    method: 'GET',
    path: base,
    operation: 'listScheduledAppPushes',
    summary: 'Lists the scheduled pushes of an app, earliest first.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    query: listQuery,
    reply: keysetPageOf(scheduledEntry),
    refusals: ['notFound'],
    handle: async ({ operator, params, query }, { scheduled }) =>
      json(
        await scheduled.list(operator, params.appId ?? '', {
          limit: query.limit,
          cursor: query.cursor,
        }),
      ),
  }),
  route({
    method: 'PATCH',
    path: `${base}/:id`,
    operation: 'moveScheduledAppPush',
    summary:
      'Changes the time of a scheduled push. Its expiry stays unless the body sets one. The ' +
      'default expiry of seven days moves with the push.',
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
    summary: 'Cancels a scheduled push.',
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
  route({
    method: 'POST',
    path: '/console/api/apps/:appId/audience',
    operation: 'countAudience',
    summary: 'Counts by connector the devices that a push with this target would reach.',
    auth: 'admin',
    role: 'viewer',
    changesNothing: true,
    limit: operatorBody,
    body: target,
    reply: audience,
    refusals: ['notFound', ...ofPush],
    handle: async (
      { operator, params, body, prodHeader, disconnected },
      { audience: audiences },
    ) => {
      const { sample, clauses, ...targetBody } = body;
      const request = {
        target: presentMembers(targetBody),
        sample,
        clauses,
        prodHeader,
        disconnected,
      };
      return json(await audiences.count(operator, params.appId ?? '', request));
    },
  }),
  route({
    method: 'GET',
    path: '/console/api/apps/:appId/fields',
    operation: 'suggestFields',
    summary: 'Lists members of the newest 2000 installations with their most frequent values.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    query,
    reply: resultsOf(sampledField),
    refusals: ['notFound'],
    handle: async (call, { suggestions }) =>
      json({
        results: await suggestions.fields(
          call.operator,
          call.params.appId ?? '',
          call.query.prefix,
        ),
      }),
  }),
  route({
    method: 'GET',
    path: '/console/api/apps/:appId/channels',
    operation: 'suggestChannels',
    summary: 'Lists channels of the newest 2000 installations, most frequent first.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    query,
    reply: resultsOf(sampledValue),
    refusals: ['notFound'],
    handle: async (call, { suggestions }) =>
      json({ results: await suggestions.channels(call.params.appId ?? '', call.query.prefix) }),
  }),
];
