/**
 * Members of `aps`: their types (protocol/push.md#ios-content, protocol/apns.md#body). Plain forms
 * are converted; what APNs or the device would refuse is an error with the path of the member in
 * the push.
 */
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import { flagIn } from '../../shared/domain/plain-values.ts';
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
type Readers = Readonly<Record<string, Reader>>;

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
    if (!isJsonObject(value))
      throw new PayloadError(unfitMember(path, 'must be a string or an object'));
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

const onlyOne = only(1);
const onlyTrue = only(true);

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

/** Members that the user notices: a text, a number on the icon, a sound. */
export const showingMembers: readonly string[] = ['alert', 'title', 'badge', 'sound'];

/** Members of an alert that show a text; the others only format it. */
const shownMembers = ['title', 'title-loc-key', 'subtitle', 'subtitle-loc-key', 'body', 'loc-key'];

const isFilled = (value: Json | undefined): boolean =>
  value !== undefined &&
  value !== null &&
  value !== '' &&
  !(Array.isArray(value) && value.length === 0);

function isEmptyAlert(alert: Json | undefined): boolean {
  return isJsonObject(alert)
    ? !shownMembers.some((name) => isFilled(alert[name]))
    : !isFilled(alert);
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

// Table of APNs' push types (protocol/apns.md#push-types): topic, authentication, priority,
// expiration, form and size of the body. A push is checked against the row of its type when it is
// accepted; nothing else in the connector depends on a type.

export type Priority = '10' | '5' | '1';

/** Rules for `aps` of one push type. */
export interface ApsForm {
  members: Readers;
  /** Alert, badge and sound: one of them must be there, they may be, or the push shows nothing. */
  showing: 'needed' | 'allowed' | 'forbidden';
  /** Members that must be there. */
  required?: readonly string[];
  /** Further members that must be there, by `event`. */
  requiredByEvent?: Readonly<Record<string, readonly string[]>>;
  /** Two members of which only one may be there. */
  excluding?: readonly [string, string];
  /** Push type of content with nothing to show that has `content-available`. */
  withoutShowing?: string;
}

interface PushType {
  /** Suffix of the bundle id in `apns-topic`. */
  topicSuffix: string;
  /**
   * Token authentication only. Whether a certificate serves another type is told by its list of
   * topics.
   */
  isTokenOnly?: true;
  /** Values of `apns-priority`, the default one first. */
  priorities: readonly [Priority, ...Priority[]];
  /** `apns-expiration` is 0: APNs tries once. A late call must not ring. */
  expiresAtOnce?: true;
  /** Null: the body has no `aps`. */
  aps: ApsForm | null;
  /** The plain layout takes the type too. */
  isPlain?: true;
  /** The system shows a notification; one with the same collapse id replaces it. */
  isShown?: true;
  maxBytes: number;
}

const anyContent: ApsForm = { members: notificationMembers, showing: 'allowed' };
const reload: ApsForm = {
  members: reloadMembers,
  showing: 'forbidden',
  required: ['content-changed'],
};

const usual = { priorities: ['10', '5'], aps: anyContent, maxBytes: 4096 } as const;

export const pushTypes: ReadonlyMap<string, PushType> = new Map<string, PushType>([
  [
    'alert',
    {
      ...usual,
      topicSuffix: '',
      priorities: ['10', '5', '1'],
      aps: { members: notificationMembers, showing: 'needed', withoutShowing: 'background' },
      isPlain: true,
      isShown: true,
    },
  ],
  [
    'background',
    {
      ...usual,
      topicSuffix: '',
      priorities: ['5'],
      aps: { members: backgroundMembers, showing: 'forbidden', required: ['content-available'] },
      isPlain: true,
    },
  ],
  ['voip', { ...usual, topicSuffix: '.voip', expiresAtOnce: true, maxBytes: 5120 }],
  ['complication', { ...usual, topicSuffix: '.complication' }],
  ['fileprovider', { ...usual, topicSuffix: '.pushkit.fileprovider', aps: null }],
  ['mdm', { ...usual, topicSuffix: '', aps: null }],
  ['location', { ...usual, topicSuffix: '.location-query', isTokenOnly: true }],
  [
    'pushtotalk',
    { ...usual, topicSuffix: '.voip-ptt', priorities: ['10'], expiresAtOnce: true, aps: null },
  ],
  [
    'liveactivity',
    {
      ...usual,
      topicSuffix: '.push-type.liveactivity',
      aps: {
        members: activityMembers,
        showing: 'allowed',
        required: ['event', 'timestamp'],
        requiredByEvent: {
          start: ['content-state', 'attributes-type', 'attributes', 'alert'],
          update: ['content-state'],
        },
        excluding: ['input-push-token', 'input-push-channel'],
      },
    },
  ],
  ['widgets', { ...usual, topicSuffix: '.push-type.widgets', aps: reload }],
  ['controls', { ...usual, topicSuffix: '.push-type.controls', aps: reload }],
]);

/** Push type of content that names none. */
export const defaultPushType = 'alert';

/** Returns the row of a push type. Throws for an unknown name, which rendering refuses. */
export function pushTypeOf(name: string): PushType {
  const type = pushTypes.get(name);
  if (!type) throw new Error(`${name} is no push type`);
  return type;
}

/**
 * Returns the topic to send with; undefined if the credentials do not cover it. A listed topic may
 * have a suffix; one without gets the suffix of the push type.
 */
export function sendableTopic(
  topic: string,
  pushType: string,
  listed: readonly string[],
): string | undefined {
  const { topicSuffix } = pushTypeOf(pushType);
  const hasSuffix = topicSuffix !== '' && topic.endsWith(topicSuffix);
  if (listed.includes(topic)) return hasSuffix ? topic : `${topic}${topicSuffix}`;
  for (const { topicSuffix: known } of pushTypes.values())
    if (known !== '' && topic.endsWith(known) && listed.includes(topic.slice(0, -known.length)))
      return topic;
  return undefined;
}
