/**
 * `data` of a push → the request of Huawei's v3 API, for devices of HarmonyOS 5 and newer
 * (protocol/huawei.md#v3-requests; `extraData` and `clickAction.data`: Huawei's page of v3 request parameters). Pure.
 */
import { createHash } from 'node:crypto';
import type { JsonObject } from '../../../shared/domain/json.ts';
import type { PushMessage, Rendering } from '../../contract/connector.ts';
import { type AndroidContent, androidContent, titleOf } from '../../kit/android.ts';
import { deepMerge } from '../../kit/json.ts';
import { objectOf, placedInV3, v3Options } from './members.ts';
import {
  can,
  collapseId,
  dataSizeError,
  finish,
  type HuaweiPayload,
  isTest,
  limits,
  type RenderOptions,
  ttlSeconds,
} from './payload.ts';

/** `push-type` of notifications and of messages to the app. */
const pushTypes = { alert: '0', form: '1', background: '6' } as const;
/** A request takes ten devices for test messages and one for form updates (protocol/huawei.md#v3-requests). */
const testTokens = 10;

/** Renders a push for the v3 API. The vendor's object may hold a complete `payload` with its `push-type`. */
export function renderV3(message: PushMessage, { nowMs }: RenderOptions = {}): Rendering<HuaweiPayload> {
  const tooMuch = dataSizeError(message);
  if (tooMuch !== null) return { ok: false, error: tooMuch };
  const content = androidContent(message, { connector: 'vendor_a', can, limits, isNative });
  if (!content.ok) return content;
  const { vendor } = content.payload;
  const payload = isNative(vendor) ? objectOf(vendor.payload) : payloadOf(content.payload, message);
  const options: JsonObject = {
    ttl: ttlSeconds(message, nowMs),
    biTag: message.objectId,
    ...(isTest(message) ? { testMessage: true } : {}),
  };
  const type = typeOf(content.payload);
  const body = { payload, pushOptions: deepMerge(options, v3Options(vendor)), target: { token: [] } };
  return finish('v3', body, {
    headers: { 'push-type': type },
    tokensPerRequest: tokensFor(type, isTest(message)),
    isRepeatHidden: typeof objectOf(payload.notification).notifyId === 'number',
  });
}

const isNative = ({ payload }: JsonObject): boolean => Object.keys(objectOf(payload)).length > 0;

function typeOf({ silent, vendor }: AndroidContent): string {
  const named = String(vendor['push-type'] ?? vendor.pushType ?? '');
  if (/^\d{1,3}$/.test(named)) return named;
  return silent && !isNative(vendor) ? pushTypes.background : pushTypes.alert;
}

function tokensFor(type: string, isTestPush: boolean): number {
  if (type === pushTypes.form) return 1;
  return isTestPush ? testTokens : limits.recipientsPerRequest;
}

function payloadOf(content: AndroidContent, { objectId }: PushMessage): JsonObject {
  if (content.silent) return { extraData: JSON.stringify(content.data) };
  const notification: JsonObject = {
    // Required; apps without special rights use this category (protocol/huawei.md#v3-requests).
    category: 'MARKETING',
    title: titleOf(content, 40),
    body: content.alert,
    clickAction: { actionType: 0, data: content.custom },
    notifyId: idOf(collapseId(content) ?? objectId),
  };
  return { notification: deepMerge(notification, placedInV3(content.vendor)) };
}

/** Returns a positive 31-bit id, the same for the same text, so that a repeat replaces the notification. */
function idOf(text: string): number {
  return createHash('sha256').update(text).digest().readUInt32BE(0) & 0x7fffffff;
}
