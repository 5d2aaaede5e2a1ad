import { z } from 'zod';
import { importReport } from '../../../shared/domain/admin/import-report.ts';
import { rotationStates } from '../../../shared/domain/apps/canary.ts';
import { jsonObject } from '../../../shared/domain/json-schema.ts';
import { component, count, meaning, remedy, timestamp } from '../common.ts';
import { pushProfile } from './apps.ts';

const fingerprint = z.strictObject({ sha256: z.string() });

export const profileDetail = component(
  'ProfileDetail',
  z
    .strictObject({
      ...pushProfile.shape,
      kind: z.string().describe('Kind of the credentials: `token`, `certificate`, `secret`, …'),
      members: jsonObject.describe('Ids and settings of the credentials.'),
      secrets: z
        .record(z.string(), fingerprint)
        .describe('SHA-256 of all other members by name: `serviceAccount.private_key`.'),
      notAfter: timestamp.nullable().describe('When they expire, if they say so.'),
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
        .describe('State of its last rotation; null if it was never rotated.'),
    })
    .describe('Push profile with fingerprints in place of its secrets.'),
);

export const profileCheck = component(
  'ProfileCheck',
  z.strictObject({
    ok: z.boolean(),
    gave: z
      .enum(['token', 'connection'])
      .nullable()
      .describe(
        '`token`: the gateway accepted the credentials; `connection`: it can be reached, and tries credentials with messages only.',
      ),
    tookMs: count,
    reason: z.string().nullable().describe('Short reason of a failure, such as `ECONNREFUSED`.'),
    meaning: meaning.nullable().describe('What the reason means; null after a success.'),
    sentence: z.string(),
    remedy: remedy.nullable(),
  }),
);

const quota = z.strictObject({
  connector: z.string(),
  profile: z.string(),
  class: z.string().describe('Class of messages with a quota of its own; empty: all messages.'),
  used: count.describe('Recipients that the gateway accepted.'),
  requests: count,
  limit: count.nullable().describe('Null where the gateway does not say it.'),
  closedReason: z.string().nullable().describe('Why nothing more is sent until midnight in China.'),
  closedMeaning: meaning.nullable(),
  rate: z
    .strictObject({ perSecond: z.number(), counts: z.enum(['recipients', 'requests']) })
    .nullable(),
  forecast: count
    .nullable()
    .describe('Devices of the pushes that are scheduled until midnight in China.'),
});

export const quotas = component(
  'Quotas',
  z.strictObject({
    day: z.iso.date(),
    zone: z.literal('Asia/Shanghai'),
    results: z.array(quota),
    app: z
      .strictObject({
        day: z.iso.date(),
        zone: z.literal('UTC'),
        used: count,
        limit: count,
        forecast: count.nullable(),
      })
      .describe('Daily cap of the app, today.'),
    scheduled: z
      .strictObject({ pushes: count, counted: count })
      .nullable()
      .describe(
        'Scheduled pushes of the forecast, and those whose devices were counted in time; null for another day.',
      ),
  }),
);

const device = z.strictObject({
  connector: z.string(),
  profile: z.string(),
  devices: count,
  problem: z.string().nullable().describe('Why no profile serves them.'),
});

export const moveInState = component(
  'MoveInState',
  z
    .strictObject({
      devices: z.strictObject({
        imported: count.describe('Devices that an import wrote.'),
        seen: count.describe('Devices among them whose app has called this service since.'),
        registered: count.describe('Devices that registered here.'),
      }),
      users: count,
      countsAreLeast: z.boolean().describe('There are more than 1,000,000 devices or users.'),
      days: z
        .array(z.strictObject({ day: z.string(), moved: count, registered: count }))
        .describe('Devices by the day (UTC) on which they called last, of the last 14 days.'),
      gateways: z.array(device).describe('Devices by the way of a push, of the newest 100,000.'),
      gatewaysAreLeast: z.boolean(),
      lastImport: importReport.extend({ at: timestamp }).nullable(),
      steps: z.array(
        z.strictObject({
          id: z.string(),
          state: z
            .enum(['done', 'todo', 'check'])
            .describe('`check`: only a person can decide it.'),
          code: z.string(),
          params: z.record(z.string(), z.union([z.string(), z.number()])),
        }),
      ),
    })
    .describe('How far the move of an app into this service is.'),
);
