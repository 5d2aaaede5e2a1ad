/** Rules of OPPO's notification (protocol/oppo.md#notification), checked before anything is sent. */
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import { charsOf } from '../../kit/android.ts';
import { parseObject } from '../../kit/json.ts';
import { isFlag, isInt, isText, type MemberRule, memberError, oneOf } from '../../kit/member-rules.ts';

/** Names a message class. */
const isName = (value: Json): boolean => isText(1, 200)(value) && !/\p{Cc}/u.test(String(value));

/** Longest content by style; OPPO's client checks 200 for styles that only it knows. */
const contentChars: ReadonlyMap<Json | undefined, number> = new Map([
  [1, 50],
  [2, 128],
  [3, 50],
]);

const longest = ({ style }: JsonObject): number => contentChars.get(style) ?? 200;
const epochMs = isInt(0, 9_999_999_999_999);

const rules: readonly MemberRule[] = [
  ['style', isInt(1, 5), 'a whole number from 1 to 5'],
  ['title', isText(1, 50), '1 to 50 characters'],
  ['sub_title', isText(0, 10), 'at most 10 characters'],
  ['click_action_type', oneOf(0, 1, 2, 4, 5), '0, 1, 2, 4 or 5'],
  ['click_action_activity', isText(0, 500), 'at most 500 characters'],
  ['click_action_url', isText(0, 2000), 'at most 2000 characters'],
  [
    'action_parameters',
    (value) => typeof value === 'string' && charsOf(value) <= 4000 && parseObject(value) !== undefined,
    'a JSON object of at most 4000 characters',
  ],
  ['off_line', isFlag, 'true or false'],
  ['off_line_ttl', isInt(0, 1_000_000_000), 'a number of seconds'],
  ['show_ttl', isInt(0, 172_800), 'a number of seconds, at most two days'],
  ['show_time_type', oneOf(0, 1), '0 or 1'],
  ['show_start_time', epochMs, 'an epoch time in milliseconds'],
  ['show_end_time', epochMs, 'an epoch time in milliseconds'],
  ['notify_id', isInt(0, 2_147_483_647), 'a whole number from 0 to 2147483647'],
  ['channel_id', isName, '1 to 200 characters that can be seen'],
  ['category', isName, '1 to 200 characters that can be seen'],
  ['notify_level', oneOf(1, 2, 16), '1, 2 or 16'],
  ['private_title_parameters', isJsonObject, 'an object'],
  ['private_content_parameters', isJsonObject, 'an object'],
  ['call_back_url', isText(1, 200), 'at most 200 characters'],
  ['call_back_parameter', isText(0, 100), 'at most 100 characters'],
  ['fix_speed', isFlag, 'true or false'],
  ['fix_speed_rate', isInt(1000, 10_000), 'a whole number from 1000 to 10000'],
  ['network_type', oneOf(0, 1), '0 or 1'],
  ['badge_operation_type', oneOf(0, 1), '0 or 1'],
  ['badge_message_count', isInt(0, 99_999), 'a whole number from 0 to 99999'],
  ['app_message_id', isText(1, 100), '1 to 100 characters'],
];

/** Camel-case names of OPPO's documents → names of its API (protocol/oppo.md#single-device). */
const names = new Set([
  ...rules.map(([name]) => name),
  ...['content', 'private_msg_template_id', 'big_picture_id', 'small_picture_id'],
]);

/** Returns the API's name of a member. */
export function snakeName(name: string): string {
  const snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return names.has(snake) ? snake : name;
}

/** Returns the first error of a notification, or null. */
export function notificationProblem(notification: JsonObject): string | null {
  const { category, click_action_type: click, content, title } = notification;
  if (typeof content !== 'string' || content.trim() === '') return 'vendor_d needs a content';
  if (typeof title !== 'string' || title.trim() === '') return 'vendor_d needs a title';
  const wrong = memberError(notification, rules, 'vendor_d');
  if (wrong !== null) return wrong;
  if (charsOf(content) > longest(notification))
    return `content of this style must have at most ${longest(notification)} characters for vendor_d`;
  const target = click === 1 || click === 4 ? 'click_action_activity' : 'click_action_url';
  if (typeof click === 'number' && click > 0 && !notification[target])
    return `click_action_type ${click} of vendor_d needs ${target}`;
  return notification.notify_level !== undefined && category === undefined
    ? 'notify_level of vendor_d needs a category'
    : null;
}
