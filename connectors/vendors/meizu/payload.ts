/**
 * Renders `data` of a push as a message of Meizu (protocol/meizu.md#message;
 * protocol/push.md#what-a-tap-opens). A tap on the notification opens the app and passes it the
 * whole push. Pure.
 */
import { hourMs } from '../../../shared/clock.ts';
import { numberIn } from '../../../shared/domain/client-values.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import { reason } from '../../../shared/domain/reasons.ts';
import type {
  Capabilities,
  ConnectorLimits,
  PushMessage,
  Rendering,
} from '../../contract/connector.ts';
import { type AndroidContent, androidContent, bodySizeError, titleOf } from '../../kit/android.ts';
import { withClass } from '../../kit/class-layers.ts';
import { MemberTable, membersAt, part } from '../../kit/members.ts';
import { idsIn, withIds } from '../../kit/recall.ts';
import { isWebUrl } from '../../kit/rich-content.ts';
import {
  bit,
  bytes,
  charsOf,
  contentRefused,
  deepMerge,
  filled,
  int,
  jsonObject,
  matching,
  object,
  oneNumber,
  text,
  tooLong,
  unfitMember,
  type ValueType,
} from '../../kit/values.ts';

// Members of Meizu's message and their rules (protocol/meizu.md#message), checked before anything
// is sent.

const time = matching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/, 'a time as yyyy-MM-dd HH:mm:ss');

/** Meizu expects the number of the events as a string. */
const events: ValueType = {
  expected: '1, 2 or 3',
  read: (value) => [1, 2, 3].find((one) => one === numberIn(value))?.toString(),
};

export const meizuMembers = new MemberTable(
  [
    ...membersAt('', {
      noticeBarInfo: part,
      noticeExpandInfo: part,
      clickTypeInfo: part,
      pushTimeInfo: part,
      advanceInfo: part,
      vipInfo: object,
      extra: part,
    }),
    ...membersAt('noticeBarInfo', {
      title: filled(32),
      content: filled(100),
      noticeMsgType: oneNumber(0, 1),
      noticeBarType: oneNumber(0, 2),
    }),
    ...membersAt('noticeExpandInfo', {
      noticeExpandType: oneNumber(0, 1, 2),
      noticeExpandContent: text(),
      noticeExpandImgUrl: text(),
    }),
    ...membersAt('clickTypeInfo', {
      // Meizu has removed the value 3.
      clickType: oneNumber(0, 1, 2),
      activity: filled(1024),
      url: filled(4096),
      parameters: jsonObject,
      customAttribute: bytes(1000),
    }),
    ...membersAt('pushTimeInfo', { offLine: bit, validTime: int(1, 72, 'hours') }),
    ...membersAt('advanceInfo', {
      suspend: bit,
      clearNoticeBar: bit,
      notificationType: part,
      notifyKey: matching(/^[\w-]{1,8}$/, '1 to 8 letters, digits, _ or -'),
      fixDisplay: bit,
      fixStartDisplayTime: time,
      fixEndDisplayTime: time,
    }),
    ...membersAt('advanceInfo.notificationType', { vibrate: bit, lights: bit, sound: bit }),
    ...membersAt('extra', {
      callback: bytes(128),
      'callback.param': bytes(64),
      'callback.type': events,
    }),
  ],
  {
    flat: ['noticeBarInfo', 'noticeExpandInfo', 'clickTypeInfo', 'pushTimeInfo', 'advanceInfo'],
    unknown: { parent: '' },
  },
);

/** Members that another member's value requires: group, member with value, required member. */
const needs = [
  ['noticeExpandInfo', { noticeExpandType: 1 }, 'noticeExpandContent'],
  ['noticeExpandInfo', { noticeExpandType: 2 }, 'noticeExpandImgUrl'],
  ['clickTypeInfo', { clickType: 1 }, 'activity'],
  ['clickTypeInfo', { clickType: 2 }, 'url'],
] as const;

