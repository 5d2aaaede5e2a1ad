/**
 * Events that webhooks send. The table is the only source of their types and schemas: checks of
 * endpoints, the reference page and tests read it.
 */
import { z } from 'zod';
import { outcomes } from '../outcome.ts';

/** Maximum recipients in one request. */
export const recipientsPerEvent = 500;

const push = z.string().describe('Object id of the push.');
const connector = z.string().describe('Id of the connector.');
const profile = z.string().describe('Name of the profile.');
const reason = z.string().describe('Reason as a text.');
const by = z.string().describe('Name of the token, or of the person.');
const installation = z
  .string()
  .nullable()
  .describe('Object id of the installation. Null if it was deleted before the request was made.');
const time = z.iso.datetime();
const totals = z.partialRecord(z.enum(outcomes), z.number());
const connectorTotals = z.record(z.string(), totals);

const breaker = z.strictObject({
  breaker: z.string().describe('Id of the circuit breaker.'),
  connector,
  profile,
  reason: reason.nullable().describe('Why the gateway does not answer. Null if unknown.'),
  isForced: z.boolean().describe('True if an operator forced the state.'),
});

const freeze = z.strictObject({
  scope: z.enum(['app', 'service']).describe('What is frozen.'),
  reason: z.string().describe('Reason that the operator gave.'),
  by,
});

/** A type of event. */
interface EventType<S extends z.ZodType = z.ZodType> {
  /** Sentence of the reference: when the event happens. */
  summary: string;
  /** Schema of `data`. */
  data: S;
  /** True if a chat message can show it. Events about recipients are for programs only. */
  isForPeople: boolean;
}

const forPeople = <S extends z.ZodType>(summary: string, data: S): EventType<S> => ({
  summary,
  data,
  isForPeople: true,
});

const forPrograms = <S extends z.ZodType>(summary: string, data: S): EventType<S> => ({
  summary,
  data,
  isForPeople: false,
});

/** All types of events with the schemas of their `data`. */
export const eventTypes = {
  'push.accepted': forPeople(
    'A push was accepted.',
    z.strictObject({
      push,
      pushTime: time.describe('Time at which it starts.'),
      isScheduled: z.boolean().describe('True if it starts later.'),
      createdBy: by.nullable().describe('Sender; null for a push with an app’s own keys.'),
    }),
  ),
  'push.done': forPeople(
    'Every recipient of a push has its outcome.',
    z.strictObject({
      push,
      devices: z.number().describe('Number of recipients.'),
      outcomes: totals.describe('Number of recipients by outcome.'),
      connectors: connectorTotals.describe('The same by connector.'),
    }),
  ),
  'push.cancelled': forPeople('A push was cancelled.', z.strictObject({ push, by: by.nullable() })),
  'push.failed': forPeople(
    'A push cannot be sent at all, or cannot use one of its profiles any more.',
    z.strictObject({
      push,
      reason,
      connector: connector.nullable().describe('Null if the whole push failed.'),
      profile: profile.nullable().describe('Null if the whole push failed.'),
      connectors: connectorTotals
        .nullable()
        .describe('Recipients by connector and outcome. Null if only a profile failed.'),
    }),
  ),
  'push.waiting_approval': forPeople(
    'A push to many devices waits for the approval of a second person.',
    z.strictObject({ push, above: z.number().describe('Limit that the push exceeds.') }),
  ),
  'recipients.outcome': forPrograms(
    'Recipients of a push have their outcome. Up to 500 recipients in one request.',
    z.strictObject({
      push,
      connector,
      recipients: z
        .array(
          z.strictObject({
            installation,
            outcome: z.enum(outcomes),
            reason: reason.optional(),
            messageId: z.string().optional().describe('Id of the message at the gateway.'),
          }),
        )
        .max(recipientsPerEvent),
    }),
  ),
  'recipients.receipt': forPrograms(
    'A gateway reported that devices received or opened a push. Each report counts once.',
    z.strictObject({
      push,
      connector,
      recipients: z
        .array(z.strictObject({ installation, type: z.enum(['delivered', 'clicked']) }))
        .max(recipientsPerEvent),
    }),
  ),
  'recipients.opened': forPrograms(
    'Apps reported that devices received, opened or dismissed a push.',
    z.strictObject({
      push,
      recipients: z
        .array(
          z.strictObject({
            installation,
            type: z.enum(['received', 'opened', 'dismissed']),
            at: time.describe('Time that the app gave, or the time of the call.'),
          }),
        )
        .max(recipientsPerEvent),
    }),
  ),
  'installation.invalid': forPrograms(
    'Installations were deleted, because their tokens are invalid.',
    z.strictObject({
      push,
      connector,
      installations: z
        .array(z.string())
        .max(recipientsPerEvent)
        .describe('Object ids of the deleted installations.'),
    }),
  ),
  'message.failed': forPeople(
    'A mail or SMS could not be sent.',
    z.strictObject({
      message: z.string().describe('Id of the message in the outbox.'),
      kind: z.enum(['mail', 'sms']),
      type: z.string().describe('Purpose of the message.'),
      reason,
    }),
  ),
  'breaker.opened': forPeople('A circuit breaker opened: the gateway gets no requests.', breaker),
  'breaker.closed': forPeople('A circuit breaker closed: the gateway answers again.', breaker),
  'credentials.ending': forPeople(
    'Credentials end within 30, 7 or 1 days, or have ended (0).',
    z.strictObject({
      connector,
      profile,
      endsAt: time,
      days: z.number().describe('30, 7, 1 or 0.'),
    }),
  ),
  'quota.near': forPeople(
    'An app has used 80 % or all of its daily cap, or the quota of a gateway is used up.',
    z.strictObject({
      quota: z
        .enum(['dailyRecipientCap', 'gateway'])
        .describe('Cap of the app, or quota of a gateway.'),
      usedPercent: z.number().describe('80 or 100.'),
      day: z.string().describe('Day of the quota: UTC for the cap, China for a gateway.'),
      connector: connector.nullable(),
      profile: profile.nullable(),
    }),
  ),
  'freeze.started': forPeople('Sending was frozen.', freeze),
  'freeze.ended': forPeople('A freeze has ended.', freeze),
} as const satisfies Record<string, EventType>;

export type EventTypeName = keyof typeof eventTypes;

/** `data` of an event. */
export type EventData<T extends EventTypeName> = z.infer<(typeof eventTypes)[T]['data']>;

export const eventTypeNames = Object.keys(eventTypes) as [EventTypeName, ...EventTypeName[]];

/** Type of the event that `POST …/test` sends. Endpoints do not subscribe to it. */
export const testEventType = 'webhook.test';
