import { z } from 'zod';
import { allOptions } from '../../../shared/domain/apps/app.ts';
import { connectorIds } from '../../../shared/domain/labels.ts';
import { count, timestamp } from '../common.ts';
import { component } from '../component.ts';

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

const keyOfOwner = z.string().optional().describe('For owners only.');

export const shownApp = component(
  'ShownApp',
  z
    .strictObject({ ...app.shape, appKey: keyOfOwner, masterKey: keyOfOwner, hookKey: keyOfOwner })
    .describe('App; its keys, and the credentials of `authPlatforms`, for owners only.'),
);

export const pushProfile = component(
  'PushProfile',
  z
    .strictObject({
      connector: z.enum(connectorIds),
      name: z.string().describe('`_default` for the nameless one.'),
      createdAt: timestamp,
      updatedAt: timestamp,
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
