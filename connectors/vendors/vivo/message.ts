/** Rules of vivo's message (protocol/vivo.md#message), checked before anything is sent. */
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import { charsOf } from '../../kit/android.ts';
import {
  isFilled,
  isFlag,
  isInt,
  isLike,
  isText,
  type MemberRule,
  memberError,
  oneOf,
} from '../../kit/member-rules.ts';

/** Classification may be missing if there is a category, which determines it. */
const rules: readonly MemberRule[] = [
  ['notifyType', oneOf(1, 2, 3, 4), '1, 2, 3 or 4'],
  ['title', isFilled(40), '1 to 40 characters'],
  ['content', isFilled(100), '1 to 100 characters'],
  ['timeToLive', isInt(60, 86_400), 'a whole number of seconds from 60 to 86400'],
  ['skipType', oneOf(1, 2, 3, 4), '1, 2, 3 or 4'],
  ['skipContent', isFilled(1024), '1 to 1024 characters'],
  ['networkType', oneOf(-1, 1), '-1 or 1'],
  ['classification', oneOf(0, 1), '0 or 1'],
  ['category', isLike(/^[A-Z][A-Z0-9_]{0,63}$/), 'a category of vivo in upper case'],
  [
    'clientCustomMap',
    (value) => isJsonObject(value) && charsIn(value) <= 1024,
    'an object of at most 1024 characters',
  ],
  ['pushMode', oneOf(0, 1), '0 or 1'],
  ['notifyId', isInt(1, 2_147_483_647), 'a whole number from 1 to 2147483647'],
  ['profileId', isFilled(64), '1 to 64 characters'],
  ['sendOnline', isFlag, 'true or false'],
  ['foregroundShow', isFlag, 'true or false'],
  ['addBadge', isFlag, 'true or false'],
  ['extra', isJsonObject, 'an object'],
];

/** Skip types that need a target. */
const needsContent = new Set<Json | undefined>([2, 4]);

/** Returns the first error of a message, or null. */
export function messageProblem(message: JsonObject): string | null {
  for (const name of ['title', 'content', 'notifyType', 'skipType'])
    if (message[name] === undefined) return `vendor_e needs a ${name}`;
  const wrong = memberError(message, rules, 'vendor_e');
  if (wrong !== null) return wrong;
  const { extra, skipContent, skipType } = message;
  if (needsContent.has(skipType) && skipContent === undefined)
    return 'skipType of vendor_e needs skipContent';
  if (skipType === 2 && !/^https?:\/\//.test(String(skipContent)))
    return 'skipContent of vendor_e must be an http:// or https:// URL';
  return isJsonObject(extra) ? extraProblem(extra) : null;
}

function extraProblem(extra: JsonObject): string | null {
  for (const [name, most] of [
    ['callback', 128],
    ['callback.param', 64],
  ] as const) {
    const value = extra[name];
    if (value !== undefined && !isText(0, most)(value))
      return `extra.${name} of vendor_e must be at most ${most} characters`;
  }
  return null;
}

/** Counts the characters of all names and values. */
function charsIn(map: JsonObject): number {
  let chars = 0;
  for (const [name, value] of Object.entries(map))
    chars += charsOf(name) + charsOf(typeof value === 'string' ? value : JSON.stringify(value));
  return chars;
}
