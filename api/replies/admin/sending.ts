import { z } from 'zod';
import { connectorIds } from '../../../shared/domain/labels.ts';
import { component, count, timestamp } from '../common.ts';
import { acceptedPush } from '../pushes.ts';
import { codedText } from './pushes.ts';
import { listedPush } from './records.ts';

const digest = z.string().describe('Binds body and number; `X-Carillon-Explained` of the push.');

export const sentPush = component(
  'SentPush',
  z.strictObject({
    ...acceptedPush.shape,
    status: z.string().describe('As in the record: `scheduled`, `in-queue`, `done`.'),
  }),
);

const saved = { name: z.string(), updatedAt: timestamp, updatedBy: z.string() };
const document = z.record(z.string(), z.unknown());

export const savedTemplate = component(
  'PushTemplate',
  z.strictObject({ ...saved, body: document.describe('Body of a push.') }),
);
export const savedAudience = component(
  'SavedAudience',
  z.strictObject({ ...saved, where: z.union([document, z.array(z.unknown())]) }),
);
export const savedTestDevice = component(
  'TestDevice',
  z.strictObject({ ...saved, installation: z.string().describe('objectId of the installation.') }),
);

export const sampledValue = z.strictObject({
  value: z.union([z.string(), z.number(), z.boolean()]),
  share: z
    .number()
    .min(0)
    .describe('Share of the devices that have the member; of all for channels.'),
});
export const sampledField = component(
  'SampledField',
  z.strictObject({
    name: z.string(),
    types: z.array(z.string()).describe('JSON types of its values, or `__type` of typed ones.'),
    values: z.array(sampledValue).describe('Its most frequent short values, 20 at most.'),
    isIndexed: z.boolean().describe('Whether an index serves a condition that it equals a value.'),
  }),
);

export const audience = component(
  'Audience',
  z.strictObject({
    devices: count,
    isLeast: z.boolean().describe('The exact count takes too long: there are so many at least.'),
    connectors: z.partialRecord(z.enum(connectorIds), count).describe('Devices by connector.'),
    problems: z.record(z.string(), count).describe('Devices without a way to them, by the reason.'),
    sample: z.array(z.record(z.string(), z.unknown())).describe('The newest of these devices.'),
    clauses: z
      .array(
        z.strictObject({
          kind: z.enum(['where', 'channels', 'devices', 'valid', 'fresh', 'rule']),
          text: z.string(),
          without: count
            .nullable()
            .describe('Devices without this clause; null where it takes too long.'),
        }),
      )
      .optional()
      .describe('With `clauses`: the parts of the condition, of which all hold.'),
    tookMs: count,
    warning: z
      .string()
      .optional()
      .describe('The condition reads many installations without an index.'),
    warningText: codedText.optional().describe('The warning by code.'),
  }),
);

export const scheduledEntry = component(
  'ScheduledEntry',
  listedPush.extend({
    id: z.int().describe('Number of the entry; the calls that move or cancel it take it.'),
  }),
);

export const recurringPush = component(
  'RecurringPush',
  z.strictObject({
    id: z.int(),
    name: z.string(),
    expression: z.string().describe('Cron expression.'),
    timeZone: z.string(),
    startsAt: timestamp.nullable(),
    endsAt: timestamp.nullable().describe('Time from which no push is made.'),
    isEnabled: z.boolean(),
    body: document.describe('Body of each push.'),
    nextAt: timestamp
      .nullable()
      .describe('Next start; null while disabled, and after the last one.'),
    lastAt: timestamp.nullable().describe('Time that the last push was made for.'),
    lastPush: z.string().nullable().describe('objectId of the last push.'),
    starts: count.describe('Pushes that were made.'),
    missed: count.describe('Times without a push, because no dispatcher ran then.'),
    heldBack: count.describe('Times without a push, because ten pushes before were open.'),
    createdBy: z.string(),
    createdAt: timestamp,
    changedBy: z.string().describe('Caller that changed it last; the sender of its pushes.'),
    changedAt: timestamp,
  }),
);

export const recurringTimes = component(
  'RecurringTimes',
  z.strictObject({
    times: z.array(
      z.strictObject({
        at: timestamp,
        local: z.string().describe('The same time in the time zone: `2027-03-14T03:30:00-04:00`.'),
      }),
    ),
  }),
);

export const movedAudience = component(
  'MovedAudience',
  z.strictObject({
    code: z.literal(409),
    error: z.string(),
    devices: count.describe('Recipients of now.'),
    explained: count
      .nullable()
      .describe('Recipients of the dry run; null where it was not of this body.'),
    digest,
  }),
);
