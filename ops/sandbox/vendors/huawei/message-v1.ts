import { isJsonObject, type Json, type JsonObject } from '../../../../shared/domain/json.ts';
import { buttonsFault, isHttpsUrl } from '../../kit/rich-content.ts';

/** Error of a message, with Huawei's code and text. */
export interface Fault {
  code: string;
  msg: string;
}

const fault = (code: string, msg: string): Fault => ({ code, msg });

/** Categories of v1. */
export const categories = new Set([
  ...['IM', 'VOIP', 'SUBSCRIPTION', 'TRAVEL', 'HEALTH', 'WORK', 'ACCOUNT', 'EXPRESS', 'FINANCE'],
  ...['DEVICE_REMINDER', 'MAIL', 'PLAY_VOICE', 'MARKETING'],
]);

/** Checks a v1 body without its tokens (protocol/huawei.md#messages). */
export function v1Fault({ message, validate_only, ...more }: JsonObject): Fault | null {
  if (!isJsonObject(message))
    return fault('80300010', 'The number of tokens must be between 1 and 1000');
  if (
    Object.keys(more).length > 0 ||
    (validate_only !== undefined && typeof validate_only !== 'boolean')
  )
    return fault('80100003', 'Illegal payload');
  if (message.topic !== undefined || message.condition !== undefined)
    return fault('80100003', 'Illegal payload: token, topic or condition');
  if (message.android !== undefined && !isJsonObject(message.android))
    return fault('80100003', 'Illegal payload: android');
  return androidFault(message.android ?? {}) ?? typeFault(message, message.android ?? {});
}

function androidFault({
  bi_tag,
  category,
  collapse_key,
  target_user_type,
  ttl,
  urgency,
}: JsonObject): Fault | null {
  if (ttl !== undefined && !isTtl(ttl)) return fault('80100001', 'Illegal ttl');
  if (ttl === '0s') return fault('80100004', 'Illegal expire time');
  if (collapse_key !== undefined && !isWithin(collapse_key, -1, 100))
    return fault('80100013', 'Illegal collapse_key');
  if (urgency !== undefined && urgency !== 'NORMAL')
    return urgency === 'HIGH'
      ? fault('80300011', 'No right for HIGH')
      : fault('80100001', 'Illegal urgency');
  if (category !== undefined && !categories.has(String(category)))
    return fault('80100001', 'Illegal category');
  if (bi_tag !== undefined && typeof bi_tag !== 'string')
    return fault('80100001', 'Illegal bi_tag');
  return target_user_type === undefined || isWithin(target_user_type, 0, 1)
    ? null
    : fault('80100001', 'Illegal target_user_type');
}

/** Checks that the message is a data message or a complete notification. */
function typeFault(
  { data, notification: common }: JsonObject,
  { notification }: JsonObject,
): Fault | null {
  if (data !== undefined && typeof data !== 'string')
    return fault('80100003', 'Illegal payload: data must be a string');
  if (common === undefined && notification === undefined)
    return data === undefined ? fault('80100003', 'Illegal payload: nothing to send') : null;
  if (!isJsonObject(notification))
    return fault('80100003', 'Illegal payload: android.notification');
  const shared = isJsonObject(common) ? common : {};
  for (const name of ['title', 'body'] as const)
    if (!isText(notification[name] ?? notification[`${name}_loc_key`] ?? shared[name]))
      return fault('80100003', `Illegal payload: ${name}`);
  return (
    clickFault(notification.click_action) ??
    badgeFault(notification) ??
    richFault(notification) ??
    importanceFault(notification)
  );
}

function clickFault(action: Json | undefined): Fault | null {
  if (!isJsonObject(action) || !isWithin(action.type, 1, 3))
    return fault('80100003', 'Illegal payload: click_action');
  if (action.type === 1 && !isText(action.intent) && !isText(action.action))
    return fault('80100003', 'Illegal payload: click_action.intent');
  if (
    action.type === 1 &&
    action.intent !== undefined &&
    !/^intent:\/\/\S+;end$/.test(String(action.intent))
  )
    return fault('80100003', 'Illegal payload: click_action.intent');
  if (action.type === 2 && !/^https:\/\//.test(String(action.url)))
    return fault('80100003', 'Illegal payload: click_action.url');
  return null;
}

/** Checks picture and buttons. */
function richFault({ buttons, image }: JsonObject): Fault | null {
  if (image !== undefined && !isHttpsUrl(image)) return fault('80100003', 'Illegal payload: image');
  const wrong = buttonsFault(buttons, { action: 'action_type', intentType: 'intent_type' });
  return wrong === null ? null : fault('80100003', `Illegal payload: ${wrong}`);
}

function badgeFault({ badge }: JsonObject): Fault | null {
  if (badge === undefined) return null;
  if (!isJsonObject(badge)) return fault('80100003', 'Illegal payload: badge');
  if (badge.add_num !== undefined && !isWithin(badge.add_num, 1, 99))
    return fault('80100001', 'Illegal add_num');
  return badge.set_num !== undefined && !isWithin(badge.set_num, 0, 99)
    ? fault('80100001', 'Illegal set_num')
    : null;
}

function importanceFault({ importance, tag }: JsonObject): Fault | null {
  if (importance === 'HIGH') return fault('80300011', 'No right for HIGH');
  if (importance !== undefined && importance !== 'LOW' && importance !== 'NORMAL')
    return fault('80100001', 'Illegal importance');
  return tag !== undefined && typeof tag !== 'string' ? fault('80100001', 'Illegal tag') : null;
}

const longestTtlS = 1_296_000;
const isTtl = (ttl: Json): boolean =>
  typeof ttl === 'string' && /^\d{1,7}s$/.test(ttl) && Number(ttl.slice(0, -1)) <= longestTtlS;
export const isText = (value: Json | undefined): boolean =>
  typeof value === 'string' && value !== '';
export const isWithin = (value: Json | undefined, from: number, to: number): boolean =>
  typeof value === 'number' && Number.isInteger(value) && value >= from && value <= to;
