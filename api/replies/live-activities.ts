import { z } from 'zod';
import { channelStorages } from '../../shared/domain/pushes/live-activity.ts';
import type { Language } from '../../shared/domain/texts/catalogue.ts';
import { pushForecast } from './admin/pushes.ts';
import { component, count, timestamp } from './common.ts';
import { acceptedDocument, acceptedPush, document } from './pushes.ts';

const dryRun = z.literal(true).describe('The call was a dry run: nothing was sent or changed.');

/** Dry run of a Live Activity push. */
export const activityForecast = component(
  'LiveActivityForecast',
  pushForecast.omit({ digest: true }).extend({
    dryRun,
    withToken: count.describe('Devices that would get the push; 1 for a broadcast.'),
    withoutToken: count.describe(
      'Apple devices that match and have no push-to-start token, or devices whose update token ' +
        'has ended.',
    ),
    liveActivity: document.nullable().describe('What the push would start, update or end.'),
  }),
);

/** Reply to a call that sends, or its dry run. */
export const sentActivity = z.union([acceptedPush, activityForecast]);

type Sent = { accepted: Parameters<typeof acceptedDocument>[1] } | { dryRun: object };

/** Returns the body of `sentActivity`. */
export const sentDocument = (language: Language, given: Sent) =>
  'dryRun' in given ? given.dryRun : acceptedDocument(language, given.accepted);

export const reportedToken = component(
  'LiveActivityToken',
  z.strictObject({
    dryRun: dryRun.optional(),
    kind: z.enum(['start', 'update']).describe('Kind of the token.'),
    installation: z.string().describe('objectId of the installation.'),
    expiresAt: timestamp
      .nullable()
      .describe('Time at which an update token ends. Null for a push-to-start token.'),
  }),
);

export const createdChannel = component(
  'CreatedChannel',
  z.strictObject({ channel: z.string().describe('Id of the channel, as APNs gave it.') }),
);

export const channelDryRun = component(
  'ChannelDryRun',
  z.strictObject({
    dryRun,
    prod: z.enum(['dev', 'prod']).describe('Environment of APNs.'),
    topic: z.string().describe('Bundle id that owns the channel.'),
    request: z
      .strictObject({
        method: z.string().describe('HTTP method.'),
        url: z.string().describe('Address at APNs.'),
        body: document.optional().describe('Body. Absent for a request without a body.'),
      })
      .describe('Request that would be sent to APNs.'),
  }),
);

const storage = z
  .enum(channelStorages)
  .nullable()
  .describe(
    'Whether APNs stores the newest message for devices that are offline. Null if the channel was created elsewhere and was not used here.',
  );

export const listedChannel = component(
  'ListedChannel',
  z.strictObject({
    channel: z.string().describe('Id of the channel, as APNs gave it.'),
    storage,
    createdAt: timestamp
      .nullable()
      .describe('When Carillon created or first read the channel. Null before.'),
  }),
);

export const broadcastChannel = component(
  'BroadcastChannel',
  z.strictObject({
    channel: z.string().describe('Id of the channel, as APNs gave it.'),
    storage: z
      .enum(channelStorages)
      .describe('Whether APNs stores the newest message for devices that are offline.'),
    prod: z.enum(['dev', 'prod']).describe('Environment of APNs.'),
    topic: z.string().describe('Bundle id that owns the channel.'),
    createdAt: timestamp
      .nullable()
      .describe('When Carillon created or first read the channel. Null before.'),
  }),
);
