/**
 * Rules of live views, the push-type 7 of v3 (protocol/huawei.md#live-views). They are checked
 * before a push is accepted, because Huawei accepts a wrong live view and drops it on the device.
 */
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import { charsOf } from '../../kit/values.ts';

/** A wrong member, by its path in the payload, and its rule. */
export interface LiveViewProblem {
  path: string;
  rule: string;
}

const create = 0;
const end = 2;

/** Layouts of a live view (`notificationData.type`) with the members that they need. */
const layouts: ReadonlyMap<number, readonly string[]> = new Map([
  [3, ['richProgress']],
  [4, ['singleTextBlock']],
  [5, ['firstTextBlock', 'lastTextBlock']],
  [7, ['game']],
]);

/** What a push needs to create a live view of an event. */
interface Creation {
  /** Allowed layouts. */
  layouts: readonly number[];
  /** Keyword that the event requires, with its placeholder in the text. */
  keyword?: string;
}

/** Events that a push can create. The app creates live views of other events on the device. */
const creations: ReadonlyMap<string, Creation> = new Map<string, Creation>([
  ['FLIGHT', { layouts: [5], keyword: 'flightNo' }],
  ['TAXI', { layouts: [3, 4, 5, 7] }],
  ['TRAIN', { layouts: [5], keyword: 'trainNo' }],
]);

const events: readonly string[] = [
  ...['TAXI', 'DELIVERY', 'FLIGHT', 'TRAIN', 'QUEUE', 'PICK_UP', 'SCORE', 'RENT', 'TIMER'],
  ...['WORKOUT', 'NAVIGATION'],
];

const maxTitleChars = 1024;
const maxKeepSeconds = 3600;

/** Returns the first wrong member of a live view, or null. */
export function liveViewProblem(payload: JsonObject): LiveViewProblem | null {
  const { activityData, event, operation, status } = payload;
  const name = String(event);
  if (!events.includes(name)) return { path: 'event', rule: `must be one of ${events.join(', ')}` };
  const creation = creations.get(name);
  if (operation === create && !creation)
    return {
      path: 'event',
      rule: `must be ${[...creations.keys()].join(', ')} to create a live view; the app creates others`,
    };
  if (status === undefined ? operation === create : !isStatus(status))
    return { path: 'status', rule: 'must be a status of the event' };
  if (activityData === undefined && operation === end) return null;
  if (!isJsonObject(activityData)) return { path: 'activityData', rule: 'must be an object' };
  const { capsuleData, notificationData } = activityData;
  const capsule = capsuleData === undefined ? null : capsuleProblem(capsuleData);
  if (capsule) return capsule;
  if (notificationData === undefined && operation === end) return null;
  if (!isJsonObject(notificationData)) return at('', 'must be an object');
  return (
    layoutProblem(notificationData, operation === create ? creation : undefined) ??
    textProblem(notificationData) ??
    placeholderProblem(payload, notificationData)
  );
}

const isStatus = (status: Json): boolean =>
  (typeof status === 'string' && status.trim() !== '') || typeof status === 'number';

/** Returns a problem of a member of `notificationData`. */
const at = (member: string, rule: string): LiveViewProblem => ({
  path: `activityData.notificationData${member && `.${member}`}`,
  rule,
});

function layoutProblem(
  notificationData: JsonObject,
  creation: Creation | undefined,
): LiveViewProblem | null {
  const allowed = creation?.layouts ?? [...layouts.keys()];
  const type = Number(notificationData.type);
  if (typeof notificationData.type !== 'number' || !allowed.includes(type))
    return at('type', `must be ${listOf(allowed)}`);
  const missing = layouts.get(type)?.find((name) => !isJsonObject(notificationData[name]));
  return missing === undefined ? null : at(missing, `must be an object for the type ${type}`);
}

function listOf(numbers: readonly number[]): string {
  const [only, ...others] = numbers;
  return others.length === 0 ? String(only) : `one of ${numbers.join(', ')}`;
}

function textProblem({
  clickAction,
  contentText,
  contentTitle,
  keepTime,
}: JsonObject): LiveViewProblem | null {
  const isTitle = typeof contentTitle === 'string' && contentTitle !== '';
  if (!isTitle || charsOf(contentTitle) > maxTitleChars)
    return at('contentTitle', `must be a string of 1 to ${maxTitleChars} characters`);
  if (!Array.isArray(contentText) || contentText.length === 0 || !contentText.every(isJsonObject))
    return at('contentText', 'must be a list of rich texts');
  if (!isJsonObject(clickAction)) return at('clickAction', 'must be an object');
  return keepTime === undefined || isWhole(keepTime, 0, maxKeepSeconds)
    ? null
    : at('keepTime', `must be a whole number from 0 to ${maxKeepSeconds} (seconds)`);
}

/** Checks that the text contains the values that Huawei fills in. */
function placeholderProblem(
  { event, operation, status }: JsonObject,
  notificationData: JsonObject,
): LiveViewProblem | null {
  const { keywords, ...texts } = notificationData;
  const has = (name: string) => JSON.stringify(texts).includes(`{{${name}}}`);
  if (status !== undefined && !has('status'))
    return at('contentTitle', 'must contain {{status}}, as contentText may instead');
  const { keyword } = creations.get(String(event)) ?? {};
  const given = isJsonObject(keywords) ? keywords : {};
  if (keyword === undefined || (operation !== create && given[keyword] === undefined)) return null;
  if (typeof given[keyword] !== 'string' || given[keyword] === '')
    return at(`keywords.${keyword}`, `must be a string for the event ${event}`);
  return has(keyword)
    ? null
    : at('contentTitle', `must contain {{${keyword}}}, as contentText may instead`);
}

function capsuleProblem(capsule: Json): LiveViewProblem | null {
  const wrong = (member: string, rule: string) => ({
    path: `activityData.capsuleData${member && `.${member}`}`,
    rule,
  });
  if (!isJsonObject(capsule)) return wrong('', 'must be an object');
  const { bgColor, icon, status, type } = capsule;
  if (!isWhole(type, 1, 3)) return wrong('type', 'must be 1, 2 or 3');
  if (status !== undefined && status !== 1 && status !== -1)
    return wrong('status', 'must be 1 or -1');
  if (icon !== undefined && (typeof icon !== 'string' || /^https?:/i.test(icon)))
    return wrong('icon', "must be the name of a file in the app's rawfile folder");
  return bgColor === undefined || /^#[0-9a-fA-F]{8}$/.test(String(bgColor))
    ? null
    : wrong('bgColor', 'must be a colour such as "#FF0A59F7"');
}

const isWhole = (value: Json | undefined, from: number, to: number): boolean =>
  typeof value === 'number' && Number.isInteger(value) && value >= from && value <= to;
