/**
 * Complete message in the vendor's object, in the current format or that of Huawei's former API
 * (protocol/push.md#vendor-objects, protocol/push.md#what-a-tap-opens).
 */
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';

/** Returns the v1 `message` in the vendor's object, or null. */
export function nativeMessage(vendor: JsonObject): JsonObject | null {
  if (isJsonObject(vendor.message)) return vendor.message;
  return isJsonObject(vendor.msg) ? translated(vendor.msg) : null;
}

/**
 * Converts the former format: `{"type":1,"body":…}` went to the app,
 * `{"type":3,"body":{"title","content"},"action":{…}}` was shown.
 */
function translated({ action, body, type }: JsonObject): JsonObject {
  if (type === 1) return { data: typeof body === 'string' ? body : JSON.stringify(body ?? {}) };
  const { content, title } = isJsonObject(body) ? body : {};
  const notification: JsonObject = {
    ...(title === undefined ? {} : { title }),
    ...(content === undefined ? {} : { body: content }),
    click_action: clickAction(action),
  };
  return { android: { notification } };
}

/** Converts an action: 1 opens an intent, 2 a URL, others the app; the numbers are still the same. */
function clickAction(action: Json | undefined): JsonObject {
  const { param, type } = isJsonObject(action) ? action : {};
  const { intent, url } = isJsonObject(param) ? param : {};
  if (type === 1 && intent !== undefined) return { type: 1, intent };
  if (type === 2 && url !== undefined) return { type: 2, url };
  return { type: 3 };
}
