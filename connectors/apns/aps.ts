/** Members of `aps`: their types (protocol/push.md#ios-content) and the format of APNs (protocol/apns.md#body). */
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';

/** Error of iOS content, for the caller; `renderApns` catches it. */
export class PayloadError extends Error {
  override readonly name = 'PayloadProblem';
}

/** Returns a string; throws an error that names the member. */
export function textOf(name: string, value: unknown): string {
  if (typeof value !== 'string') throw new PayloadError(`${name} must be a string`);
  return value;
}

function numberOf(name: string, value: Json): number {
  if (typeof value !== 'number') throw new PayloadError(`${name} must be a number`);
  return value;
}

function textsOf(name: string, value: Json): Json {
  if (!Array.isArray(value) || value.some((item) => typeof item !== 'string'))
    throw new PayloadError(`${name} must be a list of strings`);
  return value;
}

/** Accepts a list in place of Apple's string (protocol/push.md#alert-objects): a list of one becomes its member. */
function textOrTextsOf(name: string, value: Json): Json {
  if (typeof value === 'string') return value;
  if (!Array.isArray(value)) throw new PayloadError(`${name} must be a string or a list of strings`);
  const texts = textsOf(name, value);
  return value.length === 1 ? (value[0] ?? texts) : texts;
}

function zeroOrOne(name: string, value: Json): number {
  if (value !== 0 && value !== 1) throw new PayloadError(`${name} must be 0 or 1`);
  return value;
}

function badgeOf(name: string, value: Json): Json {
  if (value === 'Increment') return value;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0) return value;
  throw new PayloadError(`${name} must be a whole number of 0 or more, or the string Increment`);
}

type Check = (name: string, value: Json) => Json;

const alertMembers = new Map<string, Check>([
  ['title', textOf],
  ['title-loc-key', textOrTextsOf],
  ['title-loc-args', textsOf],
  ['subtitle', textOf],
  ['subtitle-loc-key', textOf],
  ['subtitle-loc-args', textsOf],
  ['body', textOf],
  ['action-loc-key', textOf],
  ['loc-key', textOf],
  ['loc-args', textsOf],
  ['launch-image', textOf],
  ['summary-arg', textOf],
  ['summary-arg-count', numberOf],
]);

const soundMembers = new Map<string, Check>([
  ['name', textOf],
  ['critical', criticalOf],
  ['volume', volumeOf],
]);

const members = new Map<string, Check>([
  ['alert', alertOf],
  ['title', textOf],
  ['category', textOf],
  ['thread-id', textOf],
  ['badge', badgeOf],
  ['sound', soundOf],
  ['content-available', zeroOrOne],
  ['mutable-content', zeroOrOne],
  ['url-args', textsOf],
  ['target-content-id', textOf],
  ['interruption-level', textOf],
  ['relevance-score', numberOf],
  ['filter-criteria', textOf],
]);

/** Checks known members and returns `aps` in the format of APNs; unknown members pass, nulls are left out. */
export function checkAps(given: JsonObject): JsonObject {
  const { title, ...aps } = checkMembers('', given, members);
  // protocol/push.md#ios-content: `title` only beside a string; an alert object has a title of its own.
  if (typeof title === 'string' && (aps.alert === undefined || typeof aps.alert === 'string'))
    aps.alert = aps.alert === undefined ? { title } : { title, body: aps.alert };
  return aps;
}

/** Members of an alert that show a text; the others only format it. */
const shownMembers = ['title', 'title-loc-key', 'subtitle', 'subtitle-loc-key', 'body', 'loc-key'];

const isFilled = (value: Json | undefined): boolean =>
  value !== undefined && value !== null && value !== '' && !(Array.isArray(value) && value.length === 0);

function isEmptyAlert(alert: Json | undefined): boolean {
  return isJsonObject(alert) ? !shownMembers.some((name) => isFilled(alert[name])) : !isFilled(alert);
}

/** Removes an alert without text and a sound without name, which have no effect. */
export function withoutEmpty({ alert, sound, ...aps }: JsonObject): JsonObject {
  return {
    ...(alert === undefined || isEmptyAlert(alert) ? {} : { alert }),
    ...(sound === undefined || sound === '' ? {} : { sound }),
    ...aps,
  };
}

/** Whether the user notices anything: a text, a number on the icon or a sound. */
export const isShowing = (aps: JsonObject): boolean => 'alert' in aps || 'badge' in aps || 'sound' in aps;

function checkMembers(prefix: string, given: JsonObject, checks: Map<string, Check>): JsonObject {
  const checked: JsonObject = {};
  for (const [name, value] of Object.entries(given)) {
    if (value === null || name === '__proto__') continue;
    const check = checks.get(name);
    checked[name] = check ? check(`${prefix}${name}`, value) : value;
  }
  return checked;
}

function alertOf(name: string, value: Json): Json {
  if (typeof value === 'string') return value;
  if (!isJsonObject(value)) throw new PayloadError(`${name} must be a string or an object`);
  return checkMembers('alert.', value, alertMembers);
}

function soundOf(name: string, value: Json): Json {
  if (typeof value === 'string') return value;
  if (!isJsonObject(value)) throw new PayloadError(`${name} must be a string or an object`);
  return checkMembers('sound.', value, soundMembers);
}

/** Converts a boolean to Apple's 1 or 0. */
function criticalOf(name: string, value: Json): Json {
  if (value === true || value === 1) return 1;
  if (value === false || value === 0) return 0;
  throw new PayloadError(`${name} must be true or false`);
}

/** Accepts a string too, as in one documented sample (protocol/push.md#sound-objects). */
function volumeOf(name: string, value: Json): Json {
  const volume = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  if (typeof volume === 'number' && volume >= 0 && volume <= 1) return volume;
  throw new PayloadError(`${name} must be a number from 0 to 1`);
}
