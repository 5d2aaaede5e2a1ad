import { z } from 'zod';
import { breakerStates } from '../../../shared/domain/breaker.ts';
import { connectorIds } from '../../../shared/domain/labels.ts';
import { outcomes } from '../../../shared/domain/outcome.ts';
import { profileClassNames } from '../../../shared/domain/pushes/message-classes.ts';
import { richMembers } from '../../../shared/domain/pushes/rich-content.ts';
import { component, count, meaning, remedy, timestamp } from '../common.ts';
import { languageCounts, outcomeTotals, pushEvents, variableCounts } from '../pushes.ts';

const gatewayFailure = z
  .strictObject({
    reason: z.string().describe('Reason, as the gateway or the service gave it.'),
    meaning,
    at: timestamp.describe('Time of the failure.'),
  })
  .describe('Why the last request to the gateway failed.');

export const breaker = component(
  'Breaker',
  z.strictObject({
    id: z.string().describe('`<connector>:<appId>:<profile>`.'),
    connector: z.enum(connectorIds).describe('Connector of the gateway.'),
    appId: z.string().describe('Id of the app.'),
    profile: z.string().describe('Name of the profile.'),
    state: z.enum(breakerStates).describe('State of the breaker.'),
    forced: z
      .enum(['open', 'closed'])
      .nullable()
      .describe('State that the operator forces. Null if none is forced.'),
    since: timestamp.describe('Time since which it has this state.'),
    nextProbeAt: timestamp
      .nullable()
      .describe('When the gateway is probed next. Null unless the breaker is open and not forced.'),
    lastFailure: gatewayFailure.nullable().describe('Null after the gateway has replied again.'),
  }),
);

export const pushProgress = component(
  'PushProgress',
  z.strictObject({
    status: z.string().describe('Status of the push.'),
    devices: count.describe('Recipients of the push.'),
    planned: z.boolean().describe('Whether all recipients are known.'),
    outcomes: outcomeTotals.describe('Recipients by outcome.'),
    connectors: z
      .partialRecord(z.enum(connectorIds), outcomeTotals)
      .describe('Outcomes by connector.'),
    open: z
      .partialRecord(z.enum(connectorIds), count)
      .describe(
        'Recipients without an outcome so far, among the planned recipients. None after the ' +
          'push is done.',
      ),
    repeats: count.describe('Repeated sends after a request without a reply.'),
    delivered: count.describe('Devices that the push reached, according to receipts.'),
    clicked: count.describe('Devices on which the push was opened, according to receipts.'),
    events: pushEvents,
    acked: count.describe(
      'Acknowledgements of the device channel. Its other sent messages wait for a device.',
    ),
    perSecond: count.describe('Average since the first request. 0 while nothing is sent.'),
    secondsLeft: count
      .nullable()
      .describe('Null if no rate is known, and while recipients wait for a person or a gateway.'),
  }),
);

/** Text as a code with values. Clients write it in the user's language. */
export const codedText = z.strictObject({
  code: z.string().describe('Stable code of the text.'),
  params: z.record(z.string(), z.unknown()).describe('Values in the text.'),
});

const connectorShare = z.strictObject({
  devices: count.describe('Devices that would get the push by this connector.'),
  profiles: z.record(z.string(), count).describe('Devices by profile.'),
  payload: z
    .unknown()
    .describe('Message to the most frequent device type. Null if it cannot be rendered.'),
  payloadBytes: count.nullable().describe('Size of `payload` in bytes.'),
  messageClass: z
    .strictObject({
      name: z.enum(profileClassNames).nullable().describe('Null if the push has no class.'),
      dailyLimit: count
        .nullable()
        .describe('Messages that a device shows per day. Null if the vendor publishes no limit.'),
      missing: z
        .array(z.string())
        .describe(
          'What the vendor needs and does not get: names of members, `right` if the profile does not list the class, `class` if a transactional push has none.',
        ),
    })
    .describe('Message class at the vendor.'),
  notShown: z
    .array(z.enum(richMembers))
    .describe('Rich content that some of these devices do not show.'),
  languages: z
    .record(
      z.string(),
      z.strictObject({
        payload: z.unknown().describe('Message in this language.'),
        payloadBytes: count.nullable().describe('Size of `payload` in bytes.'),
      }),
    )
    .optional()
    .describe('For a push with `languages`: the message in each language.'),
  problem: z.string().optional().describe('Why some devices would get no push.'),
  problems: z.array(codedText).optional().describe('The parts of `problem` as codes.'),
});

const amounts = {
  used: count.describe('Recipients of the day so far.'),
  scheduled: count.describe('Recipients of the pushes that are scheduled for the day.'),
  draft: count.describe('Recipients of this push.'),
};

const forecast = z
  .strictObject({
    scheduledPushes: count.describe('Number of scheduled pushes that were counted, at most 5.'),
    scheduledIsLeast: z.boolean().describe('There are more scheduled pushes.'),
    cap: z
      .strictObject({
        day: z.iso.date().describe('Day on which the push is sent.'),
        zone: z.literal('UTC').describe('Time zone of the day.'),
        ...amounts,
        limit: count.describe('Option `dailyRecipientCap` of the app.'),
        over: count.describe('Recipients of this push that would be counted `capped`.'),
      })
      .describe('Daily cap of the app.'),
    quotas: z
      .strictObject({
        day: z.iso.date().describe('Day on which the push is sent.'),
        zone: z.literal('Asia/Shanghai').describe('Time zone of the day.'),
        results: z
          .array(
            z.strictObject({
              connector: z.enum(connectorIds).describe('Connector of the gateway.'),
              profile: z.string().describe('Name of the profile.'),
              ...amounts,
              closedReason: z
                .string()
                .nullable()
                .describe(
                  'Message of the gateway when its quota was used up. Null while the quota is ' +
                    'not used up.',
                ),
              closedMeaning: meaning.nullable().describe('What `closedReason` means.'),
            }),
          )
          .describe('Usage by gateway and profile.'),
      })
      .describe('Usage of the gateways. Only the gateways know their quotas.'),
  })
  .describe('Usage of the day on which the push is sent.');

