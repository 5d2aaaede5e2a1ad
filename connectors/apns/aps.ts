/**
 * Members of `aps`: their types (protocol/push.md#ios-content, protocol/apns.md#body). Plain forms
 * are converted; what APNs or the device would refuse is an error with the path of the member in
 * the push.
 */
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import { flagIn } from '../../shared/domain/plain-values.ts';
import { unfitMember } from '../kit/content-reasons.ts';
import { bit, int, number, object, oneWord, refined, text, texts, type ValueType } from '../kit/values.ts';

/**
 * Error of iOS content, for the caller; `renderApns` catches it. `isMisfit`: no member is wrong.
 */
export class PayloadError extends Error {
  override readonly name = 'PayloadError';
  readonly isMisfit: boolean;

  constructor(message: string, isMisfit = false) {
    super(message);
    this.isMisfit = isMisfit;
  }
}

/** Reads a value as APNs takes it; throws an error that begins with `path`. */
type Reader = (path: string, value: Json) => Json;

/** Readers of the members of an object by name; others pass. */
export type Readers = Readonly<Record<string, Reader>>;

const largestBadge = 2_147_483_647;

/** Returns the reader of a type. */
export const as =
  (type: ValueType): Reader =>
  (path, value) => {
    const read = type.read(value);
    if (read === undefined) throw new PayloadError(unfitMember(path, `must be ${type.expected}`));
    return read;
  };

/** Reads the members of an object; nulls are left out. */
function readMembers(path: string, given: JsonObject, readers: Readers): JsonObject {
  const read: JsonObject = {};
  for (const [name, value] of Object.entries(given)) {
    if (value === null || name === '__proto__') continue;
    const reader = Object.hasOwn(readers, name) ? readers[name] : undefined;
    read[name] = reader ? reader(`${path}.${name}`, value) : value;
  }
  return read;
}

const anyText = as(text());
const anyTexts = as(texts);

/**
 * Accepts a list in place of Apple's string (protocol/push.md#alert-objects): a list of one becomes
 * its member.
 */
const textOrTexts: Reader = (path, value) => {
  if (typeof value === 'string') return value;
  if (!Array.isArray(value))
    throw new PayloadError(unfitMember(path, 'must be a string or a list of strings'));
  return value.length === 1 ? anyText(path, value[0] ?? null) : anyTexts(path, value);
};

const alertMembers: Readers = {
  title: anyText,
  'title-loc-key': textOrTexts,
  'title-loc-args': anyTexts,
  subtitle: anyText,
  'subtitle-loc-key': anyText,
  'subtitle-loc-args': anyTexts,
  body: anyText,
  'action-loc-key': anyText,
  'loc-key': anyText,
  'loc-args': anyTexts,
  'launch-image': anyText,
  'summary-arg': anyText,
  'summary-arg-count': as(number()),
};

const soundMembers: Readers = {
  name: anyText,
  critical: as({ ...bit, expected: 'true or false' }),
  volume: as(number(0, 1)),
};

const textOrObject =
  (members: Readers): Reader =>
  (path, value) => {
    if (typeof value === 'string') return value;
    if (!isJsonObject(value)) throw new PayloadError(unfitMember(path, 'must be a string or an object'));
    return readMembers(path, value, members);
  };

/** Members of all kinds of pushes but Live Activities. */
export const notificationMembers: Readers = {
  alert: textOrObject(alertMembers),
  title: anyText,
  category: anyText,
  'thread-id': anyText,
  badge: (path, value) =>
    value === 'Increment'
      ? value
      : as({
          ...int(0, largestBadge),
          expected: `a whole number from 0 to ${largestBadge}, or the string Increment`,
        })(path, value),
  sound: textOrObject(soundMembers),
  'content-available': as(bit),
  'mutable-content': as(bit),
  'url-args': anyTexts,
  'target-content-id': anyText,
  'interruption-level': as(oneWord('passive', 'active', 'time-sensitive', 'critical')),
  'relevance-score': as(number(0, 1)),
  'filter-criteria': anyText,
};

/** The only value that a member may have: 1 or true. */
const only = <T extends 1 | true>(value: T): Reader =>
  as({ expected: String(value), read: (given) => (flagIn(given) ? value : undefined) });

export const onlyOne = only(1);
export const onlyTrue = only(true);

/** Above any epoch second of this millennium: such a value is a number of milliseconds. */
const epochSeconds = as(
  refined(
    number(),
    (value) => Number(value) >= 0 && Number(value) < 100_000_000_000,
    'a time in epoch seconds',
  ),
);

/** Text of a Live Activity: a string, or one of the app's own with its values. */
const localizable: Reader = (path, value) =>
  typeof value === 'string'
    ? value
    : isJsonObject(value) && typeof value['loc-key'] === 'string'
      ? readMembers(path, value, { 'loc-key': anyText, 'loc-args': anyTexts })
      : as({ expected: 'a string, or an object with loc-key', read: () => undefined })(path, value);

const activityAlertMembers: Readers = {
  ...alertMembers,
  title: localizable,
  subtitle: localizable,
  body: localizable,
  sound: anyText,
};

/** Members of a Live Activity (protocol/apns.md#live-activities). */
export const activityMembers: Readers = {
  ...notificationMembers,
  alert: (path, value) => {
    const read = isJsonObject(value) ? readMembers(path, value, activityAlertMembers) : {};
    if (isEmptyAlert(read))
      throw new PayloadError(unfitMember(path, 'must be an object with a title or a body'));
    return read;
  },
  event: as(oneWord('start', 'update', 'end')),
  timestamp: epochSeconds,
  'content-state': as(object),
  'attributes-type': as(refined(text(), (value) => value !== '', 'the name of a type')),
  attributes: as(object),
  'stale-date': epochSeconds,
  'dismissal-date': epochSeconds,
  'relevance-score': as(number()),
  'input-push-token': onlyOne,
  'input-push-channel': as(refined(text(), (value) => value !== '', 'the id of a channel')),
};

/** Members of widgets and controls. */
export const reloadMembers: Readers = { ...notificationMembers, 'content-changed': onlyTrue };

export const backgroundMembers: Readers = { ...notificationMembers, 'content-available': onlyOne };

/** Members that the user notices: a text, a number on the icon, a sound. */
export const showingMembers: readonly string[] = ['alert', 'title', 'badge', 'sound'];

/** Members of an alert that show a text; the others only format it. */
const shownMembers = ['title', 'title-loc-key', 'subtitle', 'subtitle-loc-key', 'body', 'loc-key'];

const isFilled = (value: Json | undefined): boolean =>
  value !== undefined && value !== null && value !== '' && !(Array.isArray(value) && value.length === 0);

function isEmptyAlert(alert: Json | undefined): boolean {
  return isJsonObject(alert) ? !shownMembers.some((name) => isFilled(alert[name])) : !isFilled(alert);
}

/**
 * Puts `title` into the alert: it belongs to a string, since an alert object has a title of its
 * own.
 */
export function withTitle({ title, ...aps }: JsonObject): JsonObject {
  if (typeof title !== 'string' || isJsonObject(aps.alert)) return aps;
  return { ...aps, alert: aps.alert === undefined ? { title } : { title, body: aps.alert } };
}

/** Removes an alert without text and a sound without name, which have no effect. */
export function withoutEmpty({ alert, sound, ...aps }: JsonObject): JsonObject {
  return {
    ...(alert === undefined || isEmptyAlert(alert) ? {} : { alert }),
    ...(sound === undefined || sound === '' ? {} : { sound }),
    ...aps,
  };
}

export const isShowing = (aps: JsonObject): boolean => showingMembers.some((name) => name in aps);
