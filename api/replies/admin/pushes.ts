import { z } from 'zod';
import { breakerStates } from '../../../shared/domain/breaker.ts';
import { connectorIds } from '../../../shared/domain/labels.ts';
import { outcomes } from '../../../shared/domain/outcome.ts';
import { component, count, meaning, remedy, timestamp } from '../common.ts';
import { languageCounts, outcomeTotals, variableCounts } from '../pushes.ts';

const gatewayFailure = z
  .strictObject({ reason: z.string(), meaning, at: timestamp })
  .describe('Why the gateway could not be asked last.');

export const breaker = component(
  'Breaker',
  z.strictObject({
    id: z.string().describe('`<connector>:<appId>:<profile>`.'),
    connector: z.enum(connectorIds),
    appId: z.string(),
    profile: z.string(),
    state: z.enum(breakerStates),
    forced: z
      .enum(['open', 'closed'])
      .nullable()
      .describe('State that the operator forces; null if none is forced.'),
    since: timestamp,
    nextProbeAt: timestamp
      .nullable()
      .describe('When the gateway is probed next; null unless the breaker is open by itself.'),
    lastFailure: gatewayFailure.nullable().describe('Null once the gateway has answered again.'),
  }),
);

export const pushProgress = component(
  'PushProgress',
  z.strictObject({
    status: z.string(),
    devices: count,
    planned: z.boolean().describe('Whether all recipients are known.'),
    outcomes: outcomeTotals,
    connectors: z.partialRecord(z.enum(connectorIds), outcomeTotals),
    open: z
      .partialRecord(z.enum(connectorIds), count)
      .describe(
        'Recipients without an outcome, as far as the push is planned; none once it is done.',
      ),
    repeats: count,
    delivered: count,
    clicked: count,
    acked: count.describe(
      'Acknowledgements of the device channel; its other sent messages wait for a device.',
    ),
    perSecond: count.describe('Average since the first request; 0 while nothing is sent.'),
    secondsLeft: count
      .nullable()
      .describe(
        'Null where no rate is known, and while recipients wait for a person or a gateway.',
      ),
  }),
);

/** Text as a code with values. Clients write it in the user's language. */
export const codedText = z.strictObject({
  code: z.string(),
  params: z.record(z.string(), z.unknown()),
});

const connectorShare = z.strictObject({
  devices: count,
  profiles: z.record(z.string(), count).describe('Devices by profile.'),
  payload: z
    .unknown()
    .describe('Message to the commonest type of device; null where it cannot be rendered.'),
  payloadBytes: count.nullable(),
  languages: z
    .record(z.string(), z.strictObject({ payload: z.unknown(), payloadBytes: count.nullable() }))
    .optional()
    .describe('Of a push with `languages`: the message in each of them.'),
  problem: z.string().optional().describe('Why some devices would get nothing.'),
  problems: z.array(codedText).optional().describe('Its parts by code.'),
});

const amounts = {
  used: count.describe('Recipients of the day so far.'),
  scheduled: count.describe('Recipients of the pushes that are scheduled for the day.'),
  draft: count.describe('Recipients of this push.'),
};

const forecast = z
  .strictObject({
    scheduledPushes: count.describe('Scheduled pushes that were counted, 5 at most.'),
    scheduledIsLeast: z.boolean().describe('There are more scheduled pushes.'),
    cap: z
      .strictObject({
        day: z.iso.date(),
        zone: z.literal('UTC'),
        ...amounts,
        limit: count,
        over: count.describe('Recipients of this push that would be counted `capped`.'),
      })
      .describe('Daily cap of the app.'),
    quotas: z
      .strictObject({
        day: z.iso.date(),
        zone: z.literal('Asia/Shanghai'),
        results: z.array(
          z.strictObject({
            connector: z.enum(connectorIds),
            profile: z.string(),
            ...amounts,
            closedReason: z
              .string()
              .nullable()
              .describe('What the gateway said when its quota was used up; null while it is open.'),
            closedMeaning: meaning.nullable(),
          }),
        ),
      })
      .describe('Use of the gateways. Only the gateways know their quotas.'),
  })
  .describe('Use of the day that the push is sent on.');

