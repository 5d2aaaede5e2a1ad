import { z } from 'zod';
import { component, count, timestamp } from '../common.ts';
import { installation, userPart } from '../objects.ts';

const rows = (what: string) =>
  z.array(z.record(z.string(), z.unknown())).describe(`${what}, at most 10,000.`);

/** Everything that is stored of one person (operate/personal-data.md). */
export const personExport = component(
  'PersonExport',
  z.strictObject({
    exportedAt: timestamp.describe('Time of the export.'),
    app: z
      .strictObject({
        appId: z.string().describe('Id of the app.'),
        name: z.string().describe('Name of the app.'),
      })
      .describe('App of the user.'),
    user: userPart,
    hasPassword: z.boolean().describe('Whether the user has a password.'),
    session: z.string().describe('Says whether the user has a session, without its token.'),
    thirdPartyAccounts: z
      .array(
        z.strictObject({
          platform: z.string().describe('Name of the platform.'),
          uid: z.string().describe('Id of the user at the platform.'),
          secrets: z.string().describe('Says which secrets are stored, without them.'),
        }),
      )
      .describe('Accounts of the user at other platforms.'),
    installations: z.array(installation).describe('Devices whose `user` is this user.'),
    receipts: rows('Pushes that devices reported as delivered, opened or dismissed'),
    pushFailures: rows('Failed and dropped messages of pushes'),
    pushesPerDay: rows('Counts of pushes for the limit per device'),
    invalidTokenNotices: rows('Receipts that called a token invalid'),
    liveActivityTokens: rows('Tokens of Live Activities'),
    channelMessages: rows('Messages that wait on the device channel'),
    messages: rows('Mails and SMS to the address and the number, with their text'),
    smsSends: rows('SMS that count for the limits of the number'),
    verificationCodes: rows('Codes that are valid, without the code'),
    links: rows('Links in mails, without the link'),
    loginLocks: rows('Failed logins'),
    identities: rows('Third-party accounts as they are looked up'),
    roles: rows('Roles of the user'),
    pushes: rows('Requests of pushes that name the user or a device'),
    recurringPushes: rows('Recurring pushes that name the user or a device'),
    savedItems: rows('Templates, audiences and test devices that name the user or a device'),
    webhookDeliveries: rows('Events for webhooks that name the user or a device'),
    audit: rows('Audit records about the user or a device'),
    isComplete: z.boolean().describe('False if a part has more rows than the export.'),
  }),
);

/** Report of an erasure. */
export const erasureReport = component(
  'ErasureReport',
  z.strictObject({
    dryRun: z.boolean().describe('True if nothing was changed.'),
    erased: z.record(z.string(), count).describe('Deleted or changed rows by part of the export.'),
    kept: z
      .array(
        z.strictObject({
          what: z.string().describe('Kind of the data.'),
          count: count.nullable().describe('Null if it is not counted.'),
          reason: z.string().describe('Why the data is kept.'),
        }),
      )
      .describe('Data that is not deleted.'),
  }),
);
