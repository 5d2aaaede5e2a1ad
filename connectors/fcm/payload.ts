/**
 * Renders `data` of a push as a message of FCM (protocol/fcm.md#message;
 * protocol/push.md#what-a-tap-opens). The message contains a notification, and in `data` the member
 * `payload` with the whole push as JSON text. Pure.
 */

import { time } from '../../shared/domain/client-values.ts';
import { isJsonObject, type JsonObject } from '../../shared/domain/json.ts';
import { type RichMember, richMembers } from '../../shared/domain/pushes/rich-content.ts';
import type {
  Capabilities,
  ConnectorLimits,
  PushMessage,
  Rendering,
} from '../contract/connector.ts';
import { type AndroidContent, androidContent, bodySizeError } from '../kit/android.ts';
import { classMembers, withoutNotification } from '../kit/class-layers.ts';
import { MemberTable, membersAt, part } from '../kit/members.ts';
import { idsIn, withIds } from '../kit/recall.ts';
import {
  contentRefused,
  deepMerge,
  duration,
  flag,
  int,
  list,
  mapOf,
  matching,
  number,
  object,
  objectOf,
  oneName,
  parseObject,
  refined,
  scalarText,
  text,
  texts,
  unfitMember,
} from '../kit/values.ts';

// Members of FCM's message (protocol/fcm.md#members).

const maxTtlS = 2_419_200;

/** Names that FCM reserves (protocol/fcm.md#message). */
const isReserved = (name: string): boolean =>
  /^(from|message_type|google|gcm)$|^(google|gcm)\./.test(name);

const label = matching(
  /^[a-zA-Z0-9\-_.~%]{1,50}$/,
  'a label of at most 50 letters, digits and -_.~%',
);
const moment = refined(
  text(),
  (value) => time.safeParse(value).success,
  'a time such as "2027-01-31T08:00:00Z"',
);
const data = mapOf(text());
const headers = mapOf(scalarText);
const share = number(0, 1);
const anyDuration = duration(0, 315_576_000_000);
const largestInt = 2_147_483_647;

