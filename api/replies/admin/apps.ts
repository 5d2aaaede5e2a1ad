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

/** Members of an app in all replies. */
const appMembers = {
  appId: z.string().describe('Id of the app.'),
  name: z.string().describe('Name of the app.'),
  edition: z
    .enum(['home', 'international'])
    .describe(
      'Edition: `home` (China) or `international`. It decides the currency of the usage report and whether codes by voice are possible.',
    ),
  plan: z.enum(['commercial', 'development']).describe('Plan: it decides the limits of the app.'),
};

export const app = component(
  'App',
  z.strictObject({
    ...appMembers,
    appKey: z.string().describe('App key.'),
    masterKey: z.string().describe('Master key.'),
    hookKey: z.string().describe('Hook key.'),
    options: appOptions,
  }),
);

export const appSummary = component(
  'AppSummary',
  z.strictObject({
    ...appMembers,
    createdAt: timestamp.describe('Time of the creation.'),
    devices: count.describe('Installations. At most 10,000 are counted.'),
    pushes7d: count.describe('Pushes whose records are kept. At most 10,000 are counted.'),
  }),
);

export const shownKey = component(
  'ShownKey',
  z.strictObject({
    key: z.enum(keyNames).describe('Name of the key.'),
    value: z.string().describe('The key.'),
  }),
);

export const rotatedKey = component(
  'RotatedKey',
  z.strictObject({
    key: z.enum(keyNames).describe('Name of the key.'),
    value: z.string().describe('The key.'),
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
      connector: z.enum(connectorIds).describe('Connector of the gateway.'),
      name: z.string().describe('`_default` for the default profile.'),
      createdAt: timestamp.describe('Time of the creation.'),
      updatedAt: timestamp.describe('Time of the last change.'),
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
    kind: z.enum(['sms', 'mail']).describe('SMS or mail.'),
    to: z.string().describe('Phone number in international form, or mail address.'),
    text: z
      .string()
      .describe('Text of the message. Empty if no key of `CARILLON_SECRET` decrypts it.'),
    code: z.string().optional().describe('Code in the message.'),
    link: z.string().optional().describe('Link in the message.'),
    type: z.string().describe('Purpose, such as `general` or `resetPassword`.'),
    createdAt: timestamp.describe('Time of the creation.'),
  }),
);

const states = z.enum(['waiting', 'sent', 'kept', 'failed']);

export const listedMessage = component(
  'ListedMessage',
  z
    .strictObject({
      ...outboxMessage.shape,
      text: z.string().optional().describe('Text of the message.'),
      id: z.string().describe('Id of the message.'),
      state: states.describe('`kept`: no provider was configured.'),
      attempts: count.describe('Number of attempts so far.'),
      reason: z.string().nullable().describe('Why the last attempt failed.'),
      meaning: meaning.optional().describe('What the reason means.'),
      providerId: z.string().nullable().describe('Id of an SMS at its provider.'),
      delivery: z
        .enum(['delivered', 'undelivered'])
        .nullable()
        .describe('What the provider of an SMS reported later. Null without a receipt.'),
      deliveryReason: z.string().nullable().describe('Why an SMS did not reach the device.'),
      deliveryMeaning: meaning.optional().describe('What `deliveryReason` means.'),
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
      .strictObject({
        used: count.describe('Free messages that were sent.'),
        limit: count.describe('Number of free messages.'),
      })
      .describe('Free messages to the home country.'),
    day: z
      .strictObject({
        used: count.describe('Messages that were sent.'),
        limit: count.describe('Option `smsPerAppPerDay`.'),
      })
      .describe('Messages in the current window of a day.'),
    suspended: z
      .array(
        z.strictObject({
          prefix: z.string().describe('Prefix of the country.'),
          openedAt: timestamp.describe('Start of the suspension.'),
          openUntil: timestamp.describe('End of the suspension.'),
        }),
      )
      .describe('Countries to which no message is sent, because hardly any code was used.'),
    conversion: z
      .array(
        z.strictObject({
          prefix: z.string().describe('Prefix of the country.'),
          sent: count.describe('Codes that were sent.'),
          used: count.describe('Codes that were used.'),
        }),
      )
      .describe('Codes of the last hour by country.'),
  }),
);