/** Returns the first error that concerns several members of a message, or null. */
function messageError(message: JsonObject): string | null {
  const { content, title } = groupIn(message, 'noticeBarInfo');
  if (content === undefined)
    return reason('missingMember', { connector: 'vendor_c', member: 'content' });
  if (title === undefined || title === '')
    return reason('missingMember', { connector: 'vendor_c', member: 'title' });
  if (charsOf(String(title)) > 32) return tooLong('title', 32, 'vendor_c');
  for (const [group, given, needed] of needs) {
    const members = groupIn(message, group);
    const [[name, value] = []] = Object.entries(given);
    if (name !== undefined && members[name] === value && !members[needed])
      return contentRefused(`${name} ${value} of vendor_c needs ${needed}`);
  }
  return null;
}

const groupIn = (message: JsonObject, name: string): JsonObject => {
  const group = message[name];
  return isJsonObject(group) ? group : {};
};

/**
 * Meizu allows no pass-through for new apps (protocol/meizu.md#pass-through), and its badge is a
 * dot (protocol/push.md#pass-through, protocol/push.md#badges-by-vendor).
 */
export const can: Capabilities = { passThrough: false, badge: false, collapse: true };

export const limits: ConnectorLimits = {
  recipientsPerRequest: 100,
  bodyBytes: 4096,
  titleChars: 32,
  alertChars: 100,
};

/** Rendered push: the message without the URL for receipts, and additional form parameters. */
export interface MeizuPayload {
  message: JsonObject;
  parameters: Readonly<Record<string, string>>;
  /** Public and private messages have separate daily quotas. */
  messageClass: 'public' | 'private';
}

/** Parameters that select devices or sign the call. Callers cannot set them. */
const ownParameters = new Set(['appId', 'pushIds', 'alias', 'sign', 'taskId']);

/** Maximum length of a key (protocol/meizu.md#message). */
const notifyKeyChars = 8;
const hours = { min: 1, max: 72 };

/**
 * Renders a push for Meizu. `nowMs` is the send time, from which the time to live is computed. The
 * vendor's object may contain members of Meizu's message, or a complete message (also under
 * `messageJson`), which needs no alert.
 */
export function renderMeizu(
  message: PushMessage,
  nowMs: number = message.createdAtMs,
): Rendering<MeizuPayload> {
  const content = androidContent(message, { connector: 'vendor_c', can, limits, isNative });
  if (!content.ok) return content;
  const { vendor, vendorKey: key } = content.payload;
  const parameters = formParameters(vendor, key);
  if (!parameters.ok) return parameters;
  const own = withClass(message, vendorMembers(vendor, key), (members, path) =>
    meizuMembers.arrange(members, path),
  );
  if (!own.ok) return own;
  const base = baseMessage(content.payload, message, own.payload);
  const merged = withIds(deepMerge(base, own.payload), message.replaces);
  const whole = withTimeToLive(merged, message.expiresAtMs - nowMs);
  const problem = messageError(whole);
  if (problem !== null) return { ok: false, error: problem };
  const tooLarge = bodySizeError('vendor_c', Buffer.byteLength(JSON.stringify(whole)), limits);
  if (tooLarge) return tooLarge;
  const isPrivate = memberOf(whole, 'noticeBarInfo').noticeMsgType === 1;
  return {
    ok: true,
    payload: {
      message: whole,
      parameters: parameters.payload,
      messageClass: isPrivate ? 'private' : 'public',
    },
  };
}

/** Returns the key with which a later message replaces a message; null without one. */
export function identityOfMeizu(message: PushMessage): JsonObject | null {
  const rendering = renderMeizu(message);
  if (!rendering.ok) return null;
  const ids = idsIn(memberOf(rendering.payload.message, 'advanceInfo'), ['notifyKey']);
  return ids && { advanceInfo: ids };
}

/** Returns the message for one device. */
export const previewMeizu = ({ message }: MeizuPayload): string => JSON.stringify(message);

const memberOf = (object: JsonObject, name: string): JsonObject => {
  const value = object[name];
  return isJsonObject(value) ? value : {};
};

