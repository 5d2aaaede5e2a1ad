import { z } from 'zod';
import { importReport } from '../../../shared/domain/admin/import-report.ts';
import { rotationStates } from '../../../shared/domain/apps/canary.ts';
import { jsonObject } from '../../../shared/domain/json-schema.ts';
import { component, count, meaning, remedy, timestamp } from '../common.ts';
import { pushProfile } from './apps.ts';

const fingerprint = z.strictObject({ sha256: z.string().describe('SHA-256 in hexadecimal.') });

export const profileDetail = component(
  'ProfileDetail',
  z
    .strictObject({
      ...pushProfile.shape,
      kind: z.string().describe('Kind of the credentials: `token`, `certificate`, `secret`, …'),
      members: jsonObject.describe('Ids and settings of the credentials.'),
      secrets: z
        .record(z.string(), fingerprint)
        .describe('SHA-256 of all other members by name, such as `serviceAccount.private_key`.'),
      notAfter: timestamp
        .nullable()
        .describe('When the credentials expire, if they contain an expiry.'),
      devices: count.describe(
        'Devices that a push would reach by this profile, of the newest 100,000.',
      ),
      devicesAreLeast: z
        .literal(true)
        .optional()
        .describe('The app has more than 100,000 devices.'),
      findings: z.array(z.string()).describe('Problems that an operator must fix.'),
      meanings: z.array(meaning).describe('What each of `findings` means.'),
      rotation: z
        .enum(rotationStates)
        .nullable()
        .describe('State of its last rotation. Null if it was never rotated.'),
      receiptUrl: z
        .url()
        .nullable()
        .describe(
          'Address for delivery receipts. It contains a secret. Huawei, Honor and Meizu send ' +
            'receipts only after it is registered on their site. Other gateways get it with each ' +
            'message. Null if the gateway sends no receipts.',
        ),
    })
    .describe('Push profile with fingerprints instead of its secrets.'),
);

export const profileCheck = component(
  'ProfileCheck',
  z.strictObject({
    ok: z.boolean().describe('Whether the check succeeded.'),
    gave: z
      .enum(['token', 'connection'])
      .nullable()
      .describe(
        '`token`: the gateway accepted the credentials. `connection`: the gateway is ' +
          'reachable, but only a push can verify the credentials.',
      ),
    tookMs: count.describe('Duration in ms.'),
    reason: z.string().nullable().describe('Short reason of a failure, such as `ECONNREFUSED`.'),
    meaning: meaning.nullable().describe('What the reason means. Null after a success.'),
    sentence: z.string().describe('Result as a text.'),
    remedy: remedy.nullable().describe('What can be done about a failure.'),
  }),
);

const quota = z.strictObject({
  connector: z.string().describe('Connector of the gateway.'),
  profile: z.string().describe('Name of the profile.'),
  class: z.string().describe('Class of messages with its own quota. Empty means all messages.'),
  used: count.describe('Recipients that the gateway accepted.'),
  requests: count.describe('Requests to the gateway.'),
  limit: count.nullable().describe('Null if the gateway does not report it.'),
  closedReason: z
    .string()
    .nullable()
    .describe('Why no more messages are sent until midnight in China.'),
  closedMeaning: meaning.nullable().describe('What `closedReason` means.'),
  rate: z
    .strictObject({
      perSecond: z.number().describe('Maximum per second.'),
      counts: z.enum(['recipients', 'requests']).describe('What the rate counts.'),
    })
    .nullable()
    .describe('Rate of the gateway. Null without one.'),
  forecast: count
    .nullable()
    .describe('Devices of the pushes that are scheduled until midnight in China.'),
});

export const quotas = component(
  'Quotas',
  z.strictObject({
    day: z.iso.date().describe('The day.'),
    zone: z.literal('Asia/Shanghai').describe('Time zone of the day.'),
    results: z.array(quota).describe('Usage by gateway, profile and class.'),
    app: z
      .strictObject({
        day: z.iso.date().describe('The day.'),
        zone: z.literal('UTC').describe('Time zone of the day.'),
        used: count.describe('Recipients of the day so far.'),
        limit: count.describe('Option `dailyRecipientCap` of the app.'),
        forecast: count
          .nullable()
          .describe('Devices of the pushes that are scheduled for the rest of the day.'),
      })
      .describe('Daily cap of the app, today.'),
    scheduled: z
      .strictObject({
        pushes: count.describe('Scheduled pushes.'),
        counted: count.describe('Scheduled pushes whose devices were counted.'),
      })
      .nullable()
      .describe(
        'Scheduled pushes of the forecast, and the number whose devices were counted in time. ' +
          'Null for another day.',
      ),
  }),
);

const device = z.strictObject({
  connector: z.string().describe('Connector of the gateway.'),
  profile: z.string().describe('Name of the profile.'),
  devices: count.describe('Number of devices.'),
  problem: z.string().nullable().describe('Why no profile serves them.'),
});

export const moveInState = component(
  'MoveInState',
  z
    .strictObject({
      devices: z
        .strictObject({
          imported: count.describe('Devices that were imported.'),
          seen: count.describe('Imported devices whose app has called this service since then.'),
          registered: count.describe('Devices that registered here.'),
        })
        .describe('Devices of the app.'),
      users: count.describe('Number of users.'),
      countsAreLeast: z
        .boolean()
        .describe('True if there are more than 1,000,000 devices or users.'),
      days: z
        .array(
          z.strictObject({
            day: z.string().describe('Day in UTC.'),
            moved: count.describe('Imported devices.'),
            registered: count.describe('Devices that registered here.'),
          }),
        )
        .describe('Devices by the day (UTC) of their last call, for the last 14 days.'),
      gateways: z.array(device).describe('The newest 100,000 devices, by the route of a push.'),
      gatewaysAreLeast: z.boolean().describe('True if the app has more devices than were counted.'),
      lastImport: importReport
        .extend({ at: timestamp.describe('End of the import.') })
        .nullable()
        .describe('The last import. Null without one.'),
      steps: z
        .array(
          z.strictObject({
            id: z.string().describe('Name of the step.'),
            state: z
              .enum(['done', 'todo', 'check'])
              .describe('`check`: only a person can decide it.'),
            code: z.string().describe('Code of the explanation.'),
            params: z
              .record(z.string(), z.union([z.string(), z.number()]))
              .describe('Values in the explanation.'),
          }),
        )
        .describe('Steps of the move.'),
    })
    .describe('Progress of an app’s move into this service.'),
);