export const captchaText = component(
  'CaptchaText',
  z.strictObject({ code: z.string().describe('Characters of the captcha.') }),
);

export const usageReport = component(
  'UsageReport',
  z.strictObject({
    day: z.iso.date().describe('Day in UTC.'),
    calls: count.describe('Calls of the app.'),
    peakCallsPerMinute: count.describe('Most calls in one minute.'),
    recipients: count.describe('Recipients of the pushes.'),
    fees: z
      .strictObject({
        calls: z.number().describe('Price of the calls.'),
        recipients: z.number().describe('Price of the recipients.'),
        total: z.number().describe('Sum of both prices.'),
        currency: z.enum(['CNY', 'USD']).describe('Currency of the prices.'),
      })
      .describe('Price of LeanCloud, for comparison. Nothing is charged.'),
  }),
);

/** Meanings of the figures of a report. */
const figureMeanings: Record<keyof ReportFigures, string> = {
  pushes: 'Pushes that ended.',
  sent: 'Recipients with the outcome `sent`.',
  invalid_token: 'Recipients with the outcome `invalid_token`.',
  failed: 'Recipients with the outcome `failed`.',
  expired: 'Recipients with the outcome `expired`.',
  capped: 'Recipients with the outcome `capped`.',
  dropped: 'Recipients with the outcome `dropped`.',
  delivered: 'Devices that the pushes reached, according to receipts.',
  clicked: 'Devices on which pushes were opened, according to receipts.',
  received: 'Devices that reported the message as received.',
  opened: 'Devices that reported the message as opened.',
  dismissed: 'Devices that reported the message as dismissed.',
};

const figures = Object.fromEntries(
  reportFigures.map((name) => [name, count.describe(figureMeanings[name])] as const),
) as Record<keyof ReportFigures, typeof count>;

export const appReport = component(
  'AppReport',
  z.strictObject({
    from: z.iso.date().describe('First day of the report.'),
    to: z.iso.date().describe('Last day of the report.'),
    days: z
      .array(z.strictObject({ day: z.iso.date().describe('Day in UTC.'), ...figures }))
      .describe('Totals by day.'),
    connectors: z
      .array(
        z.strictObject({ connector: z.string().describe('Connector of the gateway.'), ...figures }),
      )
      .describe('Totals by connector.'),
    classes: z
      .array(
        z.strictObject({
          class: z.string().describe('Message class, or the kind. Empty for pushes without one.'),
          ...figures,
        }),
      )
      .describe('Totals by message class.'),
    reasons: z
      .array(
        z.strictObject({
          connector: z.string().describe('Connector of the gateway.'),
          reason: z.string().describe('Reason, in the form of the summary.'),
          n: count.describe('Number of recipients.'),
          meaning,
        }),
      )
      .describe('Most frequent reasons of failures.'),
    installations: z
      .array(
        z.strictObject({
          day: z.iso.date().describe('Day in UTC.'),
          platform: z.string().describe('Vendor or device type.'),
          n: count.describe('Number of installations.'),
        }),
      )
      .describe('Valid installations at the beginning of a day, by vendor or device type.'),
  }),
);

const reviewed = {
  name: z.string().describe('Name of the signature or template.'),
  status: z.enum(['approved', 'pending']).describe('`pending` until an operator approves it.'),
  createdAt: timestamp.describe('Time of the creation.'),
  updatedAt: timestamp.describe('Time of the last change.'),
};

const templateText = {
  type: z.enum(['verification', 'notification']).describe('`verification` texts contain the code.'),
  text: z.string().describe('Text of the message.'),
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
