import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import { misfit, type PushMessage, type Rendering } from '../contract/connector.ts';
import { type MemberTable, merged } from './members.ts';
import { parseObject } from './values.ts';

/** Puts the members of a vendor's object into the request. `path` is their path, for errors. */
type Arrange = (members: JsonObject, path: string) => Rendering<JsonObject>;

/** The part of a message that decides the members of its class. */
type ClassedMessage = Pick<PushMessage, 'data' | 'messageClass'>;

/** Name of a member of `data` in double braces. */
const placeholder = /\{\{\s*([\w.-]{1,64})\s*\}\}/g;

/**
 * Fills members of `data` into the texts of a class: `{{orderId}}` becomes the member `orderId`.
 * So a profile can name the variables of a template, and the push stays portable
 * (protocol/push.md#message-classes). Unknown names stay.
 */
function filledMembers(members: JsonObject, data: JsonObject): JsonObject {
  const own = isJsonObject(data.android) ? { ...data, ...data.android } : data;
  const memberOf = (whole: string, name: string): string => {
    const value = Object.hasOwn(own, name) ? own[name] : undefined;
    return ['string', 'number', 'bigint', 'boolean'].includes(typeof value) ? String(value) : whole;
  };
  const filled = (value: Json): Json => {
    // Parameters may be JSON text. Values are filled in before they are escaped.
    const object = typeof value === 'string' ? parseObject(value) : value;
    if (typeof value === 'string' && !object) return value.replaceAll(placeholder, memberOf);
    if (!isJsonObject(object)) return value;
    return Object.fromEntries(Object.entries(object).map(([name, one]) => [name, filled(one)]));
  };
  return Object.fromEntries(Object.entries(members).map(([name, one]) => [name, filled(one)]));
}

/**
 * Arranges the members of the message class, with the vendor's object of the push above them
 * (protocol/push.md#message-classes). A null in the vendor's object stays, so that it removes the
 * member.
 */
export function withClass(
  message: ClassedMessage,
  own: Rendering<JsonObject>,
  arrange: Arrange,
): Rendering<JsonObject> {
  if (!own.ok || !message.messageClass) return own;
  const below = classMembers(message, arrange);
  return below.ok ? { ok: true, payload: merged([below.payload, own.payload]) } : below;
}

/** Arranges the members of the message class; an empty object if the message has none. */
export function classMembers(
  { data, messageClass }: ClassedMessage,
  arrange: Arrange,
): Rendering<JsonObject> {
  const all: JsonObject[] = [];
  for (const { path, members } of messageClass?.layers ?? []) {
    const layer = arrange(filledMembers(members, data), path);
    if (!layer.ok) return misfit(layer.error);
    all.push(layer.payload);
  }
  return { ok: true, payload: merged(all) };
}

/** Returns the error of members of a class that the vendor does not have; null if it has all. */
export function classErrorIn(
  table: MemberTable,
  members: JsonObject,
  path: string,
  moved: Readonly<Record<string, string>> = {},
): string | null {
  const arranged = table.arrange(members, path, { isStrict: true, moved });
  return arranged.ok ? null : arranged.error;
}

/** Removes notifications from arranged members, for a message without one. */
export function withoutNotification({ notification: _, ...message }: JsonObject): JsonObject {
  const { android } = message;
  if (!isJsonObject(android)) return message;
  const { notification: __, ...others } = android;
  return { ...message, android: others };
}
