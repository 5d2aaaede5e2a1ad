/**
 * Table of APNs' push types (protocol/apns.md#push-types): topic, authentication, priority,
 * expiration, form and size of the body. A push is checked against the row of its type when it is
 * accepted; nothing else in the connector depends on a type.
 */
import {
  activityMembers,
  backgroundMembers,
  notificationMembers,
  type Readers,
  reloadMembers,
} from './aps.ts';

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

export interface PushType {
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
const reload: ApsForm = { members: reloadMembers, showing: 'forbidden', required: ['content-changed'] };

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
  ['pushtotalk', { ...usual, topicSuffix: '.voip-ptt', priorities: ['10'], expiresAtOnce: true, aps: null }],
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
 * Returns the topic to send with; undefined if the credentials do not cover it. A listed topic may have a suffix; one
 * without gets the suffix of the push type.
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
    if (known !== '' && topic.endsWith(known) && listed.includes(topic.slice(0, -known.length))) return topic;
  return undefined;
}