/** Members of the notification in `android` and in `android_v2`. */
const androidNotification = {
  title: text(),
  body: text(),
  icon: text(),
  color: matching(/^#[0-9a-fA-F]{6}$/, 'a colour such as "#ff0000"'),
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
  notification_priority: oneName(
    ['UNSPECIFIED', 'MIN', 'LOW', 'DEFAULT', 'HIGH', 'MAX'],
    'PRIORITY_',
  ),
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
  ttl: duration(0, maxTtlS),
  restricted_package_name: text(),
  data,
  fcm_options: part,
  direct_boot_ok: flag,
  bandwidth_constrained_ok: flag,
  restricted_satellite_ok: flag,
};

const lightSettings = (parent: string) => [
  ...membersAt(`${parent}.light_settings`, {
    color: part,
    light_on_duration: anyDuration,
    light_off_duration: anyDuration,
  }),
  ...membersAt(`${parent}.light_settings.color`, {
    red: share,
    green: share,
    blue: share,
    alpha: share,
  }),
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
    ...membersAt('android_v2', {
      ...androidConfig,
      remote_notification: part,
      background_sync: part,
    }),
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
 * Returns the first error that concerns several members of a message, or null. `path`
 * is the path of the message in the push.
 */
function messageError(message: JsonObject, path: string): string | null {
  return (
    ['', 'android.', 'android_v2.', 'webpush.']
      .map((parent) => reservedIn(objectAt(message, `${parent}data`), `${path}.${parent}data`))
      .find((error) => error !== null) ??
    ['android.notification', 'android_v2.remote_notification.notification']
      .map((parent) =>
        lightError(objectAt(message, `${parent}.light_settings`), `${path}.${parent}`),
      )
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
  return missing === undefined
    ? null
    : unfitMember(`${path}.light_settings`, `must have ${missing}`);
}

/**
 * Checks `android_v2`: it contains exactly one of two bodies, and the message has no `android`
 * (protocol/fcm.md#members).
 */
function secondFormError({ android, android_v2: second }: JsonObject, path: string): string | null {
  if (!isJsonObject(second)) return null;
  if (isJsonObject(android))
    return `${path}.android and ${path}.android_v2 must not be given together`;
  const { background_sync: sync, remote_notification: remote } = second;
  if (isJsonObject(remote) === isJsonObject(sync))
    return unfitMember(
      `${path}.android_v2`,
      'must have either remote_notification or background_sync',
    );
  return isJsonObject(remote) && !isJsonObject(remote.notification)
    ? unfitMember(`${path}.android_v2.remote_notification`, 'must have notification')
    : null;
}

export const can: Capabilities = { passThrough: true, badge: false, collapse: true };

/** One token per request, and 4096 bytes without the token (protocol/fcm.md#message). */
export const limits: ConnectorLimits = { recipientsPerRequest: 1, bodyBytes: 4096 };

export type FcmLabel = 'fcm' | 'vendor_g';

/** The part of a rendered push that all recipients share. */
export interface FcmPayload {
  /** Body without the device token. */
  body: Buffer;
  /** Offset at which the token is inserted, between its quotes. */
  tokenAt: number;
  /** True if a repeat replaces the notification on the device. */
  isRepeatHidden: boolean;
}

const head = '{"message":{"token":"';
/** Members that callers cannot set: they select the target, or FCM sets them. */
const protectedMembers = new Set([
  'token',
  'topic',
  'condition',
  'fid',
  'validate_only',
  'validateOnly',
  'name',
]);

/**
 * Renders a push for FCM. `nowMs` is the send time, from which the time to live is computed. The
 * vendor's object may be a complete message of FCM, `{"message":{…}}`.
 */
export function renderFcm(
  label: FcmLabel,
  message: PushMessage,
  nowMs: number = message.createdAtMs,
): Rendering<FcmPayload> {
  const content = androidContent(message, { connector: label, can, limits, isNative });
  if (!content.ok) return content;
  const own = ownMessage(content.payload);
  if (!own.ok) return own;
  const ttl = ttlOf(message.expiresAtMs - nowMs);
  const { silent, vendor } = content.payload;
  const ofClass = classMembers(message, (members, path) => vendorMembers(members, path));
  if (!ofClass.ok) return ofClass;
  const hasNotification = isNative(vendor) ? isJsonObject(own.payload.notification) : !silent;
  const base = deepMerge(
    isNative(vendor) ? { android: { ttl } } : messageOf(content.payload, message, ttl),
    hasNotification ? ofClass.payload : withoutNotification(ofClass.payload),
  );
  const merged = deepMerge(
    isJsonObject(own.payload.android_v2) ? inSecondForm(base, ttl) : base,
    own.payload,
  );
  const body = withReplacedIds(merged, message.replaces);
  const rest = JSON.stringify(body).slice(1, -1);
  const tooLarge = bodySizeError(label, Buffer.byteLength(rest) + 2, limits);
  if (tooLarge) return tooLarge;
  return {
    ok: true,
    payload: {
      body: Buffer.from(`${head}"${rest === '' ? '' : `,${rest}`}}}`),
      tokenAt: Buffer.byteLength(head),
      isRepeatHidden: hasTag(body),
    },
  };
}

/**
 * Sets the ids of the message that this message replaces, if this message is a notification of the
 * same form (`android` or `android_v2`).
 */
function withReplacedIds(body: JsonObject, ids: JsonObject | undefined): JsonObject {
  if (!ids) return body;
  const form = 'android_v2' in ids ? 'android_v2' : 'android';
  return notificationOf(body, form) === undefined ? body : withIds(body, ids);
}

/** Returns the Android notification of a message in one of its forms. */
function notificationOf(body: JsonObject, form: 'android' | 'android_v2'): JsonObject | undefined {
  const config = objectOf(body[form]);
  const part = form === 'android_v2' ? objectOf(config.remote_notification) : config;
  return isJsonObject(part.notification) ? part.notification : undefined;
}

/**
 * Returns the ids with which a later message replaces a message: the tag of the shown notification,
 * and the collapse keys of the stored message. Null for a message without a tag.
 */
export function identityOfFcm(label: FcmLabel, message: PushMessage): JsonObject | null {
  const rendering = renderFcm(label, message);
  if (!rendering.ok) return null;
  const body = objectOf(parseObject(previewFcm(rendering.payload))?.message);
  const first = idsIn(notificationOf(body, 'android'), ['tag']);
  const second = idsIn(notificationOf(body, 'android_v2'), ['tag', 'id']);
  const collapseKey = (form: string) => objectOf(body[form]).collapse_key ?? null;
  const apnsId = objectOf(objectOf(body.apns).headers)['apns-collapse-id'] ?? null;
  const apns: JsonObject =
    apnsId === null ? {} : { apns: { headers: { 'apns-collapse-id': apnsId } } };
  if (second)
    return {
      android_v2: {
        collapse_key: collapseKey('android_v2'),
        remote_notification: { notification: second },
      },
      ...apns,
    };
  if (!first) return null;
  return { android: { collapse_key: collapseKey('android'), notification: first }, ...apns };
}

/**
 * Firebase installation id: 22 characters of base64url whose first four bits are 7
 * (protocol/fcm.md#targets).
 */
const fidForm = /^[cdef][\w-]{21}$/;

/** Form of a registration id: a registration token or a Firebase installation id. */
export type TargetForm = 'token' | 'fid';

export const formOf = (registrationId: string): TargetForm =>
  fidForm.test(registrationId) ? 'fid' : 'token';

const heads = { token: head, fid: '{"message":{"fid":"' } as const;

/**
 * Returns the payload for targets of this form. The form decides which member contains the target.
 */
export function forTargets(payload: FcmPayload, form: TargetForm): FcmPayload {
  if (form === 'token') return payload;
  const { body, tokenAt } = payload;
  const start = Buffer.from(heads[form]);
  return {
    ...payload,
    body: Buffer.concat([start, body.subarray(tokenAt)]),
    tokenAt: start.length,
  };
}

/**
 * Returns the rich content that the system does not show: it has no buttons, and a complete message
 * has its own content.
 */
export const notShown = ({ data }: PushMessage): readonly RichMember[] =>
  [data.fcm, data.vendor_g].some((own) => isJsonObject(own) && isNative(own))
    ? richMembers
    : ['buttons'];

/** Returns the body for one device. */
export function previewFcm({ body, tokenAt }: FcmPayload): string {
  return `${body.subarray(0, tokenAt)}TOKEN${body.subarray(tokenAt)}`;
}

const isNative = (vendor: JsonObject): boolean => isJsonObject(vendor.message);

/**
 * Returns the time to live as a protobuf duration in whole seconds. 0 sends only to devices that
 * are online.
 */
function ttlOf(leftMs: number): string {
  return `${Math.min(maxTtlS, Math.max(0, Math.ceil(leftMs / 1000)))}s`;
}

function messageOf(
  content: AndroidContent,
  { channels, objectId }: PushMessage,
  ttl: string,
): JsonObject {
  const { action } = content.data;
  const [channel, ...more] = channels ?? [];
  const collapseId = content.data['collapse-id'];
  const group = typeof collapseId === 'string' && collapseId !== '' ? collapseId : null;
  const data: JsonObject = {
    payload: JSON.stringify(content.data),
    ...(channel !== undefined && more.length === 0 ? { _channel: channel } : {}),
    ...(typeof action === 'string' ? { action } : {}),
  };
  const android: JsonObject = { ttl, ...(group === null ? {} : { collapse_key: group }) };
  if (content.silent) return { data, android: { ...android, priority: 'NORMAL' } };
  const { alert, notificationChannel, rich, title } = content;
  return {
    data,
    notification: {
      ...(title === null ? {} : { title }),
      body: alert,
      ...(rich.image === undefined ? {} : { image: rich.image }),
    },
    android: {
      ...android,
      priority: 'HIGH',
      notification: {
        // Stays the same in all attempts. A repeat replaces the notification; another push does not
        // (protocol/fcm.md#repeats).
        tag: group ?? objectId,
        ...(notificationChannel === null ? {} : { channel_id: notificationChannel }),
      },
    },
  };
}

/**
 * Returns the members of FCM's message that the vendor's object sets: a complete `{"message":{…}}`,
 * or single members.
 */
function ownMessage({ vendor, vendorKey }: AndroidContent): Rendering<JsonObject> {
  const { badge: _, message = null, ...members } = withoutProtected(vendor);
  if (message === null) return vendorMembers(members, vendorKey);
  if (!isJsonObject(message))
    return { ok: false, error: unfitMember(`${vendorKey}.message`, 'must be an object') };
  const [beside] = Object.keys(members);
  if (beside === undefined) return vendorMembers(withoutProtected(message), `${vendorKey}.message`);
  return {
    ok: false,
    error: unfitMember(
      `${vendorKey}.${beside.slice(0, 40)}`,
      `must be a member of ${vendorKey}.message`,
    ),
  };
}

const withoutProtected = (object: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(object).filter(([name]) => !protectedMembers.has(name)));

function vendorMembers(message: JsonObject, path: string): Rendering<JsonObject> {
  const own = fcmMembers.arrange(message, path);
  const problem = own.ok ? messageError(own.payload, path) : null;
  return problem === null ? own : { ok: false, error: problem };
}

/**
 * Converts our message to the form with `android_v2`, if the vendor's object uses it
 * (protocol/fcm.md#members).
 */
const inSecondForm = ({ android: _, ...message }: JsonObject, ttl: string): JsonObject => ({
  ...message,
  android_v2: { ttl },
});

/** True if a repeat replaces the notification on the device. */
function hasTag({ android, android_v2: second }: JsonObject): boolean {
  const remote = isJsonObject(second) ? second.remote_notification : undefined;
  return [android, remote].some((one) => {
    const notification = isJsonObject(one) ? one.notification : undefined;
    return (
      isJsonObject(notification) && typeof notification.tag === 'string' && notification.tag !== ''
    );
  });
}
