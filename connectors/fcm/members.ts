/** Members of FCM's message (protocol/fcm.md#members). */
import { isJsonObject, type JsonObject } from '../../shared/domain/json.ts';
import { time } from '../../shared/domain/times.ts';
import { contentRefused, unfitMember } from '../kit/content-reasons.ts';
import { MemberTable, membersAt, part } from '../kit/members.ts';
import {
  duration,
  flag,
  int,
  like,
  list,
  mapOf,
  number,
  object,
  oneName,
  refined,
  text,
  texts,
  written,
} from '../kit/values.ts';

export const longestTtlS = 2_419_200;

/** Names that FCM keeps for itself (protocol/fcm.md#message). */
const isReserved = (name: string): boolean => /^(from|message_type|google|gcm)$|^(google|gcm)\./.test(name);

const label = like(/^[a-zA-Z0-9\-_.~%]{1,50}$/, 'a label of at most 50 letters, digits and -_.~%');
const moment = refined(
  text(),
  (value) => time.safeParse(value).success,
  'a time such as "2027-01-31T08:00:00Z"',
);
const data = mapOf(text());
const headers = mapOf(written);
const share = number(0, 1);
const anyDuration = duration(0, 315_576_000_000);
const largestInt = 2_147_483_647;

/** Members of both forms of an Android notification. */
const androidNotification = {
  title: text(),
  body: text(),
  icon: text(),
  color: like(/^#[0-9a-fA-F]{6}$/, 'a colour such as "#ff0000"'),
  sound: text(),
  tag: text(),
  click_action: text(),
  body_loc_key: text(),
  body_loc_args: texts,
  title_loc_key: text(),
  title_loc_args: texts,
  channel_id: text(),
  ticker: text(),
  sticky: flag,
  event_time: moment,
  local_only: flag,
  notification_priority: oneName(['UNSPECIFIED', 'MIN', 'LOW', 'DEFAULT', 'HIGH', 'MAX'], 'PRIORITY_'),
  default_sound: flag,
  default_vibrate_timings: flag,
  default_light_settings: flag,
  vibrate_timings: list(anyDuration, 'a list of durations, such as ["0.5s"]'),
  visibility: oneName(['VISIBILITY_UNSPECIFIED', 'PRIVATE', 'PUBLIC', 'SECRET']),
  notification_count: int(0, largestInt),
  light_settings: part,
  image: text(),
};

/** Members of `android` and of `android_v2`. */
const androidConfig = {
  collapse_key: text(),
  ttl: duration(0, longestTtlS),
  restricted_package_name: text(),
  data,
  fcm_options: part,
  direct_boot_ok: flag,
  bandwidth_constrained_ok: flag,
  restricted_satellite_ok: flag,
};

const lightSettings = (place: string) => [
  ...membersAt(`${place}.light_settings`, {
    color: part,
    light_on_duration: anyDuration,
    light_off_duration: anyDuration,
  }),
  ...membersAt(`${place}.light_settings.color`, { red: share, green: share, blue: share, alpha: share }),
];

export const fcmMembers = new MemberTable(
  [
    ...membersAt('', {
      data,
      notification: part,
      android: part,
      android_v2: part,
      apns: part,
      webpush: part,
      fcm_options: part,
    }),
    ...membersAt('notification', { title: text(), body: text(), image: text() }),
    ...membersAt('android', {
      ...androidConfig,
      priority: oneName(['NORMAL', 'HIGH']),
      notification: part,
    }),
    ...membersAt('android.fcm_options', { analytics_label: label }),
    ...membersAt('android.notification', {
      ...androidNotification,
      proxy: oneName(['PROXY_UNSPECIFIED', 'ALLOW', 'DENY', 'IF_PRIORITY_LOWERED']),
      bypass_proxy_notification: flag,
    }),
    ...lightSettings('android.notification'),
    ...membersAt('android_v2', { ...androidConfig, remote_notification: part, background_sync: part }),
    ...membersAt('android_v2.fcm_options', { analytics_label: label }),
    ...membersAt('android_v2.remote_notification', {
      notification: part,
      mutable_content: flag,
      use_as_v1_data_message: flag,
    }),
    ...membersAt('android_v2.remote_notification.notification', {
      ...androidNotification,
      id: int(-largestInt - 1, largestInt),
    }),
    ...lightSettings('android_v2.remote_notification.notification'),
    ...membersAt('apns', {
      headers,
      payload: object,
      fcm_options: part,
      live_activity_token: text(1),
    }),
    ...membersAt('apns.fcm_options', { analytics_label: label, image: text() }),
    ...membersAt('webpush', { headers, data, notification: object, fcm_options: part }),
    ...membersAt('webpush.fcm_options', { link: text(), analytics_label: label }),
    ...membersAt('fcm_options', { analytics_label: label }),
  ],
  { flat: ['android', 'android.notification'], unknown: 'refuse', isAnyCase: true },
);

const objectAt = (message: JsonObject, path: string): JsonObject | undefined => {
  let found: JsonObject | undefined = message;
  for (const name of path.split('.')) {
    const inner: unknown = found?.[name];
    found = isJsonObject(inner) ? inner : undefined;
  }
  return found;
};

/**
 * Returns the first rule on several members that a message breaks, or null. `path`: that of the
 * message in the push.
 */
export function messageError(message: JsonObject, path: string): string | null {
  return (
    ['', 'android.', 'android_v2.', 'webpush.']
      .map((place) => reservedIn(objectAt(message, `${place}data`), `${path}.${place}data`))
      .find((error) => error !== null) ??
    ['android.notification', 'android_v2.remote_notification.notification']
      .map((place) => lightError(objectAt(message, `${place}.light_settings`), `${path}.${place}`))
      .find((error) => error !== null) ??
    secondFormError(message, path)
  );
}

function reservedIn(data: JsonObject | undefined, path: string): string | null {
  const name = Object.keys(data ?? {}).find(isReserved);
  return name === undefined
    ? null
    : contentRefused(`${path}.${name.slice(0, 40)} is a name that FCM keeps to itself`);
}

function lightError(light: JsonObject | undefined, path: string): string | null {
  const missing = ['color', 'light_on_duration', 'light_off_duration'].find(
    (name) => light && !(name in light),
  );
  return missing === undefined ? null : unfitMember(`${path}.light_settings`, `must have ${missing}`);
}

/**
 * Checks `android_v2`: it has one of two bodies, and no `android` beside it
 * (protocol/fcm.md#members).
 */
function secondFormError({ android, android_v2: second }: JsonObject, path: string): string | null {
  if (!isJsonObject(second)) return null;
  if (isJsonObject(android)) return `${path}.android and ${path}.android_v2 must not be given together`;
  const { background_sync: sync, remote_notification: shown } = second;
  if (isJsonObject(shown) === isJsonObject(sync))
    return unfitMember(`${path}.android_v2`, 'must have either remote_notification or background_sync');
  return isJsonObject(shown) && !isJsonObject(shown.notification)
    ? unfitMember(`${path}.android_v2.remote_notification`, 'must have notification')
    : null;
}
