/**
 * Renders `data` of a push as a request of Huawei's v3 API, for devices with HarmonyOS 5 and newer
 * (protocol/huawei.md#v3-requests). `extraData` and `clickAction.data` come from Huawei's page on
 * v3 request parameters. Pure.
 */
import { createHash } from 'node:crypto';
import { numberIn } from '../../../shared/domain/client-values.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import { misfit, type PushMessage, type Rendering } from '../../contract/connector.ts';
import { type AndroidContent, androidContent, titleOf } from '../../kit/android.ts';
import { withClass } from '../../kit/class-layers.ts';
import { withIds } from '../../kit/recall.ts';
import { deepMerge, httpsUrl, int, objectOf, parseObject, unfitMember } from '../../kit/values.ts';
import { type LiveViewProblem, liveViewProblem } from './live-view.ts';
import { vendorMembersInV3 } from './members.ts';
import {
  bodyOf,
  can,
  collapseId,
  dataSizeError,
  type HuaweiPayload,
  isTest,
  limits,
  type RenderOptions,
  splitAtTokens,
  ttlSeconds,
} from './payload.ts';

/** Rules of one kind of v3 message (protocol/huawei.md#v3-requests). */
interface MessageKind {
  /**
   * What the content of a push becomes: a notification, or data for the app. Null if the kind of
   * message gets no content from the push. The vendor's object must then contain a `payload`.
   */
  content: 'notification' | 'data' | null;
  /** Members that the payload requires. */
  required: readonly string[];
  /** Category if the push names none. Apps without special permissions use `MARKETING`. */
  category?: string;
  /** True for text-to-speech, which has its own category. */
  isVoice?: boolean;
  /** Members of `pushOptions` that are not allowed for all kinds. */
  options: readonly string[];
  /** Number of devices per request, if it differs from the usual number. */
  tokens?: number;
}

const voiceCategory = 'PLAY_VOICE';

/** Kinds of messages by `push-type`. */
const kinds: ReadonlyMap<number, MessageKind> = new Map<number, MessageKind>([
  [0, { content: 'notification', required: [], category: 'MARKETING', options: ['collapseKey'] }],
  [
    1,
    {
      content: null,
      required: ['formId', 'version', 'moduleName', 'formName', 'abilityName', 'formData'],
      options: [],
      tokens: 1,
    },
  ],
  [
    2,
    {
      content: 'notification',
      required: ['notification', 'extraData'],
      category: voiceCategory,
      isVoice: true,
      options: ['collapseKey'],
    },
  ],
  [6, { content: 'data', required: ['extraData'], options: ['backgroundMode'] }],
  [7, { content: null, required: ['activityId', 'operation', 'event'], options: [] }],
  [10, { content: 'data', required: ['extraData'], options: [] }],
  // Management of devices. Only the number of this kind is known.
  [11, { content: null, required: [], options: [] }],
]);

const optionsOfSome = ['collapseKey', 'backgroundMode'];
/** Members that a notification requires. */
const neededTexts = ['category', 'title', 'body', 'clickAction'];
/** A request with a test message takes ten devices (protocol/huawei.md#v3-requests). */
const testTokens = 10;

/**
 * Renders a push for the v3 API. The vendor's object may contain a complete `payload` with its
 * `push-type`.
 */
export function renderV3(
  message: PushMessage,
  { nowMs }: RenderOptions = {},
): Rendering<HuaweiPayload> {
  const tooMuch = dataSizeError(message);
  if (tooMuch !== null) return misfit(tooMuch);
  const content = androidContent(message, { connector: 'vendor_a', can, limits, isNative });
  if (!content.ok) return content;
  const type = typeOf(content.payload);
  if (!type.ok) return type;
  const request = requestOf(content.payload, message, type.payload);
  if (!request.ok) return request;
  const { pushOptions } = request.payload;
  const payload = withReplacedIds(request.payload.payload, message.replaces?.v3);
  const leftS = ttlSeconds(message, nowMs);
  const { ttl = leftS } = pushOptions;
  const options: JsonObject = {
    biTag: message.objectId,
    ...(isTest(message) ? { testMessage: true } : {}),
  };
  const body = {
    payload,
    pushOptions: { ...deepMerge(options, pushOptions), ttl: Math.min(Number(ttl), leftS) },
    target: { token: [] },
  };
  const { appMessageId, notifyId } = objectOf(payload.notification);
  return splitAtTokens('v3', body, {
    headers: { 'push-type': String(type.payload) },
    tokensPerRequest:
      kinds.get(type.payload)?.tokens ??
      (isTest(message) ? testTokens : limits.recipientsPerRequest),
    isRepeatHidden: (typeof notifyId === 'number' && notifyId >= 0) || appMessageId !== undefined,
  });
}

