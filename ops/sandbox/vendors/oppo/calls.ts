/** Parsers and checks of the forms of OPPO's calls (protocol/oppo.md#single-device to protocol/oppo.md#broadcast). */
import { isJsonObject, type Json, type JsonObject } from '../../../../shared/domain/json.ts';
import type { SandboxCall } from '../../http/gateway.ts';
import { formIn } from '../../http/server.ts';
import { notificationFault, parsed } from './message.ts';

export const root = '/server/v1/message/notification';
export const authPath = '/server/v1/auth';

const maxTargets = 1000;

/** One message to one device. */
export interface OppoMessage {
  target: string;
  notification: JsonObject;
}

/** Returns the devices that a call names, unchecked. */
export function targetsOf(call: SandboxCall): string[] {
  const form = formIn(call);
  if (call.path === `${root}/broadcast`) return (form.get('target_value') ?? '').split(';').filter(Boolean);
  return messagesIn(call).map(({ target }) => target);
}

/** Returns the messages of a unicast or of a batch. */
export function messagesIn(call: SandboxCall): OppoMessage[] {
  const isBatch = call.path === `${root}/unicast_batch`;
  const value = parsed(formIn(call).get(isBatch ? 'messages' : 'message') ?? '');
  const all: Json[] = isBatch ? (Array.isArray(value) ? value : []) : value === undefined ? [] : [value];
  return all.flatMap((one) =>
    isJsonObject(one) && typeof one.target_value === 'string' && isJsonObject(one.notification)
      ? [{ target: one.target_value, notification: one.notification }]
      : [],
  );
}

const isRegistrationId = (text: string): boolean =>
  /^((([0-9A-Za-z]{2,10})_)?(.*)_)?[0-9a-fA-F]{32}$/.test(text) || /^[0-9a-fA-F]{24}$/.test(text);

/** Returns the first broken rule of messages, or null. */
export function messagesFault(call: SandboxCall): string | null {
  const form = formIn(call);
  const isBatch = call.path === `${root}/unicast_batch`;
  const fault = namesFault(form, ['auth_token', isBatch ? 'messages' : 'message']);
  if (fault !== null) return fault;
  const value = parsed(form.get(isBatch ? 'messages' : 'message') ?? '');
  const all: Json[] = Array.isArray(value) ? value : value === undefined ? [] : [value];
  if (isBatch !== Array.isArray(value) || all.length === 0) return 'no messages';
  if (all.length > maxTargets) return `${all.length} messages in a request`;
  for (const one of all) {
    const wrong = messageFault(one);
    if (wrong !== null) return wrong;
  }
  return listFault(messagesIn(call).map(({ target }) => target));
}

function messageFault(message: Json): string | null {
  if (!isJsonObject(message)) return 'a message that is not an object';
  const {
    notification,
    target_type: type,
    target_value: target,
    verify_registration_id: isChecked,
    ...more
  } = message;
  if (Object.keys(more).length > 0) return 'an unknown member of a message';
  if (type !== 2) return 'target_type is not 2';
  if (typeof target !== 'string' || target === '') return 'no target_value';
  if (isChecked !== undefined && typeof isChecked !== 'boolean') return 'a bad verify_registration_id';
  return isJsonObject(notification) ? notificationFault(notification, false) : 'no notification';
}

/** Returns the first broken rule of a list of devices, or null. */
export function listFault(targets: readonly string[]): string | null {
  if (targets.length === 0) return 'a request without devices';
  if (targets.length > maxTargets) return `${targets.length} devices in a request`;
  if (new Set(targets).size < targets.length) return 'a device twice in a request';
  return targets.every(isRegistrationId) ? null : 'an invalid registration id';
}

/** Checks that a form has only these fields, each at most once. */
export function namesFault(form: URLSearchParams, names: readonly string[]): string | null {
  const given = [...form.keys()];
  if (new Set(given).size < given.length) return 'a field twice';
  const unknownField = given.find((name) => !names.includes(name));
  return unknownField === undefined ? null : `an unknown field ${unknownField.slice(0, 40)}`;
}

/** Builds a notification from the flat fields of a save; texts stay texts. */
export function savedNotification(form: URLSearchParams): JsonObject {
  const texts = /^(app_message_id|title|sub_title|content|.*_(activity|url|parameters?|id))$/;
  return Object.fromEntries(
    [...form]
      .filter(([name]) => name !== 'auth_token')
      .map(([name, value]) => [
        name,
        texts.test(name) && name !== 'notify_id' ? value : (parsed(value) ?? value),
      ]),
  );
}
