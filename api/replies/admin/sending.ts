import { z } from 'zod';
import { connectorIds } from '../../../shared/domain/labels.ts';
import { component, count, timestamp } from '../common.ts';
import { acceptedPush } from '../pushes.ts';
import { codedText } from './pushes.ts';
import { listedPush } from './records.ts';

const digest = z
  .string()
  .describe('Signature of the body and the number of devices, for `X-Carillon-Explained`.');

export const sentPush = component(
  'SentPush',
  z.strictObject({
    ...acceptedPush.shape,
    status: z.string().describe('As in the record: `scheduled`, `in-queue`, `done`.'),
  }),
);

const saved = {
  name: z.string().describe('Name of the item.'),
  updatedAt: timestamp.describe('Time of the last change.'),
  updatedBy: z.string().describe('Caller that changed it last.'),
};
const document = z.record(z.string(), z.unknown());

export const savedTemplate = component(
  'PushTemplate',
  z.strictObject({
    ...saved,
    body: document.describe('Body of a push: see protocol/push.md#push-call.'),
  }),
);
export const savedAudience = component(
  'SavedAudience',
  z.strictObject({
    ...saved,
    where: z
      .union([document, z.array(z.unknown())])
      .describe('Condition on installations: see protocol/queries.md#operators.'),
  }),
);
export const savedTestDevice = component(
  'TestDevice',
  z.strictObject({ ...saved, installation: z.string().describe('objectId of the installation.') }),
);

export const sampledValue = z.strictObject({
  value: z.union([z.string(), z.number(), z.boolean()]).describe('The value.'),
  share: z
    .number()
    .min(0)
    .describe(
      'Share among the devices that have the member. For channels, share among all devices.',
    ),
});
export const sampledField = component(
  'SampledField',
  z.strictObject({
    name: z.string().describe('Name of the member.'),
    types: z.array(z.string()).describe('JSON types of its values, or `__type` of typed values.'),
    values: z.array(sampledValue).describe('Its most frequent short values, at most 20.'),
    isIndexed: z
      .boolean()
      .describe('Whether an index serves a condition that compares it for equality.'),
  }),
);

export const audience = component(
  'Audience',
  z.strictObject({
    devices: count.describe('Devices that match.'),
    isLeast: z
      .boolean()
      .describe('True if the exact count takes too long. `devices` is then a lower bound.'),
    connectors: z.partialRecord(z.enum(connectorIds), count).describe('Devices by connector.'),
    problems: z.record(z.string(), count).describe('Devices without a route, by reason.'),
    sample: z.array(z.record(z.string(), z.unknown())).describe('The newest of these devices.'),
    clauses: z
      .array(
        z.strictObject({
          kind: z
            .enum(['where', 'channels', 'devices', 'valid', 'fresh', 'rule'])
            .describe('Kind of the clause.'),
          text: z.string().describe('The clause as a text.'),
          without: count
            .nullable()
            .describe('Devices without this clause. Null if counting takes too long.'),
        }),
      )
      .optional()
      .describe('With `clauses`: the parts of the condition, which are combined by AND.'),
    tookMs: count.describe('Duration in ms.'),
    warning: z
      .string()
      .optional()
      .describe('The condition reads many installations without an index.'),
    warningText: codedText.optional().describe('The warning as a code.'),
  }),
);

export const scheduledEntry = component(
  'ScheduledEntry',
  listedPush.extend({
    id: z.int().describe('Number of the entry. Use it to move or cancel the push.'),
  }),
);

export const recurringPush = component(
  'RecurringPush',
  z.strictObject({
    id: z.int().describe('Id of the recurring push.'),
    name: z.string().describe('Name of the recurring push.'),
    expression: z.string().describe('Cron expression.'),
    timeZone: z.string().describe('Time zone (IANA).'),
    startsAt: timestamp.nullable().describe('Time from which pushes are made. Null means at once.'),
    endsAt: timestamp.nullable().describe('Time from which no push is made.'),
    isEnabled: z.boolean().describe('Whether pushes are made.'),
    body: document.describe('Body of each push: see protocol/push.md#push-call.'),
    nextAt: timestamp
      .nullable()
      .describe('Next start. Null while disabled, and after the last start.'),
    lastAt: timestamp.nullable().describe('Time that the last push was made for.'),
    lastPush: z.string().nullable().describe('objectId of the last push.'),
    starts: count.describe('Pushes that were made.'),
    missed: count.describe('Times without a push, because no dispatcher ran then.'),
    heldBack: count.describe('Times without a push, because ten earlier pushes were still open.'),
    createdBy: z.string().describe('Name of the caller that created it.'),
    createdAt: timestamp.describe('Time of the creation.'),
    changedBy: z
      .string()
      .describe('Caller that changed it last. This caller is the sender of its pushes.'),
    changedAt: timestamp.describe('Time of the last change.'),
  }),
);

export const recurringTimes = component(
  'RecurringTimes',
  z.strictObject({
    times: z
      .array(
        z.strictObject({
          at: timestamp.describe('Time of the start.'),
          local: z
            .string()
            .describe('The time in the time zone, such as `2027-03-14T03:30:00-04:00`.'),
        }),
      )
      .describe('The next times.'),
  }),
);

export const movedAudience = component(
  'MovedAudience',
  z.strictObject({
    code: z.literal(409).describe('Error code.'),
    error: z.string().describe('Message for people.'),
    devices: count.describe('Current number of recipients.'),
    explained: count
      .nullable()
      .describe('Recipients in the dry run. Null if the dry run had another body.'),
    digest,
  }),
);