/** True if the vendor's object is a complete message of Meizu. */
function isNative(vendor: JsonObject): boolean {
  const own = vendorMembers(vendor, '');
  return !own.ok || typeof memberOf(own.payload, 'noticeBarInfo').content === 'string';
}

function baseMessage(
  content: AndroidContent,
  { objectId }: PushMessage,
  own: JsonObject,
): JsonObject {
  const {
    alert,
    data,
    rich: { url },
  } = content;
  const opensPage = isWebUrl(url) && memberOf(own, 'clickTypeInfo').clickType === undefined;
  const collapseId = data['collapse-id'];
  const isGroup = typeof collapseId === 'string' && /^[\w-]{1,8}$/.test(collapseId);
  return {
    noticeBarInfo: { noticeBarType: 0, title: titleOf(content, 32), content: alert },
    noticeExpandInfo: { noticeExpandType: 0 },
    clickTypeInfo: opensPage ? { clickType: 2, url } : { clickType: 0, parameters: data },
    pushTimeInfo: { offLine: 1 },
    advanceInfo: {
      suspend: 1,
      clearNoticeBar: 1,
      notificationType: { vibrate: 1, lights: 1, sound: 1 },
      // Stays the same in all attempts, so a repeat replaces the notification
      // (protocol/meizu.md#repeats). Push ids are random, so eight characters are enough.
      notifyKey: isGroup ? collapseId : objectId.slice(0, notifyKeyChars),
    },
  };
}

/**
 * Returns the members of the message that the vendor's object sets: the complete message under
 * `messageJson`, overridden by single members.
 */
function vendorMembers(
  { messageJson = null, badge: _, restrictedPackageNames: __, ...vendor }: JsonObject,
  key: string,
): Rendering<JsonObject> {
  const given = messageJson === null ? {} : jsonObject.read(messageJson);
  if (!isJsonObject(given))
    return {
      ok: false,
      error: unfitMember(`${key}.messageJson`, `must be ${jsonObject.expected}`),
    };
  const members = Object.entries(vendor).filter(([name]) => !ownParameters.has(name));
  const whole = meizuMembers.arrange(given, `${key}.messageJson`);
  const single = meizuMembers.arrange(Object.fromEntries(members), key);
  if (!whole.ok) return whole;
  return single.ok ? { ok: true, payload: deepMerge(whole.payload, single.payload) } : single;
}

/**
 * Returns additional parameters of the call: the package names of an app that has several, at most
 * 50 (protocol/meizu.md#message).
 */
function formParameters(
  { restrictedPackageNames: given = null }: JsonObject,
  key: string,
): Rendering<Record<string, string>> {
  if (given === null) return { ok: true, payload: {} };
  const names: Json[] = Array.isArray(given)
    ? given
    : typeof given === 'string'
      ? given.split(',')
      : [''];
  const isName = (name: Json) => typeof name === 'string' && /^[A-Za-z][\w.]{0,127}$/.test(name);
  if (names.length > 50 || !names.every(isName))
    return {
      ok: false,
      error: unfitMember(`${key}.restrictedPackageNames`, 'must be at most 50 package names'),
    };
  return { ok: true, payload: { restrictedPackageNames: names.join(',') } };
}

/**
 * Sets the time to live in hours. If less than a second is left, only online devices get the
 * message (protocol/gateways.md#time-to-live).
 */
function withTimeToLive(message: JsonObject, leftMs: number): JsonObject {
  const requestedHours = memberOf(message, 'pushTimeInfo').validTime;
  if (leftMs < 1000)
    return deepMerge(message, { pushTimeInfo: { offLine: 0, validTime: hours.min } });
  const left = Math.max(hours.min, Math.min(hours.max, Math.ceil(leftMs / hourMs)));
  const validTime =
    typeof requestedHours === 'number' ? Math.min(requestedHours, left) : (requestedHours ?? left);
  return deepMerge(message, { pushTimeInfo: { validTime } });
}