export const pushForecast = component(
  'PushForecast',
  z.strictObject({
    devices: count,
    connectors: z.partialRecord(z.enum(connectorIds), connectorShare),
    limits: z.array(z.string()).describe('Limits that would refuse or delay the push.'),
    estimatedSeconds: count.nullable(),
    starts: z
      .array(
        z.strictObject({
          at: timestamp,
          devices: count,
          isLate: z
            .boolean()
            .describe('Their time is too long past: they would be counted `expired`.'),
        }),
      )
      .optional()
      .describe('Of a push at local time: its starts with their devices.'),
    languages: languageCounts,
    quietHours: z
      .strictObject({
        hours: z.string().describe('Quiet hours of the push, in the time zone of each device.'),
        waiting: count.describe('Devices that would wait for the end of theirs.'),
        expired: count.describe('Devices whose quiet hours end after the push expires.'),
        ends: z
          .array(z.strictObject({ at: timestamp, devices: count }))
          .describe('When those wait until.'),
      })
      .optional()
      .describe('Of a push with quiet hours: the devices within theirs at its time.'),
    variables: variableCounts,
    pace: z.string(),
    plan: z.array(z.string()).describe('Plan of the database for the condition.'),
    warning: z
      .string()
      .optional()
      .describe('The condition reads many installations without an index.'),
    warnings: z
      .array(z.string())
      .optional()
      .describe('Messages about members that have no effect.'),
    texts: z
      .strictObject({
        limits: z.array(codedText),
        pace: codedText,
        warning: codedText.nullable(),
        warnings: z.array(codedText).optional().describe('Of members that have no effect.'),
      })
      .describe('The sentences by code with parameters, in the same order.'),
    forecast,
    digest: z
      .string()
      .describe('Binds body and number of devices; the push sends it as `X-Carillon-Explained`.'),
  }),
);

/** Route of a push to a device. */
export const deviceRoute = z.strictObject({
  connector: z.string(),
  profile: z.string(),
  problem: z.string().optional(),
  problemMeaning: meaning.optional(),
});

export const deviceExplanation = component(
  'DeviceExplanation',
  z.strictObject({
    installation: z.string(),
    isMatched: z.boolean(),
    clause: z.string().nullable().describe('Part of the condition that excludes the device.'),
    isValid: z.boolean().nullable(),
    isFresh: z.boolean().nullable(),
    updatedAt: timestamp.nullable(),
    route: deviceRoute,
    batch: z.strictObject({ id: z.int(), attempt: z.int(), settled: z.boolean() }).nullable(),
    language: z
      .string()
      .nullable()
      .optional()
      .describe(
        'Of a push with `languages`: the translation that the device gets; null for `data` as it is.',
      ),
    variables: z
      .array(z.strictObject({ name: z.string(), field: z.string(), isDefault: z.boolean() }))
      .optional()
      .describe(
        'Of a push with `variables`: whether the device has the field of each, as it is now.',
      ),
    outcome: z.enum(outcomes).nullable(),
    repeats: count,
    status: z.union([z.int(), z.string()]).nullable().describe('Status of the gateway.'),
    reason: z.string().nullable().describe('Reason of the gateway.'),
    meaning: meaning.nullable(),
    remedy: remedy
      .nullable()
      .describe('What can be done about it; null for a device that the push reached or may reach.'),
    letter: z
      .enum(['waiting', 'expired', 'acknowledged', 'gone'])
      .nullable()
      .describe('Message of the device channel.'),
    gatewayFailure: gatewayFailure.nullable(),
    at: timestamp.nullable(),
    sentence: z.string().describe('The explanation as a text.'),
    texts: z.array(codedText).describe('The sentences by code with parameters.'),
  }),
);
