/**
 * Types of the members of `aps` (protocol/push.md#ios-content, protocol/apns.md#body). Short forms
 * are converted. Values that APNs or the device would refuse throw an error with the path of the
 * member in the push.
 */

import { flagIn } from '../../shared/domain/client-values.ts';
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import {
  bit,
  int,
  number,
  object,
  oneWord,
  refined,
  text,
  texts,
  unfitMember,
  type ValueType,
} from '../kit/values.ts';
import { type PushTypeName, pushTypeOf } from './push-types.ts';

/**
 * Error in iOS content, for the caller. `renderApns` catches it. `isMisfit` is true if no member is
 * wrong.
 */
export class PayloadError extends Error {
  override readonly name = 'PayloadError';
  readonly isMisfit: boolean;

  constructor(message: string, isMisfit = false) {
    super(message);
    this.isMisfit = isMisfit;
  }
}

/** Converts a value to the form that APNs accepts. Throws an error that begins with `path`. */
type Reader = (path: string, value: Json) => Json;

/** Readers by member name. Members without a reader are not checked. */
type Readers = Readonly<Record<string, Reader>>;

const largestBadge = 2_147_483_647;

/** Returns the reader for a type. */
export const as =
  (type: ValueType): Reader =>
  (path, value) => {
    const read = type.read(value);
    if (read === undefined) throw new PayloadError(unfitMember(path, `must be ${type.expected}`));
    return read;
  };

/** Reads the members of an object. Drops nulls. */
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
 * Accepts a list as well as Apple's string (protocol/push.md#alert-objects). A list with one member
 * becomes this member.
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
    if (!isJsonObject(value))
      throw new PayloadError(unfitMember(path, 'must be a string or an object'));
    return readMembers(path, value, members);
  };

/** Members of all push types except Live Activities. */
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

/** Reader of a member whose only valid value is 1 or true. */
const only = <T extends 1 | true>(value: T): Reader =>
  as({ expected: String(value), read: (given) => (flagIn(given) ? value : undefined) });

const onlyOne = only(1);
const onlyTrue = only(true);

/**
 * A time in seconds since 1970. Values above the limit are refused, because they are milliseconds,
 * which is a common mistake.
 */
const epochSeconds = as(
  refined(
    number(),
    (value) => Number(value) >= 0 && Number(value) < 100_000_000_000,
    'a time in epoch seconds',
  ),
);

/** Text of a Live Activity: a string, or a key of the app's texts with its arguments. */
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
const activityMembers: Readers = {
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
const reloadMembers: Readers = { ...notificationMembers, 'content-changed': onlyTrue };

const backgroundMembers: Readers = { ...notificationMembers, 'content-available': onlyOne };

/** Members that the user notices. */
export const showingMembers: readonly string[] = ['alert', 'title', 'badge', 'sound'];

/** Members of an alert that contain a text. The other members only format it. */
const alertTextMembers = [
  'title',
  'title-loc-key',
  'subtitle',
  'subtitle-loc-key',
  'body',
  'loc-key',
];

const isFilled = (value: Json | undefined): boolean =>
  value !== undefined &&
  value !== null &&
  value !== '' &&
  !(Array.isArray(value) && value.length === 0);

function isEmptyAlert(alert: Json | undefined): boolean {
  return isJsonObject(alert)
    ? !alertTextMembers.some((name) => isFilled(alert[name]))
    : !isFilled(alert);
}

/** Moves `title` into the alert if the alert is a string. An alert object has its own title. */
export function withTitle({ title, ...aps }: JsonObject): JsonObject {
  if (typeof title !== 'string' || isJsonObject(aps.alert)) return aps;
  return { ...aps, alert: aps.alert === undefined ? { title } : { title, body: aps.alert } };
}

/** Removes an alert without text and a sound without name, which would have no effect. */
export function withoutEmpty({ alert, sound, ...aps }: JsonObject): JsonObject {
  return {
    ...(alert === undefined || isEmptyAlert(alert) ? {} : { alert }),
    ...(sound === undefined || sound === '' ? {} : { sound }),
    ...aps,
  };
}

export const isShowing = (aps: JsonObject): boolean => showingMembers.some((name) => name in aps);

/** Rules for `aps` of one push type. */
export interface ApsForm {
  members: Readers;
  /** Whether alert, badge and sound are needed (one of the three), allowed or forbidden. */
  showing: 'needed' | 'allowed' | 'forbidden';
  /** Members that are required. */
  required?: readonly string[];
  /** Members that are also required for some values of `event`. */
  requiredByEvent?: Readonly<Record<string, readonly string[]>>;
  /** Two members that exclude each other. */
  excluding?: readonly [string, string];
  /** Push type to use instead if the content has `content-available` and nothing to show. */
  withoutShowing?: string;
}

const anyContent: ApsForm = { members: notificationMembers, showing: 'allowed' };
const reload: ApsForm = {
  members: reloadMembers,
  showing: 'forbidden',
  required: ['content-changed'],
};

/** Rules by push type. Types with other rules than `anyContent` are listed. */
const forms: Readonly<Partial<Record<PushTypeName, ApsForm>>> = {
  alert: { members: notificationMembers, showing: 'needed', withoutShowing: 'background' },
  background: {
    members: backgroundMembers,
    showing: 'forbidden',
    required: ['content-available'],
  },
  liveactivity: {
    members: activityMembers,
    showing: 'allowed',
    required: ['event', 'timestamp'],
    requiredByEvent: {
      start: ['content-state', 'attributes-type', 'attributes', 'alert'],
      update: ['content-state'],
    },
    excluding: ['input-push-token', 'input-push-channel'],
  },
  widgets: reload,
  controls: reload,
};

const formByType = new Map(Object.entries(forms));

/** Returns the rules for `aps` of a push type. Null if its body has no `aps`. */
export const apsFormOf = (pushType: string): ApsForm | null =>
  pushTypeOf(pushType).hasAps ? (formByType.get(pushType) ?? anyContent) : null;
