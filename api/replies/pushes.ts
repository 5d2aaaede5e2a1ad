import { z } from 'zod';
import { brandOf, connectorIds, successField } from '../../shared/domain/labels.ts';
import { outcomes } from '../../shared/domain/outcome.ts';
import type { Language } from '../../shared/domain/texts/catalogue.ts';
import { type Detail, warningsIn } from '../../shared/domain/texts/texts.ts';
import { component, count, stored, timestamp } from './common.ts';

export const document = z.record(z.string(), z.unknown());

export const acceptedPush = component(
  'AcceptedPush',
  z.strictObject({
    objectId: z.string().describe('Id of the push record.'),
    createdAt: timestamp.describe('Time at which the push was accepted.'),
    warnings: z
      .array(z.string())
      .optional()
      .describe('Messages about members that have no effect.'),
  }),
);

/** Returns the body of `acceptedPush`, with the warnings in a language. */
export const acceptedDocument = (
  language: Language,
  { objectId, createdAt, warnings }: { objectId: string; createdAt: Date; warnings: Detail[] },
) => ({ objectId, createdAt: createdAt.toISOString(), ...warningsIn(language, warnings) });

export const outcomeTotals = component(
  'OutcomeTotals',
  z
    .partialRecord(z.enum(outcomes), count)
    .describe('Recipients by outcome. An absent outcome is 0.'),
);

export const pushEvents = z
  .strictObject({
    received: count.describe('Devices that received the message.'),
    opened: count.describe('Devices on which the message was opened.'),
    dismissed: count.describe('Devices on which the message was dismissed.'),
  })
  .optional()
  .describe(
    'Devices that reported an event of the message. Absent if the app did not have the option ' +
      '`reportOpens` when the push was sent.',
  );

export const variableCounts = z
  .array(
    z.strictObject({
      name: z.string().describe('Name of the variable.'),
      devices: count.describe('Recipients of the push.'),
      fallback: count.describe('Recipients that get the default, because they have no such field.'),
    }),
  )
  .optional()
  .describe('For a push with `variables`: its planned recipients by variable.');

export const languageCounts = z
  .array(
    z.strictObject({
      language: z.string().nullable().describe('Tag of a translation. Null for unchanged `data`.'),
      devices: count.describe('Recipients that get this translation.'),
      fallback: count.describe(
        'Recipients whose `locale` is only close to the language. For null, all recipients, ' +
          'because no translation fits.',
      ),
    }),
  )
  .optional()
  .describe('For a push with `languages`: its planned recipients by language.');

/** What a recall did, by connector. Absent numbers are 0. */
export const recallCounts = z
  .partialRecord(
    z.enum(connectorIds),
    z.strictObject({
      recalled: count.optional().describe('Devices whose gateway accepted the recall.'),
      replaced: count.optional().describe('Devices whose message the replacement replaces.'),
      impossible: count.optional().describe('Devices that keep the message.'),
    }),
  )
  .describe('Devices that the push was sent to, by connector. An absent number is 0.');

const recall = z
  .strictObject({
    objectId: z.string().describe('Record of the recall, which is a push.'),
    status: z.enum(['in-queue', 'paused', 'done', 'cancelled']).describe('Status of the recall.'),
    isReplacement: z
      .boolean()
      .describe('True if the message is replaced by another message instead of removed.'),
    createdAt: timestamp.describe('Time at which the recall was accepted.'),
    finishedAt: timestamp.nullable().describe('End of the recall. Null before.'),
    connectors: recallCounts,
  })
  .optional()
  .describe('Newest recall of this push. Absent if it was never recalled.');

// FCM has two connector ids with the same member.
const successes = Object.fromEntries(
  connectorIds
    .filter((id) => id !== 'vendor_g')
    .map((id) => [
      successField(id),
      count
        .optional()
        .describe(
          id === 'channel'
            ? 'Devices of the device channel that acknowledged the message.'
            : `Devices whose message ${brandOf(id)} accepted.`,
        ),
    ]),
);

export const pushRecord = component(
  'PushRecord',
  z.strictObject({
    ...stored,
    notificationId: z.string().describe('`notification_id` of the push, or a generated id.'),
    msg: document.describe('`data` of the push: see protocol/push.md#content.'),
    where: document.describe('Condition on installations.'),
    liveActivity: document
      .optional()
      .describe(
        'For a push to Live Activities: its event, what it was sent to, its times, and its content.',
      ),
    prod: z.enum(['dev', 'prod']).describe('Environment of APNs.'),
    status: z
      .string()
      .describe(
        '`in-queue`, `scheduled`, `done`, for the operator also `paused` or `cancelled`, or ' +
          'the error.',
      ),
    devices: count.describe('Recipients.'),
    successes: count.describe('Sum of the successes by connector.'),
    ...successes,
    delivered: count.describe('Devices that the push reached, according to gateways’ receipts.'),
    clicked: count.describe(
      'Devices on which the push was opened, according to gateways’ receipts.',
    ),
    events: pushEvents,
    invalidTokens: count.describe('Recipients whose token the gateway called invalid.'),
    outcomes: outcomeTotals,
    repeats: count.describe('Recipients that were sent to again because a request got no reply.'),
    displaced: count.describe(
      'Devices of the device channel whose message was evicted by newer messages. A device ' +
        'has at most 100 pending messages.',
    ),
    quietWaits: count
      .optional()
      .describe(
        'Recipients that wait or waited for the end of their quiet hours. Absent without ' +
          'such recipients.',
      ),
    keptTokens: z
      .array(
        z.strictObject({
          connector: z.enum(connectorIds).describe('Connector of the gateway.'),
          profile: z.string().describe('Name of the profile.'),
          answers: count.describe('Recipients for which the gateway replied.'),
          invalid: count.describe('Tokens that it reported as invalid.'),
          kept: count.describe('Invalid tokens whose devices were not deleted.'),
          reason: z.string().describe('Most frequent reason.'),
        }),
      )
      .optional()
      .describe(
        'Profiles whose tokens are mostly invalid, so that devices were not deleted. Absent ' +
          'without such profiles, and after `delete-invalid`.',
      ),
    errors: z
      .string()
      .describe('Why the push failed, or which gateways an open push waits for. Otherwise empty.'),
    'from-service': z
      .string()
      .describe(
        '`push`: the app sent it. `console`: the admin API sent it. `recurring`: a recurring ' +
          'push made it.',
      ),
    'push-time': timestamp.describe('Time at which the push starts or started.'),
    languages: languageCounts,
    variables: variableCounts,
    recall,
  }),
);

export const scheduledPush = component(
  'ScheduledPush',
  z.strictObject({
    id: z.int().describe('Number that cancels the push.'),
    expire_time: z.int().describe('Time of the push, in ms since 1970.'),
    push_msg: z
      .strictObject({
        'through?': z.boolean().nullable().describe('`silent` of the push.'),
        'app-id': z.string().describe('Id of the app.'),
        where: z
          .strictObject({
            sort: z
              .strictObject({ createdAt: z.literal(1).describe('Ascending.') })
              .describe('Order in which the installations are read.'),
            query: document.describe('Condition on installations.'),
          })
          .describe('Target of the push.'),
        prod: z.enum(['dev', 'prod']).describe('Environment of APNs.'),
        'api-version': z.literal('1.1').describe('Version of this API.'),
        msg: document.describe('`data` of the push: see protocol/push.md#content.'),
        id: z.string().describe('objectId of the push record.'),
        notificationId: z.string().describe('`notification_id` of the push, or a generated id.'),
      })
      .describe('The push.'),
    createdAt: timestamp.describe('Time at which the push was accepted.'),
  }),
);