/** Sets the id of the message that this message replaces, if this message is a notification. */
const withReplacedIds = (payload: JsonObject, ids: Json | undefined): JsonObject =>
  isJsonObject(payload.notification)
    ? { ...payload, notification: withIds(payload.notification, ids) }
    : payload;

/** A v3 notification that can be recalled or replaced. */
interface ShownNotification {
  notifyId: number;
  /** 0 or 2, the push types of notifications. */
  pushType: string;
}

/**
 * Returns the id of a v3 notification, with which it can be recalled or replaced. Null if the
 * message shows no notification, or if Huawei chooses the id.
 */
export function shownInV3(message: PushMessage): ShownNotification | null {
  const rendering = renderV3(message);
  if (!rendering.ok) return null;
  const { 'push-type': pushType = '' } = rendering.payload.headers;
  const { payload } = parseObject(bodyOf(rendering.payload, [])) ?? {};
  const { notifyId } = objectOf(objectOf(payload).notification);
  return typeof notifyId === 'number' && notifyId >= 0 ? { notifyId, pushType } : null;
}

/** Members of the vendor's object that only v3 requests have. */
const ownMembers = ['payload', 'pushOptions', 'push-type', 'pushType'];

/**
 * Returns the error of a wrong member in the v3 part of the vendor's object, or null.
 * The error is reported even if no device needs a v3 request.
 */
export function v3Error(
  message: PushMessage,
): Extract<Rendering<HuaweiPayload>, { ok: false }> | null {
  const { hms, vendor_a: vendor } = message.data;
  if (![hms, vendor].some((one) => ownMembers.some((name) => name in objectOf(one)))) return null;
  const rendering = renderV3(message);
  return rendering.ok || rendering.isMisfit || rendering.outcome ? null : rendering;
}

const isNative = ({ payload }: JsonObject): boolean => Object.keys(objectOf(payload)).length > 0;

/** Returns the push type that the vendor's object names, or the push type that fits the content. */
function typeOf({ silent, vendor, vendorKey }: AndroidContent): Rendering<number> {
  const name = vendor['push-type'] === undefined ? 'pushType' : 'push-type';
  const given = vendor[name] ?? null;
  if (given === null) return { ok: true, payload: silent && !isNative(vendor) ? 6 : 0 };
  const type = numberIn(given);
  if (type !== undefined && kinds.has(type)) return { ok: true, payload: type };
  return {
    ok: false,
    error: unfitMember(`${vendorKey}.${name}`, `must be one of ${[...kinds.keys()].join(', ')}`),
  };
}

interface V3Request {
  payload: JsonObject;
  pushOptions: JsonObject;
}

/** Builds payload and options of the request, and checks them against the kind of message. */
function requestOf(
  content: AndroidContent,
  message: PushMessage,
  type: number,
): Rendering<V3Request> {
  const { vendor, vendorKey: key } = content;
  const placed = isNative(vendor)
    ? vendorMembersInV3(nativeParts(vendor), key)
    : withClass(message, vendorMembersInV3(vendor, key), vendorMembersInV3);
  const kind = kinds.get(type);
  if (!placed.ok || !kind)
    return placed.ok ? { ok: false, error: `${type} is no push-type` } : placed;
  if (kind.content === null && !isNative(vendor))
    return {
      ok: false,
      error: unfitMember(`${key}.payload`, `must be given for the push-type ${type}`),
    };
  // A null removes its member.
  const own = deepMerge({}, objectOf(placed.payload.payload));
  const payload = isNative(vendor) ? own : contentPayload(content, message, { kind, own });
  const problem = payloadError(payload, type, kind);
  if (problem !== null)
    return {
      ok: false,
      error: unfitMember(
        isNative(vendor) ? `${key}.payload` : key,
        `${problem} for the push-type ${type}`,
      ),
    };
  const wrong = kindProblem(payload, type);
  if (wrong !== null) {
    const path = isNative(vendor) ? `${key}.payload` : key;
    return { ok: false, error: unfitMember(`${path}.${wrong.path}`, wrong.rule) };
  }
  const named = objectOf(vendor.pushOptions);
  const surplus = optionsOfSome.find((name) => name in named && !kind.options.includes(name));
  if (surplus !== undefined)
    return {
      ok: false,
      error: unfitMember(
        `${key}.pushOptions.${surplus}`,
        `must not be given for the push-type ${type}`,
      ),
    };
  const pushOptions = Object.entries(objectOf(placed.payload.pushOptions)).filter(
    ([name]) => !optionsOfSome.includes(name) || kind.options.includes(name),
  );
  return { ok: true, payload: { payload, pushOptions: Object.fromEntries(pushOptions) } };
}

