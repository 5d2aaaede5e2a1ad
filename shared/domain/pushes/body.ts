import { z } from 'zod';
import { time } from '../client-values.ts';
import { isTimeZone } from './local-time.ts';
import { pushKinds } from './push-class.ts';
import { isQuietHours, noQuietHours, quietHoursForm } from './quiet-hours.ts';

/**
 * Schemas of the bodies that send a push, with descriptions of all members
 * (protocol/push.md#push-call; docs/reference/http-api.md).
 */

/** Maximum number of device ids in one call (protocol/push.md#device-ids). */
const maxDeviceIds = 500;

/** `flow_control` of a push, and of the call that resumes a push. */
export const flowControl = z.number().min(0).max(1_000_000_000).nullish();

const shortId = z
  .string()
  .regex(/^[A-Za-z0-9]{1,16}$/, 'expected at most 16 letters or digits')
  .nullish();

/** May also be `{"__type":"Date","iso":…}`, the form in which SDKs encode dates. */
const pushTime = z
  .union([time, z.object({ __type: z.literal('Date'), iso: time }).transform(({ iso }) => iso)])
  .nullish();

/** May also be a string, as old documentation shows (protocol/push.md#requests-of-real-clients). */
const seconds = z
  .union([
    z.number(),
    z
      .string()
      .regex(/^\d{1,10}$/, 'expected a number of seconds')
      .transform(Number),
  ])
  .refine((value) => Number.isFinite(value) && value > 0, 'expected a positive number of seconds')
  .nullish();

const text = z.string().min(1).max(256).nullish();

const data = z.record(z.string(), z.unknown());

/**
 * Channel names: letters, digits, `_ = -` and Chinese characters. The empty name is for broadcast
 * (protocol/installations.md#channel-names).
 */
const channelName = z
  .string()
  .max(200)
  .regex(/^[\p{Script=Han}A-Za-z0-9_=-]*$/u, { error: 'invalid channel name' });

const channels = z
  .union([channelName.transform((name) => [name]), z.array(channelName).max(1000)])
  .nullish();

/** Members of both calls. */
export const common = {
  data: data.describe('Content of the push.'),
  languages: z
    .record(z.string(), data)
    .nullish()
    .describe(
      'Members of `data` in other languages, by language tag: each device gets the one that fits its `locale` best.',
    ),
  variables: z
    .record(z.string(), z.strictObject({ field: z.string(), default: z.string().max(100) }))
    .nullish()
    .describe(
      'Values for `{{name}}` in `alert` and `title`, by name: a field of the installation, and a default for devices without it.',
    ),
  notification_id: shortId.describe(
    'Id of the push for statistics, at most 16 letters and digits; made where absent.',
  ),
  req_id: shortId.describe(
    'Id of the request, at most 16 letters and digits: a repeat within 5 minutes returns the first push.',
  ),
  expiration_time: pushTime.describe('Time from which the push is not delivered.'),
  expiration_interval: seconds.describe(
    'Seconds from `push_time`, or the call, after which it is not delivered.',
  ),
  prod: z
    .enum(['dev', 'prod'], 'expected "dev" or "prod"')
    .nullish()
    .describe(
      'Gateway of APNs; without it `prod`, or `dev` where the header `X-LC-Prod` is not 1.',
    ),
  topic: text.describe('APNs topic (bundle id) in place of that of the device.'),
  pgw_team_id: text.describe('APNs team, where profiles of several teams exist.'),
  apns_team_id: text.describe('Same as `pgw_team_id`.'),
  kind: z
    .enum(pushKinds, 'expected "marketing" or "transactional"')
    .nullish()
    .describe('`transactional`: limits per device do not apply to it. `marketing` by default.'),
  device_cap: z
    .int('expected a whole number')
    .min(0)
    .max(1000)
    .nullish()
    .describe(
      'Pushes per device and day, in place of `devicePushesPerDay` of the app; 0 for no limit.',
    ),
  quiet_hours: z
    .string()
    .refine((hours) => hours === noQuietHours || isQuietHours(hours), `${quietHoursForm}, or "off"`)
    .nullish()
    .describe(
      'Hours in which a device gets nothing, in its own `timeZone` (`22:00-08:00`), in place of `quietHours` of the app; `off` for none.',
    ),
  lastActiveDeviceOnly: z
    .boolean('expected true or false')
    .nullish()
    .describe(
      'Of the devices of the push with the same `user`, only the one that was saved last gets it; devices without a `user` all get it.',
    ),
  _notificationChannel: text.describe('Android notification channel (category).'),
};

/** Members of the body of POST /1.1/push. */
export const queryBody = z.object({
  ...common,
  where: z
    .unknown()
    .meta({ type: ['object', 'array', 'string'] })
    .optional()
    .describe('Condition on installations; without it all installations.'),
  cql: z
    .unknown()
    .meta({ type: 'string', maxLength: 16_384 })
    .optional()
    .describe('The condition as a CQL statement, in place of `where`.'),
  channels: channels.describe('Only installations that subscribe one of these channels.'),
  push_time: pushTime.describe('Time to send at; within the next minute, it is sent at once.'),
  push_time_local: z
    .boolean()
    .nullish()
    .describe(
      '`push_time` has no zone (`2026-12-01T09:00:00`): each device gets the push at that time of its own `timeZone`.',
    ),
  default_time_zone: z
    .string()
    .refine(isTimeZone, 'expected a time zone, such as "Asia/Shanghai"')
    .nullish()
    .describe(
      'With `push_time_local`: zone of devices without a known one; `defaultTimeZone` of the app without it.',
    ),
  flow_control: flowControl.describe('Recipients per second over all dispatchers; at least 1,000.'),
});

const deviceId = z
  .string()
  .min(1)
  .max(512)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
  .regex(/^[^\s\x00-\x1f\x7f]+$/, 'a device id has no blanks or control characters');

/** Members of the body of POST /1.1/push/devices. */
export const devicesBody = z.object({
  ...common,
  device_type: z
    .enum(['android', 'ios'], 'expected "android" or "ios"')
    .describe('Type of all devices of the call.'),
  device_ids: z
    .array(deviceId)
    .min(1)
    .max(maxDeviceIds, `at most ${maxDeviceIds} device ids`)
    .describe(
      'Device tokens (iOS), registration ids (with `vendor`) or installation ids (Android).',
    ),
  device_profile: z
    .string()
    .regex(/^([A-Za-z][A-Za-z0-9_]*)?$|^_default$/, 'a profile name begins with a letter')
    .max(64)
    .nullish()
    .describe('Name of the push profile; `_default` by default.'),
  channel: text.describe('Same as `_notificationChannel`.'),
  vendor: text.describe('Vendor of all devices of the call; Android only.'),
});
