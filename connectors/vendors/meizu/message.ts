/**
 * Members of Meizu's message and their rules (protocol/meizu.md#message), checked before anything
 * is sent.
 */
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts';
import { numberIn } from '../../../shared/domain/plain-values.ts';
import { reason } from '../../../shared/domain/reasons.ts';
import { charsOf } from '../../kit/android.ts';
import { contentRefused, tooLong } from '../../kit/content-reasons.ts';
import { MemberTable, membersAt, part } from '../../kit/members.ts';
import {
  bit,
  bytes,
  filled,
  int,
  jsonObject,
  like,
  object,
  oneNumber,
  text,
  type ValueType,
} from '../../kit/values.ts';

const time = like(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/, 'a time as yyyy-MM-dd HH:mm:ss');

/** Meizu writes the number of the events as a text. */
const events: ValueType = {
  expected: '1, 2 or 3',
  read: (value) => [1, 2, 3].find((one) => one === numberIn(value))?.toString(),
};

export const meizuMembers = new MemberTable(
  [
    ...membersAt('', {
      noticeBarInfo: part,
      noticeExpandInfo: part,
      clickTypeInfo: part,
      pushTimeInfo: part,
      advanceInfo: part,
      vipInfo: object,
      extra: part,
    }),
    ...membersAt('noticeBarInfo', {
      title: filled(32),
      content: filled(100),
      noticeMsgType: oneNumber(0, 1),
      noticeBarType: oneNumber(0, 2),
    }),
    ...membersAt('noticeExpandInfo', {
      noticeExpandType: oneNumber(0, 1, 2),
      noticeExpandContent: text(),
      noticeExpandImgUrl: text(),
    }),
    ...membersAt('clickTypeInfo', {
      // Meizu withdrew 3.
      clickType: oneNumber(0, 1, 2),
      activity: filled(1024),
      url: filled(4096),
      parameters: jsonObject,
      customAttribute: bytes(1000),
    }),
    ...membersAt('pushTimeInfo', { offLine: bit, validTime: int(1, 72, 'hours') }),
    ...membersAt('advanceInfo', {
      suspend: bit,
      clearNoticeBar: bit,
      notificationType: part,
      notifyKey: like(/^[\w-]{1,8}$/, '1 to 8 letters, digits, _ or -'),
      fixDisplay: bit,
      fixStartDisplayTime: time,
      fixEndDisplayTime: time,
    }),
    ...membersAt('advanceInfo.notificationType', { vibrate: bit, lights: bit, sound: bit }),
    ...membersAt('extra', { callback: bytes(128), 'callback.param': bytes(64), 'callback.type': events }),
  ],
  {
    flat: ['noticeBarInfo', 'noticeExpandInfo', 'clickTypeInfo', 'pushTimeInfo', 'advanceInfo'],
    unknown: { place: '' },
  },
);

/**
 * Members that are needed beside the value of another one of their group: group, member, needed
 * one, in words.
 */
const needs = [
  ['noticeExpandInfo', { noticeExpandType: 1 }, 'noticeExpandContent'],
  ['noticeExpandInfo', { noticeExpandType: 2 }, 'noticeExpandImgUrl'],
  ['clickTypeInfo', { clickType: 1 }, 'activity'],
  ['clickTypeInfo', { clickType: 2 }, 'url'],
] as const;

/** Returns the first rule on several members that a message breaks, or null. */
export function messageError(message: JsonObject): string | null {
  const { content, title } = groupIn(message, 'noticeBarInfo');
  if (content === undefined) return reason('missingMember', { connector: 'vendor_c', member: 'content' });
  if (title === undefined || title === '')
    return reason('missingMember', { connector: 'vendor_c', member: 'title' });
  if (charsOf(String(title)) > 32) return tooLong('title', 32, 'vendor_c');
  for (const [group, given, needed] of needs) {
    const members = groupIn(message, group);
    const [[name, value] = []] = Object.entries(given);
    if (name !== undefined && members[name] === value && !members[needed])
      return contentRefused(`${name} ${value} of vendor_c needs ${needed}`);
  }
  return null;
}

const groupIn = (message: JsonObject, name: string): JsonObject => {
  const group = message[name];
  return isJsonObject(group) ? group : {};
};
