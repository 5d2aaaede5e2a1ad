/**
 * Members of vivo's message and their rules (protocol/vivo.md#message), checked before anything is
 * sent.
 */
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import { reason, reasonAs } from '../../../shared/domain/reasons.ts';
import { misfit } from '../../contract/connector.ts';
import { charsOf } from '../../kit/android.ts';
import { contentRefused, tooLong, unfitMember } from '../../kit/content-reasons.ts';
import { MemberTable, membersAt, part } from '../../kit/members.ts';
import {
  filled,
  flag,
  int,
  jsonObject,
  like,
  list,
  object,
  oneName,
  oneNumber,
  text,
} from '../../kit/values.ts';

/** Second-level categories by class (protocol/vivo.md#message). */
const systemCategories = ['IM', 'ACCOUNT', 'TODO', 'DEVICE_REMINDER', 'ORDER', 'SUBSCRIPTION'];
const operationCategories = ['NEWS', 'CONTENT', 'MARKETING', 'SOCIAL'];

export const vivoMembers = new MemberTable(
  [
    ...membersAt('', {
      notifyType: oneNumber(1, 2, 3, 4),
      title: filled(40),
      content: filled(100),
      timeToLive: int(60, 86_400, 'seconds'),
      skipType: oneNumber(1, 2, 3, 4),
      skipContent: filled(1024),
      networkType: oneNumber(-1, 1),
      classification: oneNumber(0, 1),
      category: oneName([...systemCategories, ...operationCategories]),
      clientCustomMap: jsonObject,
      pushMode: oneNumber(0, 1),
      notifyId: int(1, 2_147_483_647),
      profileId: filled(64),
      sendOnline: flag,
      foregroundShow: flag,
      addBadge: flag,
      auditReview: list(object, 'a list of objects'),
      liveMessage: object,
      extra: part,
    }),
    ...membersAt('extra', { callback: text(0, 128), 'callback.param': text(0, 64) }),
  ],
  { flat: [], unknown: { place: '' } },
);

/** Class of a message; vivo counts its quotas apart. */
export const kindOf = ({ category, classification }: JsonObject): 'operation' | 'system' =>
  classification === 1 || systemCategories.some((one) => one === category) ? 'system' : 'operation';

/** Skip types that need a target. */
const needsContent = new Set<Json | undefined>([2, 4]);
const webUrl = like(/^https?:\/\//, 'an http:// or https:// URL');

/** Returns the first rule on several members that a message breaks, or null. */
export function messageProblem(message: JsonObject): string | null {
  for (const name of ['title', 'content', 'notifyType', 'skipType'])
    if (message[name] === undefined) return reason('missingMember', { connector: 'vendor_e', member: name });
  const { category, classification, skipContent = null, skipType, title } = message;
  if (charsOf(String(title)) > 40) return tooLong('title', 40, 'vendor_e');
  if (needsContent.has(skipType) && skipContent === null)
    return contentRefused('skipType of vendor_e needs skipContent');
  if (skipType === 2 && webUrl.read(skipContent) === undefined)
    return reasonAs(`skipContent of vendor_e must be ${webUrl.expected}`, 'memberRule', {
      member: 'skipContent',
      connector: 'vendor_e',
    });
  const isOperation = operationCategories.some((one) => one === category);
  if (category !== undefined && classification !== undefined && isOperation === (classification === 1))
    return `classification ${classification} of vendor_e contradicts the category ${category}: leave it out`;
  return null;
}

/** Returns the error of members for the app that are too long together, or null. */
export function mapProblem({ clientCustomMap: map }: JsonObject) {
  const chars = isJsonObject(map) ? charsIn(map) : 0;
  return chars > maxMapChars
    ? misfit(
        unfitMember(
          'clientCustomMap',
          `must have at most ${maxMapChars} characters for vendor_e; it has ${chars}`,
        ),
      )
    : null;
}

const maxMapChars = 1024;

/** Counts the characters of all names and values. */
const charsIn = (map: JsonObject): number =>
  Object.entries(map).reduce((chars, [name, value]) => chars + charsOf(name) + charsOf(String(value)), 0);
