/** A whole message in the vendor's object: today's form, or that of Huawei's former API (protocol/push.md#vendor-objects, protocol/push.md#what-a-tap-opens). */
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';

/** The `message` of the v1 API that the vendor's object holds, or null where it holds none. */
export function nativeMessage(vendor: JsonObject): JsonObject | null {
  if (isJsonObject(vendor.message)) return vendor.message;
  return isJsonObject(vendor.msg) ? translated(vendor.msg) : null;
}

/** `{"type":1,"body":…}` was handed to the app, `{"type":3,"body":{"title","content"},"action":{…}}` was shown. */
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

/** 1: an intent, 2: an address, else the app itself; the numbers are the same today. */
function clickAction(action: Json | undefined): JsonObject {
  const { param, type } = isJsonObject(action) ? action : {};
  const { intent, url } = isJsonObject(param) ? param : {};
  if (type === 1 && intent !== undefined) return { type: 1, intent };
  if (type === 2 && url !== undefined) return { type: 2, url };
  return { type: 3 };
}
