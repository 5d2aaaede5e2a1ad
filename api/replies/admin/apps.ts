import { z } from 'zod';
import { allOptions, keyNames } from '../../../shared/domain/apps/app.ts';
import { type ReportFigures, reportFigures } from '../../../shared/domain/apps/usage.ts';
import { jsonObject } from '../../../shared/domain/json-schema.ts';
import { connectorIds } from '../../../shared/domain/labels.ts';
import { providersShape } from '../../../shared/domain/messages/sms-provider.ts';
import { component, count, meaning, timestamp } from '../common.ts';

export const appOptions = component(
  'AppOptions',
  allOptions.describe('Every option with its value or default.'),
);

export const app = component(
  'App',
  z.strictObject({
    appId: z.string(),
    appKey: z.string(),
    masterKey: z.string(),
    hookKey: z.string(),
    name: z.string(),
    edition: z.enum(['home', 'international']),
    plan: z.enum(['commercial', 'development']),
    options: appOptions,
  }),
);

export const shownKey = component(
  'ShownKey',
  z.strictObject({ key: z.enum(keyNames), value: z.string() }),
);

export const rotatedKey = component(
  'RotatedKey',
  z.strictObject({
    key: z.enum(keyNames),
    value: z.string(),
    oldValidUntil: timestamp.nullable().describe('Null if the old key is already refused.'),
  }),
);

const keyOfOwner = z.string().optional().describe('For owners only.');

export const shownApp = component(
  'ShownApp',
  z
    .strictObject({ ...app.shape, appKey: keyOfOwner, masterKey: keyOfOwner, hookKey: keyOfOwner })
    .describe('App. Only owners get its keys and the credentials of `authPlatforms`.'),
);

export const pushProfile = component(
  'PushProfile',
  z
    .strictObject({
      connector: z.enum(connectorIds),
      name: z.string().describe('`_default` for the default profile.'),
      createdAt: timestamp,
      updatedAt: timestamp,
      messageClasses: z
        .record(z.string(), jsonObject)
        .optional()
        .describe('Members of the vendor by message class, if the profile has them.'),
    })
    .describe('Push profile without its credentials.'),
);

export const outboxMessage = component(
  'OutboxMessage',
  z.strictObject({
    kind: z.enum(['sms', 'mail']),
    to: z.string().describe('Phone number in international form, or mail address.'),
    text: z.string(),
    code: z.string().optional(),
    link: z.string().optional(),
    type: z.string().describe('Purpose, such as `general` or `resetPassword`.'),
    createdAt: timestamp,
  }),
);

const states = z.enum(['waiting', 'sent', 'kept', 'failed']);

export const listedMessage = component(
  'ListedMessage',
  z
    .strictObject({
      ...outboxMessage.shape,
      text: z.string().optional(),
      id: z.string(),
      state: states.describe('`kept`: no provider was configured.'),
      attempts: count,
      reason: z.string().nullable().describe('Why the last attempt failed.'),
      meaning: meaning.optional(),
      providerId: z.string().nullable().describe('Id of an SMS at its provider.'),
      delivery: z
        .enum(['delivered', 'undelivered'])
        .nullable()
        .describe('What the provider of an SMS reported later. Null without a receipt.'),
      deliveryReason: z.string().nullable().describe('Why an SMS did not reach the device.'),
      deliveryMeaning: meaning.optional(),
      deliveredAt: timestamp.nullable().describe('Time of the receipt.'),
      expiresAt: timestamp.describe('Time until which it is retried.'),
    })
    .describe('Message with its delivery state. Only owners get text, code and link.'),
);

export const smsState = component(
  'SmsState',
  z.strictObject({
    balance: z.number().nullable().describe('Option `smsBalance`. Null if there is no limit.'),
    free: z
      .strictObject({ used: count, limit: count })
      .describe('Free messages to the home country.'),
    day: z
      .strictObject({ used: count, limit: count })
      .describe('Messages in the current window of a day.'),
    suspended: z
      .array(z.strictObject({ prefix: z.string(), openedAt: timestamp, openUntil: timestamp }))
      .describe('Countries to which no message is sent, because hardly any code was used.'),
    conversion: z
      .array(z.strictObject({ prefix: z.string(), sent: count, used: count }))
      .describe('Codes of the last hour by country.'),
  }),
);

export const captchaText = component('CaptchaText', z.strictObject({ code: z.string() }));

export const usageReport = component(
  'UsageReport',
  z.strictObject({
    day: z.iso.date(),
    calls: count,
    peakCallsPerMinute: count,
    recipients: count,
    fees: z.strictObject({
      calls: z.number(),
      recipients: z.number(),
      total: z.number(),
      currency: z.enum(['CNY', 'USD']),
    }),
  }),
);

const figures = Object.fromEntries(reportFigures.map((name) => [name, count] as const)) as Record<
  keyof ReportFigures,
  typeof count
>;

export const appReport = component(
  'AppReport',
  z.strictObject({
    from: z.iso.date(),
    to: z.iso.date(),
    days: z.array(z.strictObject({ day: z.iso.date(), ...figures })),
    connectors: z.array(z.strictObject({ connector: z.string(), ...figures })),
    classes: z.array(
      z.strictObject({
        class: z.string().describe('Message class, or the kind. Empty for pushes without one.'),
        ...figures,
      }),
    ),
    reasons: z
      .array(z.strictObject({ connector: z.string(), reason: z.string(), n: count, meaning }))
      .describe('Most frequent reasons of failures.'),
    installations: z
      .array(z.strictObject({ day: z.iso.date(), platform: z.string(), n: count }))
      .describe('Valid installations at the beginning of a day, by vendor or device type.'),
  }),
);

const reviewed = {
  name: z.string(),
  status: z.enum(['approved', 'pending']),
  createdAt: timestamp,
  updatedAt: timestamp,
};

const templateText = {
  type: z.enum(['verification', 'notification']),
  text: z.string(),
  providers: providersShape.optional().describe('Templates of SMS providers for this text.'),
};

export const smsTemplate = component(
  'SmsTemplate',
  z.strictObject({
    ...reviewed,
    ...templateText,
    active: z
      .strictObject(templateText)
      .nullable()
      .describe('Text in use until `text` is approved. Null if no text is approved.'),
  }),
);

export const smsSignature = component('SmsSignature', z.strictObject(reviewed));
