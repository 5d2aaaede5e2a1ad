import { z } from 'zod';
import { connectorIds } from '../../../shared/domain/labels.ts';
import { pushStates } from '../../../shared/domain/pushes/record.ts';
import { component, count, meaning, timestamp } from '../common.ts';
import { outcomeTotals, pushRecord } from '../pushes.ts';
import { breaker } from './pushes.ts';

const document = z.record(z.string(), z.unknown());

const listed = {
  ...pushRecord.shape,
  appId: z.string().describe('Id of the app.'),
  state: z.enum(pushStates).describe('State of the push.'),
  flowControl: z.int().nullable().describe('Recipients per second. Null means unlimited.'),
  expiresAt: timestamp.describe('Time after which the push is not delivered.'),
  firstSentAt: timestamp
    .nullable()
    .describe('Time of the first request to a gateway. Null before.'),
  finishedAt: timestamp.nullable().describe('Time of the end. Null before.'),
  createdBy: z
    .string()
    .nullable()
    .describe('Caller of the admin API that sent it. Null if the app sent it.'),
  campaign: z
    .string()
    .nullable()
    .describe('Internal name of the push (`campaign` of the call). Null if it has none.'),
  localTime: z
    .string()
    .nullable()
    .describe(
      'For a push at local time: its local time, such as `2026-12-01T09:00:00.000`. Otherwise ' +
        'null.',
    ),
  waitsForApproval: z
    .boolean()
    .describe('Whether the push is paused until another person approves it.'),
  redriveOf: z
    .string()
    .nullable()
    .describe('Push that this push redrives. Null if this push is not a redrive.'),
  recallOf: z
    .string()
    .nullable()
    .describe('Push that this push recalls. Null if this push is not a recall.'),
  redriven: count.describe('Recipients that redrives of this push have taken over.'),
  recurring: z
    .strictObject({
      id: z.int().describe('Id of the recurring push.'),
      name: z.string().describe('Name of the recurring push.'),
    })
    .nullable()
    .describe('Recurring push that made this push. Null for other pushes.'),
};

export const listedPush = component('ListedPush', z.strictObject(listed));

const approval = z
  .strictObject({
    above: count
      .nullable()
      .describe(
        'Number of devices above which the app requires an approval. Null if the approval was ' +
          'given before planning.',
      ),
    firstBy: z
      .string()
      .nullable()
      .describe("First of two operators who approve a push by the app's own keys; null before."),
    firstAt: timestamp.nullable().describe('Time of the first approval. Null before.'),
    givenBy: z.string().nullable().describe('Null while the push waits for the approval.'),
    givenAt: timestamp.nullable().describe('Time of the approval. Null before.'),
    missing: z
      .int()
      .min(0)
      .max(2)
      .describe(
        'Number of operators who still have to approve it. An owner counts for two. 0 after ' +
          'the approval.',
      ),
  })
  .nullable()
  .describe('Approval of a push to many devices. Null if none was requested or given.');

export const approvedPush = component(
  'ApprovedPush',
  z.strictObject({ ...pushRecord.shape, approval }),
);

export const pushDetail = component(
  'PushDetail',
  z.strictObject({
    ...listed,
    isPlanned: z.boolean().describe('Whether all recipients are known.'),
    acked: count.describe('Acknowledgements of the device channel.'),
    request: document.describe(
      'Checked request. For listed devices, only the first 100 ids and their number.',
    ),
    halts: z
      .record(z.string(), z.string())
      .describe(
        'Profiles that the push stopped using, as `<connector>/<profile>`, each with the reason.',
      ),
    approval,
    nextStart: timestamp
      .nullable()
      .describe(
        'For an open push at local time: the time of the next time zones. For a push that a ' +
          'recurring push made: the next time of the recurring push. Otherwise null.',
      ),
    redrives: z.array(z.string()).describe('Redrives of this push, newest first, at most 100.'),
    groupOf: z
      .array(z.string())
      .describe(
        'Pushes with the same `notification_id`, newest first. Empty if the push has none.',
      ),
  }),
);

const finding = z.strictObject({
  appId: z.string().describe('Id of the app.'),
  connector: z.enum(connectorIds).describe('Connector of the gateway.'),
  profile: z.string().describe('Name of the profile.'),
  expiresAt: timestamp
    .nullable()
    .describe('When the credentials expire. Null if they contain no expiry.'),
  problems: z.array(z.string()).describe('What the operator must fix.'),
  meanings: z.array(meaning).describe('What each of `problems` means.'),
});

export const queueState = component(
  'QueueState',
  z.strictObject({
    queue: z.string().describe('Name of the queue.'),
    ready: count.describe('Jobs that can start now.'),
    waiting: count.describe('Jobs that start later.'),
    active: count.describe('Jobs that a dispatcher works on.'),
    oldestSeconds: z.number().min(0).describe('Age of the oldest job that can start.'),
  }),
);

