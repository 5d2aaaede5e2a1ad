/**
 * OPPO's rules for a notification (protocol/oppo.md#single-device, protocol/oppo.md#notification), independent of the
 * connector's code.
 */
import { isJsonObject, type Json, type JsonObject } from '../../../../shared/domain/json.ts';

const fields = new Set([
  ...['app_message_id', 'style', 'title', 'sub_title', 'content', 'click_action_type', 'notify_level'],
  ...['click_action_activity', 'click_action_url', 'action_parameters', 'off_line', 'off_line_ttl'],
  ...[
    'show_ttl',
    'show_time_type',
    'show_start_time',
    'show_end_time',
    'notify_id',
    'channel_id',
    'category',
  ],
  ...['private_msg_template_id', 'private_title_parameters', 'private_content_parameters', 'call_back_url'],
  ...['call_back_parameter', 'fix_speed', 'fix_speed_rate', 'network_type', 'badge_operation_type'],
  ...['badge_message_count', 'big_picture_id', 'small_picture_id'],
]);

const categories = new Set([
  ...['IM', 'ACCOUNT', 'DEVICE_REMINDER', 'ORDER', 'TODO', 'SUBSCRIPTION'],
  ...['NEWS', 'CONTENT', 'MARKETING', 'SOCIAL'],
]);

const broadcastOnly = new Set(['fix_speed', 'fix_speed_rate', 'big_picture_id']);
const lengthOf = (value: Json | undefined): number => (typeof value === 'string' ? [...value].length : 0);
const isWithin = (value: Json | undefined, from: number, to: number): boolean =>
  value === undefined || (typeof value === 'number' && value >= from && value <= to);

/** Maximum lengths of texts in characters. */
const maxLengths: readonly (readonly [string, number])[] = [
  ['title', 50],
  ['sub_title', 10],
  ['click_action_activity', 500],
  ['click_action_url', 2000],
  ['action_parameters', 4000],
  ['call_back_url', 200],
  ['call_back_parameter', 100],
];

/** Returns the first broken rule of a notification, or null. */
export function notificationFault(notification: JsonObject, isBroadcast: boolean): string | null {
  const unknownField = Object.keys(notification).find(
    (name) => !fields.has(name) || (!isBroadcast && broadcastOnly.has(name)),
  );
  if (unknownField !== undefined) return `an unknown field ${unknownField.slice(0, 40)}`;
  for (const name of ['title', 'content'])
    if (typeof notification[name] !== 'string' || notification[name].trim() === '') return `no ${name}`;
  const long = maxLengths.find(([name, chars]) => lengthOf(notification[name]) > chars);
  if (long) return `a ${long[0]} of ${lengthOf(notification[long[0]])} characters`;
  return styleFault(notification, isBroadcast) ?? clickFault(notification) ?? restFault(notification);
}

function styleFault({ content, style = 1 }: JsonObject, isBroadcast: boolean): string | null {
  if (style === 3 && !isBroadcast) return 'a big picture to single devices';
  const chars = style === 1 || style === 3 ? 50 : style === 2 ? 128 : 200;
  return lengthOf(content) > chars ? `a content of ${lengthOf(content)} characters` : null;
}

function clickFault(notification: JsonObject): string | null {
  const { action_parameters: parameters, click_action_type: type = 0 } = notification;
  if (![0, 1, 2, 4, 5].some((known) => known === type)) return `click_action_type is ${String(type)}`;
  if ((type === 1 || type === 4) && !notification.click_action_activity) return 'no activity';
  if ((type === 2 || type === 5) && !notification.click_action_url) return 'no URL';
  if (parameters === undefined) return null;
  return typeof parameters === 'string' && isJsonObject(parsed(parameters))
    ? null
    : 'action_parameters that are not a JSON object';
}

function restFault(notification: JsonObject): string | null {
  const { category, notify_level: level, off_line: isKept, off_line_ttl: ttl } = notification;
  if (isKept !== undefined && typeof isKept !== 'boolean') return 'off_line is neither true nor false';
  if (!isWithin(ttl, 0, 864_000)) return 'off_line_ttl is more than ten days';
  if (!isWithin(notification.notify_id, 0, 2_147_483_647)) return 'a bad notify_id';
  if (level !== undefined && category === undefined) return 'notify_level without a category';
  if (level !== undefined && ![1, 2, 16].includes(Number(level))) return 'an unknown notify_level';
  if (category !== undefined && !categories.has(String(category))) return 'an unknown category';
  for (const name of ['private_title_parameters', 'private_content_parameters']) {
    const values = notification[name];
    if (values === undefined) continue;
    if (notification.private_msg_template_id === undefined) return 'parameters without a template';
    if (!isJsonObject(values) || !Object.values(values).every((value) => typeof value === 'string'))
      return `${name} that are no texts`;
  }
  const url = notification.call_back_url;
  if (url !== undefined && !(typeof url === 'string' && URL.canParse(url))) return 'a bad call_back_url';
  return url === undefined && notification.call_back_parameter !== undefined
    ? 'a callback parameter without a URL'
    : null;
}

/** Parses JSON; undefined if the text is not JSON. */
export function parsed(text: string): Json | undefined {
  try {
    const value: Json = JSON.parse(text);
    return value;
  } catch {
    return undefined;
  }
}
