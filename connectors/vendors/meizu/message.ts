/** Rules of Meizu's message (protocol/meizu.md#message), checked before anything is sent. */
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts';
import { type Check, isBytes, isFilled, isInt, isLike, oneOf } from '../../kit/member-rules.ts';

interface Rule {
  group: string;
  name: string;
  isRight: Check;
  expected: string;
}

const isTime = isLike(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);

const rule = (path: string, isRight: Check, expected: string): Rule => {
  const [group = '', name = ''] = path.split(/\.(.*)/s);
  return { group, name, isRight, expected };
};

const rules: readonly Rule[] = [
  rule('noticeBarInfo.noticeMsgType', oneOf(0, 1), '0 or 1'),
  rule('noticeBarInfo.noticeBarType', oneOf(0, 2), '0 or 2'),
  rule('noticeExpandInfo.noticeExpandType', oneOf(0, 1, 2), '0, 1 or 2'),
  // Meizu withdrew 3.
  rule('clickTypeInfo.clickType', oneOf(0, 1, 2), '0, 1 or 2'),
  rule('clickTypeInfo.parameters', isJsonObject, 'an object'),
  rule('clickTypeInfo.customAttribute', isBytes(1000), 'a text of at most 1000 bytes'),
  rule('pushTimeInfo.offLine', oneOf(0, 1), '0 or 1'),
  rule('pushTimeInfo.validTime', isInt(1, 72), 'a whole number of hours from 1 to 72'),
  rule('advanceInfo.notifyKey', isLike(/^[\w-]{1,8}$/), 'at most 8 letters, digits, _ or -'),
  rule('advanceInfo.fixStartDisplayTime', isTime, 'a time as yyyy-MM-dd HH:mm:ss'),
  rule('advanceInfo.fixEndDisplayTime', isTime, 'a time as yyyy-MM-dd HH:mm:ss'),
  rule('extra.callback', isBytes(128), 'a text of at most 128 bytes'),
  rule('extra.callback.param', isBytes(64), 'a text of at most 64 bytes'),
  rule('extra.callback.type', oneOf('1', '2', '3', 1, 2, 3), '1, 2 or 3'),
];

/** Required members, some depending on others. */
const needs: readonly (Rule & { isNeeded(group: JsonObject): boolean })[] = [
  { ...rule('noticeBarInfo.title', isFilled(32), '1 to 32 characters'), isNeeded: () => true },
  { ...rule('noticeBarInfo.content', isFilled(100), '1 to 100 characters'), isNeeded: () => true },
  {
    ...rule('noticeExpandInfo.noticeExpandContent', isFilled(4096), 'a text'),
    isNeeded: ({ noticeExpandType }) => noticeExpandType === 1,
  },
  {
    ...rule('noticeExpandInfo.noticeExpandImgUrl', isFilled(4096), 'a URL'),
    isNeeded: ({ noticeExpandType }) => noticeExpandType === 2,
  },
  {
    ...rule('clickTypeInfo.activity', isFilled(1024), 'the name of an activity'),
    isNeeded: ({ clickType }) => clickType === 1,
  },
  {
    ...rule('clickTypeInfo.url', isFilled(4096), 'a URI'),
    isNeeded: ({ clickType }) => clickType === 2,
  },
];

const groupNames = [...new Set([...rules, ...needs].map(({ group }) => group))];

/** Returns the first error of a message, or null. */
export function messageError(message: JsonObject): string | null {
  for (const name of groupNames) {
    const group = message[name];
    if (group !== undefined && !isJsonObject(group)) return `${name} of vendor_c must be an object`;
  }
  for (const { group: groupName, name, isRight, expected } of rules) {
    const group = groupIn(message, groupName);
    const value = group[name];
    if (value !== undefined && !isRight(value)) return `${name} of vendor_c must be ${expected}`;
  }
  for (const { group: groupName, name, isRight, expected, isNeeded } of needs) {
    const group = groupIn(message, groupName);
    if (isNeeded(group) && !isRight(group[name] ?? null)) return `${name} of vendor_c must be ${expected}`;
  }
  return null;
}

const groupIn = (message: JsonObject, name: string): JsonObject => {
  const group = message[name];
  return isJsonObject(group) ? group : {};
};