/** Returns the first wrong member of a payload by the rules of its kind, or null. */
function kindProblem(payload: JsonObject, type: number): LiveViewProblem | null {
  if (type === 7) return liveViewProblem(payload);
  const { badge, images, notification } = payload;
  if (type === 0 && notification === undefined && !isBadge(badge))
    return {
      path: 'badge',
      rule: 'must have addNum from 1 to 99 or setNum from 0 to 99, without other members',
    };
  if (type === 1 && images !== undefined && !isFormImage(Array.isArray(images) ? images[0] : null))
    return {
      path: 'images',
      rule: 'must be a list of one object with keyName, an https url and require 0 or 1',
    };
  const { action, actionType, uri } = objectOf(objectOf(notification).clickAction);
  if (actionType === 1 && action === undefined && uri === undefined)
    return { path: 'clickAction', rule: 'must have action or uri for the actionType 1' };
  return null;
}

/** True if a payload without a notification changes the badge. */
function isBadge(badge: Json | undefined): boolean {
  const { addNum, setNum, ...more } = objectOf(badge);
  const isWithin = (value: Json | undefined, from: number) =>
    value === undefined || int(from, 99).read(value) === value;
  const isEmpty = addNum === undefined && setNum === undefined;
  return !isEmpty && Object.keys(more).length === 0 && isWithin(addNum, 1) && isWithin(setNum, 0);
}

function isFormImage(image: Json | undefined): boolean {
  const { keyName, require, url } = objectOf(image);
  const isRequire = require === undefined || require === 0 || require === 1;
  return (
    typeof keyName === 'string' &&
    keyName !== '' &&
    typeof url === 'string' &&
    httpsUrl.read(url) !== undefined &&
    isRequire
  );
}

/** Returns the first error that concerns several members of a payload, or null. */
function payloadError(
  payload: JsonObject,
  type: number,
  { isVoice = false, required }: MessageKind,
): string | null {
  const missing = required.find((name) => payload[name] === undefined) ?? missingIn(payload, type);
  if (missing !== undefined) return `must have ${missing}`;
  const { category } = objectOf(payload.notification);
  if (category === undefined || (category === voiceCategory) === isVoice) return null;
  return `must ${isVoice ? '' : 'not '}have the category ${voiceCategory}`;
}

/**
 * Returns the members to use if the payload is complete: the payload, the options and the receipt
 * id. All other members are ignored.
 */
const nativeParts = ({
  payload = null,
  pushOptions = null,
  receipt_id = null,
}: JsonObject): JsonObject => ({
  payload,
  ...(receipt_id === null ? {} : { receipt_id }),
  ...(pushOptions === null ? {} : { pushOptions }),
});

/**
 * Returns a member that the notification requires but does not have. A payload that contains only a
 * badge changes the badge.
 */
function missingIn({ badge, notification }: JsonObject, type: number): string | undefined {
  if (type === 0 && notification === undefined)
    return badge === undefined ? 'notification' : undefined;
  const given = objectOf(notification);
  return notification === undefined
    ? undefined
    : neededTexts
        .map((name) => (given[name] === undefined ? `notification.${name}` : undefined))
        .find(Boolean);
}

function contentPayload(
  content: AndroidContent,
  { objectId }: PushMessage,
  { kind, own }: { kind: MessageKind; own: JsonObject },
): JsonObject {
  const { notification: ownNotification, ...rest } = own;
  if (kind.content === null) return {};
  if (kind.content === 'data') return { extraData: JSON.stringify(content.data), ...rest };
  const notification: JsonObject = {
    category: kind.category ?? '',
    title: titleOf(content, 40),
    body: content.alert,
    clickAction: { actionType: 0, data: content.custom },
    notifyId: idOf(collapseId(content) ?? objectId),
    ...(content.rich.image === undefined ? {} : { image: content.rich.image }),
  };
  return { ...rest, notification: deepMerge(notification, objectOf(ownNotification)) };
}

/**
 * Returns a positive 31-bit id that depends only on the text, so a repeat replaces the
 * notification.
 */
function idOf(text: string): number {
  return createHash('sha256').update(text).digest().readUInt32BE(0) & 0x7fffffff;
}
