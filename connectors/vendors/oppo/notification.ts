/**
 * Members of OPPO's message and the rules of its notification (protocol/oppo.md#notification),
 * checked before anything is sent.
 */
import type { Json, JsonObject } from '../../../shared/domain/json.ts';
import { reason } from '../../../shared/domain/reasons.ts';
import { charsOf } from '../../kit/android.ts';
import { contentRefused, tooLong } from '../../kit/content-reasons.ts';
import { MemberTable, membersAt } from '../../kit/members.ts';
import {
  flag,
  int,
  jsonObject,
  jsonText,
  oneName,
  oneNumber,
  refined,
  text,
  type ValueType,
  written,
} from '../../kit/values.ts';

/** Longest content by style; OPPO's client checks 200 for styles that only it knows. */
const contentChars: ReadonlyMap<Json | undefined, number> = new Map([
  [1, 50],
  [2, 128],
  [3, 50],
]);

const longest = ({ style }: JsonObject): number => contentChars.get(style) ?? 200;
const epochMs = int(0, 9_999_999_999_999, 'epoch milliseconds');

/** Name of a channel of the console. */
const channel = refined(
  text(1, 200),
  (value) => !/\p{Cc}/u.test(String(value)),
  'a string of 1 to 200 characters that can be seen',
);
/** Values of a template, as an object or as its JSON text. */
const parameters: ValueType = { ...jsonObject, values: written };

const serviceCategories = ['IM', 'ACCOUNT', 'DEVICE_REMINDER', 'ORDER', 'TODO', 'SUBSCRIPTION'];
const marketingCategories = ['NEWS', 'CONTENT', 'MARKETING', 'SOCIAL'];

export const oppoMembers = new MemberTable(
  [
    ...membersAt('', { verify_registration_id: flag }),
    ...membersAt('notification', {
      app_message_id: text(1, 100),
      style: int(1, 5),
      title: text(1, 50),
      sub_title: text(0, 10),
      content: text(1, 200),
      click_action_type: oneNumber(0, 1, 2, 4, 5),
      click_action_activity: text(0, 500),
      click_action_url: text(0, 2000),
      action_parameters: jsonText(4000),
      off_line: flag,
      off_line_ttl: int(0, 1_000_000_000, 'seconds'),
      show_ttl: int(0, 172_800, 'seconds, at most two days'),
      show_time_type: oneNumber(0, 1),
      show_start_time: epochMs,
      show_end_time: epochMs,
      notify_id: int(0, 2_147_483_647),
      channel_id: channel,
      category: oneName([...serviceCategories, ...marketingCategories]),
      notify_level: oneNumber(1, 2, 16),
      private_msg_template_id: text(1, 64),
      private_title_parameters: parameters,
      private_content_parameters: parameters,
      call_back_url: text(1, 200),
      call_back_parameter: text(0, 100),
      fix_speed: flag,
      fix_speed_rate: int(1000, 10_000),
      network_type: oneNumber(0, 1),
      badge_operation_type: oneNumber(0, 1),
      badge_message_count: int(0, 99_999),
      big_picture_id: text(1),
      small_picture_id: text(1),
    }),
  ],
  // Documents of OPPO have camel case, its API takes snake case (protocol/oppo.md#single-device).
  { flat: ['notification'], unknown: { place: 'notification' }, isAnyCase: true },
);

/** Returns the first error of a notification, or null. */
export function notificationProblem(notification: JsonObject): string | null {
  const { category, click_action_type: click, content, title } = notification;
  if (typeof content !== 'string' || content.trim() === '')
    return reason('missingMember', { connector: 'vendor_d', member: 'content' });
  if (typeof title !== 'string' || title.trim() === '')
    return reason('missingMember', { connector: 'vendor_d', member: 'title' });
  if (charsOf(title) > 50) return tooLong('title', 50, 'vendor_d');
  if (charsOf(content) > longest(notification))
    return contentRefused(
      `content of this style must have at most ${longest(notification)} characters for vendor_d`,
    );
  const target = click === 1 || click === 4 ? 'click_action_activity' : 'click_action_url';
  if (typeof click === 'number' && click > 0 && !notification[target])
    return contentRefused(`click_action_type ${click} of vendor_d needs ${target}`);
  if (notification.notify_level !== undefined && category === undefined)
    return contentRefused('notify_level of vendor_d needs a category');
  const values = ['private_title_parameters', 'private_content_parameters'].find(
    (name) => name in notification,
  );
  return values !== undefined && notification.private_msg_template_id === undefined
    ? contentRefused(`${values} of vendor_d needs private_msg_template_id`)
    : null;
}
