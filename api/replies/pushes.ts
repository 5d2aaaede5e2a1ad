import { z } from 'zod';
import { connectorIds, successField } from '../../shared/domain/labels.ts';
import { outcomes } from '../../shared/domain/outcome.ts';
import { component, count, stored, timestamp } from './common.ts';

export const document = z.record(z.string(), z.unknown());

export const acceptedPush = component(
  'AcceptedPush',
  z.strictObject({
    objectId: stored.objectId,
    createdAt: timestamp,
    warnings: z
      .array(z.string())
      .optional()
      .describe('Messages about members that have no effect.'),
  }),
);

export const outcomeTotals = component(
  'OutcomeTotals',
  z.partialRecord(z.enum(outcomes), count).describe('Recipients by outcome; an absent one is 0.'),
);

export const variableCounts = z
  .array(
    z.strictObject({
      name: z.string(),
      devices: count,
      fallback: count.describe('Those who get the default: they have no such field.'),
    }),
  )
  .optional()
  .describe('Of a push with `variables`: its recipients by variable, as far as it is planned.');

export const languageCounts = z
  .array(
    z.strictObject({
      language: z.string().nullable().describe('Tag of a translation; null for `data` as it is.'),
      devices: count,
      fallback: count.describe(
        'Those whose `locale` is only close to the language; of null, all: no translation fits.',
      ),
    }),
  )
  .optional()
  .describe('Of a push with `languages`: its recipients by language, as far as it is planned.');

const successes = Object.fromEntries(
  connectorIds.map((id) => [successField(id), count.optional()] as const),
);

export const pushRecord = component(
  'PushRecord',
  z.strictObject({
    ...stored,
    notificationId: z.string(),
    msg: document.describe('`data` of the push.'),
    where: document.describe('Condition on installations.'),
    prod: z.enum(['dev', 'prod']),
    status: z
      .string()
      .describe(
        '`in-queue`, `scheduled`, `done`, for the operator also `paused` or `cancelled`, or the error.',
      ),
    devices: count.describe('Recipients.'),
    successes: count.describe('Sum of the successes by connector.'),
    ...successes,
    delivered: count.describe('Devices that the push reached, as gateways reported afterwards.'),
    clicked: count.describe(
      'Devices on which the push was opened, as gateways reported afterwards.',
    ),
    invalidTokens: count,
    outcomes: outcomeTotals,
    repeats: count.describe('Recipients that were sent to again because a request got no answer.'),
    displaced: count.describe(
      'Devices of the device channel whose message was dropped for newer ones: a device has 100 pending messages at most.',
    ),
    quietWaits: count
      .optional()
      .describe(
        'Recipients that waited, or wait, for the end of their quiet hours; absent for none.',
      ),
    keptTokens: z
      .array(
        z.strictObject({
          connector: z.enum(connectorIds),
          profile: z.string(),
          answers: count.describe('Recipients that the gateway answered for.'),
          invalid: count.describe('Of those, tokens that it called invalid.'),
          kept: count.describe('Of the invalid ones, tokens whose devices were not deleted.'),
          reason: z.string().describe('Most frequent reason.'),
        }),
      )
      .optional()
      .describe(
        'Profiles of which most tokens are called invalid, so that devices were not deleted; absent for none, and after `delete-invalid`.',
      ),
    errors: z
      .string()
      .describe('Why the push failed, or which gateways an open push waits for; else empty.'),
    'from-service': z.string(),
    'push-time': timestamp,
    languages: languageCounts,
    variables: variableCounts,
  }),
);

export const scheduledPush = component(
  'ScheduledPush',
  z.strictObject({
    id: z.int().describe('Number that cancels the push.'),
    expire_time: z.int().describe('Time of the push, in ms since 1970.'),
    push_msg: z.strictObject({
      'through?': z.boolean().nullable().describe('`silent` of the push.'),
      'app-id': z.string(),
      where: z.strictObject({ sort: z.strictObject({ createdAt: z.literal(1) }), query: document }),
      prod: z.enum(['dev', 'prod']),
      'api-version': z.literal('1.1'),
      msg: document,
      id: z.string(),
      notificationId: z.string(),
    }),
    createdAt: timestamp,
  }),
);
