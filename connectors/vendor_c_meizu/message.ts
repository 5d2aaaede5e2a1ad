/** The rules that a message of Meizu's has (gateways-xiaomi 4.3); what is wrong is told before anything is sent. */
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import { charsOf } from '../kit/android.ts';

interface Rule {
  group: string;
  name: string;
  isRight(value: Json, group: JsonObject): boolean;
  expected: string;
}

const oneOf =
  (...values: Json[]) =>
  (value: Json): boolean =>
    values.includes(value);
const isText =
  (from: number, to: number) =>
  (value: Json): boolean =>
    typeof value === 'string' && value.trim() !== '' && charsOf(value) >= from && charsOf(value) <= to;
const isBytes =
  (most: number) =>
  (value: Json): boolean =>
    typeof value === 'string' && Buffer.byteLength(value) <= most;
const isTime = (value: Json): boolean =>
  typeof value === 'string' && /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/.test(value);
const isHours = (value: Json): boolean =>
  typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 72;

const rule = (path: string, isRight: Rule['isRight'], expected: string): Rule => {
  const [group = '', name = ''] = path.split(/\.(.*)/s);
  return { group, name, isRight, expected };
};

const rules: readonly Rule[] = [
  rule('noticeBarInfo.noticeMsgType', oneOf(0, 1), '0 or 1'),
  rule('noticeBarInfo.noticeBarType', oneOf(0, 2), '0 or 2'),
  rule('noticeExpandInfo.noticeExpandType', oneOf(0, 1, 2), '0, 1 or 2'),
  // 3 was withdrawn.
  rule('clickTypeInfo.clickType', oneOf(0, 1, 2), '0, 1 or 2'),
  rule('clickTypeInfo.parameters', isJsonObject, 'an object'),
  rule('clickTypeInfo.customAttribute', isBytes(1000), 'a text of at most 1000 bytes'),
  rule('pushTimeInfo.offLine', oneOf(0, 1), '0 or 1'),
  rule('pushTimeInfo.validTime', isHours, 'a whole number of hours from 1 to 72'),
  rule(
    'advanceInfo.notifyKey',
    (value) => typeof value === 'string' && /^[\w-]{1,8}$/.test(value),
    'at most 8 letters, digits, _ or -',
  ),
  rule('advanceInfo.fixStartDisplayTime', isTime, 'a time as yyyy-MM-dd HH:mm:ss'),
  rule('advanceInfo.fixEndDisplayTime', isTime, 'a time as yyyy-MM-dd HH:mm:ss'),
  rule('extra.callback', isBytes(128), 'a text of at most 128 bytes'),
  rule('extra.callback.param', isBytes(64), 'a text of at most 64 bytes'),
  rule('extra.callback.type', oneOf('1', '2', '3', 1, 2, 3), '1, 2 or 3'),
];

/** Members that have to be there, some only beside others. */
const needs: readonly (Rule & { isNeeded(group: JsonObject): boolean })[] = [
  { ...rule('noticeBarInfo.title', isText(1, 32), '1 to 32 characters'), isNeeded: () => true },
  { ...rule('noticeBarInfo.content', isText(1, 100), '1 to 100 characters'), isNeeded: () => true },
  {
    ...rule('noticeExpandInfo.noticeExpandContent', isText(1, 4096), 'a text'),
    isNeeded: ({ noticeExpandType }) => noticeExpandType === 1,
  },
  {
    ...rule('noticeExpandInfo.noticeExpandImgUrl', isText(1, 4096), 'a URL'),
    isNeeded: ({ noticeExpandType }) => noticeExpandType === 2,
  },
  {
    ...rule('clickTypeInfo.activity', isText(1, 1024), 'the name of an activity'),
    isNeeded: ({ clickType }) => clickType === 1,
  },
  {
    ...rule('clickTypeInfo.url', isText(1, 4096), 'a URI'),
    isNeeded: ({ clickType }) => clickType === 2,
  },
];

const groupNames = [...new Set([...rules, ...needs].map(({ group }) => group))];

/** What is wrong with a message, as a sentence; null when nothing is. */
export function messageProblem(message: JsonObject): string | null {
  for (const name of groupNames) {
    const group = message[name];
    if (group !== undefined && !isJsonObject(group)) return `${name} of vendor_c must be an object`;
  }
  for (const { group: groupName, name, isRight, expected } of rules) {
    const group = groupIn(message, groupName);
    const value = group[name];
    if (value !== undefined && !isRight(value, group)) return `${name} of vendor_c must be ${expected}`;
  }
  for (const { group: groupName, name, isRight, expected, isNeeded } of needs) {
    const group = groupIn(message, groupName);
    if (isNeeded(group) && !isRight(group[name] ?? null, group))
      return `${name} of vendor_c must be ${expected}`;
  }
  return null;
}

const groupIn = (message: JsonObject, name: string): JsonObject => {
  const group = message[name];
  return isJsonObject(group) ? group : {};
};
