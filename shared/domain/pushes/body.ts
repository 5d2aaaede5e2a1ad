import { z } from 'zod';
import { time } from '../client-values.ts';
import { isTimeZone } from './local-time.ts';
import { messageClassNames } from './message-classes.ts';
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

const shortIdText = z
  .string()
  .regex(/^[A-Za-z0-9]{1,16}$/, 'expected at most 16 letters or digits');
const shortId = shortIdText.nullish();

/** Returns whether a value is a `req_id`. */
export const isRequestId = (value: unknown): value is string =>
  shortIdText.safeParse(value).success;

/** May also be `{"__type":"Date","iso":…}`, the form in which SDKs encode dates. */
const pushTime = z
  .union([
    time,
    z
      .object({
        __type: z.literal('Date').describe('Type of the value.'),
        iso: time.describe('The time.'),
      })
      .transform(({ iso }) => iso),
  ])
  .nullish();

/** May also be a string, as old documentation shows (protocol/push.md#requests-of-real-clients). */
const seconds = z
  .union([
    z.number().meta({ exclusiveMinimum: 0 }),
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
  data: data.describe('Content of the push: see protocol/push.md#content.'),
  languages: z
    .record(z.string(), data)
    .nullish()
    .describe(
      'Translations of members of `data`, by language tag. Each device gets the translation that fits its `locale` best: see protocol/push.md#languages.',
    ),
  variables: z
    .record(
      z.string(),
      z.strictObject({
        field: z.string().describe('Field of the installation; dotted for a member of an object.'),
        default: z.string().max(100).describe('Value for devices without this field.'),
      }),
    )
    .nullish()
    .describe(
      'Values for `{{name}}` in `alert` and `title`, by name. Each value is a field of the installation, with a default for devices without this field: see protocol/push.md#variables.',
    ),
  notification_id: shortId.describe(
    'Id of the push for statistics, at most 16 letters and digits. Generated if absent.',
  ),
  campaign: z
    .string()
    .min(1)
    .max(100)
    .nullish()
    .describe(
      'Internal name of the push, at most 100 characters. Lists of the console show it. No device gets it.',
    ),
  req_id: shortId.describe(
    'Id of the request, at most 16 letters and digits. A request with the same id within 5 minutes returns the first push.',
  ),
  expiration_time: pushTime.describe(
    'Time after which the push is not delivered: see protocol/push.md#expiry.',
  ),
  expiration_interval: seconds.describe(
    'Seconds after which the push is not delivered, counted from `push_time` or from the call.',
  ),
  prod: z
    .enum(['dev', 'prod'], 'expected "dev" or "prod"')
    .nullish()
    .describe(
      'Gateway of APNs. The default is `prod`, or `dev` if the header `X-LC-Prod` is present and not 1.',
    ),
  topic: text.describe('APNs topic (bundle id). Overrides the topic of the device.'),
  pgw_team_id: text.describe('APNs team id. Needed if the app has profiles of several teams.'),
  apns_team_id: text.describe('Same as `pgw_team_id`.'),
  kind: z
    .enum(pushKinds, 'expected "marketing" or "transactional"')
    .nullish()
    .describe(
      'Limits per device do not apply to `transactional` pushes. The default is `marketing`. See protocol/push.md#pushes-per-device-and-day.',
    ),
  class: z
    .enum(messageClassNames, `expected one of ${messageClassNames.join(', ')}`)
    .nullish()
    .describe(
      "What the message is about, as each vendor's own message class. Decides how many messages a vendor shows per device and day: see protocol/push.md#message-classes.",
    ),
  device_cap: z
    .int('expected a whole number')
    .min(0)
    .max(1000)
    .nullish()
    .describe(
      'Maximum pushes per device and day. Overrides `devicePushesPerDay` of the app. 0 means no limit.',
    ),
  quiet_hours: z
    .string()
    .refine((hours) => hours === noQuietHours || isQuietHours(hours), `${quietHoursForm}, or "off"`)
    .nullish()
    .describe(
      'Hours in which a device gets no push, in its own `timeZone` (`22:00-08:00`). Overrides `quietHours` of the app. `off` means no quiet hours. See protocol/push.md#quiet-hours.',
    ),
  lastActiveDeviceOnly: z
    .boolean('expected true or false')
    .nullish()
    .describe(
      'If several targeted devices have the same `user`, only the device that was saved last gets the push. All devices without a `user` get the push. See protocol/push.md#last-active-device-only.',
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
    .describe(
      'Condition on installations: see protocol/queries.md#operators. Absent: all installations.',
    ),
  cql: z
    .unknown()
    .meta({ type: 'string', maxLength: 16_384 })
    .optional()
    .describe('The condition as a CQL statement, instead of `where`: see protocol/queries.md#cql.'),
  channels: channels.describe('Only installations that subscribe to one of these channels.'),
  push_time: pushTime.describe(
    'Time to send the push. If it is less than a minute ahead, the push is sent at once. See protocol/push.md#scheduling.',
  ),
  push_time_local: z
    .boolean()
    .nullish()
    .describe(
      'If true, `push_time` has no time zone (`2026-12-01T09:00:00`), and each device gets the push at this time in its own `timeZone`: see protocol/push.md#local-time.',
    ),
  default_time_zone: z
    .string()
    .refine(isTimeZone, 'expected a time zone, such as "Asia/Shanghai"')
    .nullish()
    .describe(
      'With `push_time_local`: time zone of devices without a valid time zone. The default is `defaultTimeZone` of the app.',
    ),
  flow_control: flowControl.describe(
    'Recipients per second over all dispatchers; at least 1,000. See protocol/push.md#flow-control.',
  ),
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
