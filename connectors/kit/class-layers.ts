import { isJsonObject, type JsonObject } from '../../shared/domain/json.ts';
import { misfit, type PushMessage, type Rendering } from '../contract/connector.ts';
import { type MemberTable, merged } from './members.ts';

/** Puts the members of a vendor's object into the request. `path` is their path, for errors. */
type Arrange = (members: JsonObject, path: string) => Rendering<JsonObject>;

/**
 * Arranges the members of the message class, with the vendor's object of the push above them
 * (protocol/push.md#message-classes). A null in the vendor's object stays, so that it removes the
 * member.
 */
export function withClass(
  { messageClass }: Pick<PushMessage, 'messageClass'>,
  own: Rendering<JsonObject>,
  arrange: Arrange,
): Rendering<JsonObject> {
  if (!own.ok || !messageClass) return own;
  const below = classMembers({ messageClass }, arrange);
  return below.ok ? { ok: true, payload: merged(below.payload, own.payload) } : below;
}

/** Arranges the members of the message class; an empty object if the message has none. */
export function classMembers(
  { messageClass }: Pick<PushMessage, 'messageClass'>,
  arrange: Arrange,
): Rendering<JsonObject> {
  let all: JsonObject = {};
  for (const { path, members } of messageClass?.layers ?? []) {
    const layer = arrange(members, path);
    if (!layer.ok) return misfit(layer.error);
    all = merged(all, layer.payload);
  }
  return { ok: true, payload: all };
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
