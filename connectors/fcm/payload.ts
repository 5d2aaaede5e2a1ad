/**
 * Renders `data` of a push as FCM's message (protocol/fcm.md#message; protocol/push.md#what-a-tap-opens): a notification, and
 * in `data` the member `payload` with the whole push as JSON text. Pure.
 */
import { isJsonObject, type JsonObject } from '../../shared/domain/json.ts';
import type { Capabilities, ConnectorLimits, PushMessage, Rendering } from '../contract/connector.ts';
import { type AndroidContent, androidContent, bodySizeError } from '../kit/android.ts';
import { unfitMember } from '../kit/content-reasons.ts';
import { deepMerge } from '../kit/json.ts';
import { fcmMembers, longestTtlS, messageError } from './members.ts';

export const can: Capabilities = { passThrough: true, badge: false, collapse: true };

/** One token per request; 4096 bytes without it (protocol/fcm.md#message). */
export const limits: ConnectorLimits = { recipientsPerRequest: 1, bodyBytes: 4096 };

export type FcmLabel = 'fcm' | 'vendor_g';

/** Rendered push, the part that all recipients share. */
export interface FcmPayload {
  /** Body without the device token. */
  body: Buffer;
  /** Offset of the token, between its quotes. */
  tokenAt: number;
  /** A repeat replaces the notification. */
  isRepeatHidden: boolean;
}

const head = '{"message":{"token":"';
/** Members that select the target, and the name that FCM gives; callers cannot set them. */
const ourMembers = new Set(['token', 'topic', 'condition', 'fid', 'validate_only', 'validateOnly', 'name']);

/**
 * Renders a push for FCM under one of its labels; `nowMs` is the send time, from which the time to live is computed. The
 * vendor's object may be a complete `{"message":{…}}` of FCM.
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
  const base = isNative(content.payload.vendor)
    ? { android: { ttl } }
    : messageOf(content.payload, message, ttl);
  const body = deepMerge(isJsonObject(own.payload.android_v2) ? inSecondForm(base, ttl) : base, own.payload);
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
 * A Firebase installation id: 22 characters of base64url, of which the first nibble is 7
 * (protocol/fcm.md#targets).
 */
const fidForm = /^[cdef][\w-]{21}$/;

/** What a registration id is: a registration token, or a Firebase installation id. */
export type TargetForm = 'token' | 'fid';

export const formOf = (registrationId: string): TargetForm =>
  fidForm.test(registrationId) ? 'fid' : 'token';

const heads = { token: head, fid: '{"message":{"fid":"' } as const;

/** Returns the payload with the member that names targets of this form. */
export function forTargets(payload: FcmPayload, form: TargetForm): FcmPayload {
  if (form === 'token') return payload;
  const { body, tokenAt } = payload;
  const start = Buffer.from(heads[form]);
  return { ...payload, body: Buffer.concat([start, body.subarray(tokenAt)]), tokenAt: start.length };
}

/** Returns the body as one device receives it. */
export function previewFcm({ body, tokenAt }: FcmPayload): string {
  return `${body.subarray(0, tokenAt)}TOKEN${body.subarray(tokenAt)}`;
}

const isNative = (vendor: JsonObject): boolean => isJsonObject(vendor.message);

/** Returns the time to live as a protobuf duration in whole seconds; 0: only online devices. */
function ttlOf(leftMs: number): string {
  return `${Math.min(longestTtlS, Math.max(0, Math.ceil(leftMs / 1000)))}s`;
}

function messageOf(content: AndroidContent, { channels, objectId }: PushMessage, ttl: string): JsonObject {
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
  const { alert, notificationChannel, title } = content;
  return {
    data,
    notification: { ...(title === null ? {} : { title }), body: alert },
    android: {
      ...android,
      priority: 'HIGH',
      notification: {
        // The same for every attempt: a repeat replaces the notification, another push does not (protocol/fcm.md#repeats).
        tag: group ?? objectId,
        ...(notificationChannel === null ? {} : { channel_id: notificationChannel }),
      },
    },
  };
}

/**
 * Returns the members of FCM's message that the caller's object sets: `{"message":{…}}` of FCM, or
 * its members.
 */
function ownMessage({ vendor, vendorKey }: AndroidContent): Rendering<JsonObject> {
  const { badge: _, message = null, ...members } = withoutOurs(vendor);
  if (message === null) return placed(members, vendorKey);
  if (!isJsonObject(message))
    return { ok: false, error: unfitMember(`${vendorKey}.message`, 'must be an object') };
  const [beside] = Object.keys(members);
  if (beside === undefined) return placed(withoutOurs(message), `${vendorKey}.message`);
  return {
    ok: false,
    error: unfitMember(`${vendorKey}.${beside.slice(0, 40)}`, `must be a member of ${vendorKey}.message`),
  };
}

const withoutOurs = (object: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(object).filter(([name]) => !ourMembers.has(name)));

function placed(message: JsonObject, path: string): Rendering<JsonObject> {
  const own = fcmMembers.place(message, path);
  const problem = own.ok ? messageError(own.payload, path) : null;
  return problem === null ? own : { ok: false, error: problem };
}

/**
 * Returns our message for `android_v2` of the caller in place of `android`
 * (protocol/fcm.md#members).
 */
const inSecondForm = ({ android: _, ...message }: JsonObject, ttl: string): JsonObject => ({
  ...message,
  android_v2: { ttl },
});

/** Tells whether a repeat replaces the notification on display. */
function hasTag({ android, android_v2: second }: JsonObject): boolean {
  const remote = isJsonObject(second) ? second.remote_notification : undefined;
  return [android, remote].some((one) => {
    const notification = isJsonObject(one) ? one.notification : undefined;
    return isJsonObject(notification) && typeof notification.tag === 'string' && notification.tag !== '';
  });
}