export const pushForecast = component(
  'PushForecast',
  z.strictObject({
    devices: count.describe('Devices that the push would go to.'),
    connectors: z
      .partialRecord(z.enum(connectorIds), connectorShare)
      .describe('What each connector would send.'),
    limits: z.array(z.string()).describe('Limits that would refuse, shorten or delay the push.'),
    estimatedSeconds: count
      .nullable()
      .describe('Seconds that sending takes at `flow_control`. Null without it.'),
    starts: z
      .array(
        z.strictObject({
          at: timestamp.describe('Time of the start.'),
          devices: count.describe('Devices of the start.'),
          isLate: z
            .boolean()
            .describe('True if their time is too long ago. They would be counted as `expired`.'),
        }),
      )
      .optional()
      .describe('For a push at local time: its starts with their devices.'),
    languages: languageCounts,
    quietHours: z
      .strictObject({
        hours: z.string().describe('Quiet hours of the push, in the time zone of each device.'),
        waiting: count.describe('Devices that would wait for the end of their quiet hours.'),
        expired: count.describe('Devices whose quiet hours end after the push expires.'),
        ends: z
          .array(
            z.strictObject({
              at: timestamp.describe('End of the quiet hours.'),
              devices: count.describe('Devices that would wait until then.'),
            }),
          )
          .describe('Times until which these devices would wait.'),
      })
      .optional()
      .describe('For a push with quiet hours: the devices that would be in their quiet hours.'),
    variables: variableCounts,
    pace: z.string().describe('How fast the push would be sent.'),
    plan: z.array(z.string()).describe('PostgreSQL’s query plan for the condition.'),
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
        limits: z.array(codedText).describe('`limits` as codes.'),
        pace: codedText.describe('`pace` as a code.'),
        warning: codedText.nullable().describe('`warning` as a code.'),
        warnings: z
          .array(codedText)
          .optional()
          .describe('Texts about members that have no effect.'),
      })
      .describe('The sentences as codes with parameters, in the same order.'),
    forecast,
    digest: z
      .string()
      .describe(
        'Signature of the body and the number of devices. The push sends it as ' +
          '`X-Carillon-Explained`.',
      ),
  }),
);

/** Route of a push to a device. */
export const deviceRoute = z.strictObject({
  connector: z.string().describe('Connector that a push would use.'),
  profile: z.string().describe('Name of the profile that a push would use.'),
  problem: z.string().optional().describe('Why the device would get no push.'),
  problemMeaning: meaning.optional().describe('What `problem` means.'),
});

export const deviceExplanation = component(
  'DeviceExplanation',
  z.strictObject({
    installation: z.string().describe('Id of the installation (`objectId`).'),
    isMatched: z.boolean().describe('Whether the device meets the condition of the push.'),
    clause: z.string().nullable().describe('Part of the condition that excludes the device.'),
    isValid: z
      .boolean()
      .nullable()
      .describe('`valid` of the installation. Null if it was deleted.'),
    isFresh: z
      .boolean()
      .nullable()
      .describe(
        'Whether the installation was updated within its validity. Null if it was deleted.',
      ),
    updatedAt: timestamp
      .nullable()
      .describe('Last change of the installation. Null if it was deleted.'),
    route: deviceRoute.describe('How the push would currently reach the device.'),
    batch: z
      .strictObject({
        id: z.int().describe('Id of the batch.'),
        attempt: z.int().describe('Number of the attempt.'),
        settled: z.boolean().describe('Whether all its recipients have an outcome.'),
      })
      .nullable()
      .describe('Batch that contains the device. Null without one.'),
    language: z
      .string()
      .nullable()
      .optional()
      .describe(
        'For a push with `languages`: the translation that the device gets. Null for ' +
          'unchanged `data`.',
      ),
    variables: z
      .array(
        z.strictObject({
          name: z.string().describe('Name of the variable.'),
          field: z.string().describe('Field of the installation.'),
          isDefault: z.boolean().describe('Whether the device gets the default.'),
        }),
      )
      .optional()
      .describe(
        'For a push with `variables`: whether the device currently has the field of each variable.',
      ),
    outcome: z.enum(outcomes).nullable().describe('Outcome of the recipient. Null before.'),
    repeats: count.describe('Repeated sends after a request without a reply.'),
    status: z.union([z.int(), z.string()]).nullable().describe('Status of the gateway.'),
    reason: z.string().nullable().describe('Reason of the gateway.'),
    meaning: meaning.nullable().describe('What the reason means.'),
    remedy: remedy
      .nullable()
      .describe(
        'What can be done about it. Null if the push reached or may still reach the device.',
      ),
    letter: z
      .enum(['waiting', 'expired', 'acknowledged', 'gone'])
      .nullable()
      .describe('Message of the device channel.'),
    gatewayFailure: gatewayFailure.nullable(),
    at: timestamp.nullable().describe('Time of the outcome. Null before.'),
    sentence: z.string().describe('The explanation as a text.'),
    texts: z.array(codedText).describe('The sentences as codes with parameters.'),
  }),
);
