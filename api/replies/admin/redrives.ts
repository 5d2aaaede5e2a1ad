import { z } from 'zod';
import { connectorIds } from '../../../shared/domain/labels.ts';
import { redrivenOutcomes } from '../../../shared/domain/pushes/push.ts';
import { pushStates } from '../../../shared/domain/pushes/record.ts';
import { component, count, meaning, timestamp } from '../common.ts';
import { document } from '../pushes.ts';
import { codedText, pushForecast } from './pushes.ts';

const { devices, connectors, limits, estimatedSeconds, languages, quietHours, pace, forecast } =
  pushForecast.shape;

export const redriveForecast = component(
  'RedriveForecast',
  z.strictObject({
    devices: devices.describe('Recipients of the redrive.'),
    failures: z
      .strictObject({
        selected: count.describe('Failures that the selection matches.'),
        redriven: count.describe('Selected recipients that a redrive has already taken over.'),
        unsure: count.describe(
          'Recipients whose gateway did not reply to a request. They may have the message. ' +
            '`includeUnsure` includes them.',
        ),
        gone: count.describe('Recipients whose device was deleted, or became invalid or idle.'),
        notKept: count.describe('Recipients of the push whose failures are not kept.'),
      })
      .describe(
        'Failures of the push. All numbers except `selected` are excluded from the redrive.',
      ),
    causes: z
      .array(
        z.strictObject({
          connector: z.enum(connectorIds).describe('Connector of the gateway.'),
          outcome: z.enum(redrivenOutcomes).describe('Outcome of these recipients.'),
          status: z.int().describe('Status of the gateway. 0 if there was no reply.'),
          reason: z.string().describe('Reason, in the form of the summary.'),
          n: count.describe('Number of them.'),
          meaning,
        }),
      )
      .describe('The most frequent causes of the selected failures.'),
    connectors,
    limits,
    estimatedSeconds,
    languages,
    quietHours,
    pace,
    texts: z
      .strictObject({
        limits: z.array(codedText).describe('`limits` as codes.'),
        pace: codedText.describe('`pace` as a code.'),
      })
      .describe('The sentences as codes with parameters, in the same order.'),
    forecast,
  }),
);

export const undeliveredPush = component(
  'UndeliveredPush',
  z.strictObject({
    objectId: z.string().describe('Id of the push record.'),
    state: z.enum(pushStates).describe('State of the push.'),
    campaign: z.string().nullable().describe('Internal name of the push. Null if it has none.'),
    msg: document.describe('`data` of the push.'),
    pushTime: timestamp.describe('Time of the push.'),
    finishedAt: timestamp.nullable().describe('Time of the end. Null before.'),
    failed: count.describe('Recipients that failed.'),
    expired: count.describe('Recipients that expired.'),
    capped: count.describe('Recipients over a limit.'),
    redriven: count.describe('Recipients of all connectors that redrives have taken over.'),
  }),
);

const messageCounts = {
  messages: count.describe('Messages that are sent again.'),
  expired: count.describe('Skipped messages whose code has expired.'),
  unreadable: count.describe('Skipped messages that no key of CARILLON_SECRET decrypts.'),
  next: z.string().nullable().describe('`cursor` of the next call. Null if no message is left.'),
};

export const redrivenMessages = component('RedrivenMessages', z.strictObject(messageCounts));

export const messageForecast = component(
  'MessageForecast',
  z.strictObject({
    ...messageCounts,
    causes: z
      .array(
        z.strictObject({
          kind: z.enum(['sms', 'mail']).describe('SMS or mail.'),
          reason: z.string().nullable().describe('Reason, in the form of the summary.'),
          n: count.describe('Number of them.'),
          meaning: meaning.optional().describe('What the reason means.'),
        }),
      )
      .describe('The most frequent causes.'),
  }),
);

export const failedReceipt = component(
  'FailedReceipt',
  z.strictObject({
    id: z.string().describe('Id of the call.'),
    connector: z.enum(connectorIds).describe('Connector of the gateway.'),
    status: z.int().describe('Status of the reply to the gateway.'),
    reason: z.string().describe('Why the call was refused.'),
    bytes: count.describe('Size of the body.'),
    at: timestamp.describe('Time of the call.'),
  }),
);

export const redrivenReceipts = component(
  'RedrivenReceipts',
  z.strictObject({
    processed: count.describe(
      'Calls that were processed. A receipt counts once, even if its call is processed ' +
        'several times.',
    ),
    refused: count.describe(
      'Calls that are refused again, or that no key of CARILLON_SECRET decrypts.',
    ),
    next: z.string().nullable().describe('`cursor` of the next call. Null if no call is left.'),
  }),
);