export const overview = component(
  'Overview',
  z.strictObject({
    running: z.array(listedPush).describe('Pushes that are not done, newest first, at most 20.'),
    scheduled: count.describe('Pushes that wait for their time.'),
    today: z
      .strictObject({
        day: z.iso.date().describe('Day in UTC.'),
        recipients: count.describe('Recipients of the day so far.'),
        cap: count.nullable().describe('`dailyRecipientCap` of the app. Null for several apps.'),
        calls: count.describe('Calls of the day so far.'),
        peakCallsPerMinute: count.describe('Most calls in one minute.'),
      })
      .describe('Usage of today.'),
    waitingApproval: z
      .array(listedPush)
      .describe('Pushes that wait for an approval, newest first, at most 20.'),
    outcomes24h: outcomeTotals.describe(
      'Outcomes of the pushes accepted in the last 24 hours, whether finished, cancelled or ' +
        'running.',
    ),
    unacknowledged24h: count.describe(
      'Number of `sent` messages of the device channel that no device has acknowledged.',
    ),
    outcomesAreLeast: z.boolean().describe('True if there are more pushes than were counted.'),
    breakersOpen: z.array(breaker).describe('Breakers that are not closed.'),
    queues: z.array(queueState).describe('The queues.'),
    profilesExpiring: z.array(finding).describe('Credentials that expire within 30 days.'),
    webhooks: z
      .array(
        z.strictObject({
          appId: z.string().describe('Empty for a webhook of the service.'),
          name: z.string().describe('Name of the webhook.'),
          offReason: z
            .enum(['gone', 'failing'])
            .nullable()
            .describe('Why the service switched it off. Null if it dropped events.'),
          at: timestamp.describe('Time at which this happened.'),
        }),
      )
      .describe('Webhooks that the service switched off, or that dropped events within a day.'),
    findings: z
      .array(finding)
      .describe(
        'Credentials with problems: what their text shows, and why the newest push of the last ' +
          '24 hours stopped using them, such as a refusal by the gateway.',
      ),
    setup: z
      .strictObject({
        hasProfile: z.boolean().describe('Whether the app has a push profile.'),
        hasDevice: z.boolean().describe('Whether the app has an installation.'),
        hasPush: z.boolean().describe('Whether the app has sent a push.'),
      })
      .nullable()
      .describe('What the app already has. Null for several apps.'),
  }),
);

export const meta = component(
  'Meta',
  z.strictObject({
    version: z.string().describe('Version of Carillon.'),
    build: z.string().nullable().describe('Digest of the built console. Null if it is not built.'),
    publicUrl: z.string().describe('`PUBLIC_URL` of the service.'),
    tryUrl: z
      .string()
      .nullable()
      .describe('Page of `npm start` that tries Web Push in a browser. Null without it.'),
    address: z.string().describe('Address of the caller, determined with `TRUSTED_PROXIES`.'),
    now: timestamp.describe('Time of the server.'),
    connectors: z
      .array(
        z.strictObject({
          id: z.enum(connectorIds).describe('Id of the connector.'),
          wire: z.array(z.string()).describe('Names of the vendor in installations.'),
          dataKeys: z.array(z.string()).describe('Keys of push `data` for this connector only.'),
          credentials: z
            .unknown()
            .describe('JSON Schema of the credentials. Null if it needs none.'),
          help: z
            .strictObject({
              source: z.string().describe('Where the vendor shows the value.'),
              members: z.record(z.string(), z.string()).describe('Where each member comes from.'),
              example: z.unknown().describe('Example of the credentials.'),
            })
            .nullable()
            .describe('Help for the credentials. Null if the connector needs none.'),
          limits: z.record(z.string(), z.number()).describe('Limits of the gateway.'),
          can: z.record(z.string(), z.boolean()).describe('What the gateway can do.'),
          tokenField: z
            .string()
            .describe('Member of an installation with the token of this connector.'),
        }),
      )
      .describe('All connectors.'),
    options: z.unknown().describe('JSON Schema of the options of an app.'),
    defaults: z
      .strictObject({
        commercial: z.unknown().describe('Options of a commercial app.'),
        development: z.unknown().describe('Options of a development app.'),
      })
      .describe('Default options, by plan.'),
    ownerOptions: z.array(z.string()).describe('Options of an app that only owners change.'),
    push: z.unknown().describe('JSON Schema of the body of a push.'),
    dataKeys: z.array(z.string()).describe('Names of the objects in `data`.'),
    roles: z.array(z.string()).describe('Roles of callers.'),
    outcomes: z.array(z.string()).describe('Outcomes of recipients.'),
    states: z.array(z.string()).describe('States of pushes.'),
  }),
);
