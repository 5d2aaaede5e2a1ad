// Table of Apple's push types (protocol/apns.md#push-types): topic, authentication, priority,
// expiration, form and size of the body. The check of a call, the connector and the sandbox gateway
// use it. `aps.ts` adds the rules for the members of `aps`.

export type Priority = '10' | '5' | '1';

export interface PushType {
  /** Suffix of the bundle id in `apns-topic`. */
  topicSuffix: string;
  /**
   * The only authentication that the type accepts. If absent, the list of topics in a certificate
   * says whether the certificate is valid for the type.
   */
  auth?: 'token' | 'certificate';
  /** Valid values of `apns-priority`; the first is the default. */
  priorities: readonly [Priority, ...Priority[]];
  /** Sends `apns-expiration` 0, so that APNs tries only once. A late call must not ring. */
  expiresAtOnce?: true;
  /** Whether the body has `aps`. */
  hasAps: boolean;
  maxBytes: number;
  /** The type may also be used in the plain layout. */
  isPlain?: true;
  /**
   * The system shows a notification. A later notification with the same collapse id replaces it.
   */
  isShown?: true;
}

const usual = { topicSuffix: '', priorities: ['10', '5'], hasAps: true, maxBytes: 4096 } as const;

const rows = {
  alert: { ...usual, priorities: ['10', '5', '1'], isPlain: true, isShown: true },
  background: { ...usual, priorities: ['5'], isPlain: true },
  voip: { ...usual, topicSuffix: '.voip', expiresAtOnce: true, maxBytes: 5120 },
  complication: { ...usual, topicSuffix: '.complication' },
  fileprovider: { ...usual, topicSuffix: '.pushkit.fileprovider', hasAps: false },
  // Only a certificate of mobile device management has the topic of this type.
  mdm: { ...usual, auth: 'certificate', hasAps: false },
  location: { ...usual, topicSuffix: '.location-query', auth: 'token' },
  pushtotalk: {
    ...usual,
    topicSuffix: '.voip-ptt',
    priorities: ['10'],
    expiresAtOnce: true,
    hasAps: false,
  },
  liveactivity: { ...usual, topicSuffix: '.push-type.liveactivity' },
  widgets: { ...usual, topicSuffix: '.push-type.widgets' },
  controls: { ...usual, topicSuffix: '.push-type.controls' },
} as const satisfies Record<string, PushType>;

export type PushTypeName = keyof typeof rows;

export const pushTypes: ReadonlyMap<string, PushType> = new Map<string, PushType>(
  Object.entries(rows),
);

/** A Live Activity that is sent to a broadcast channel. The path has the bundle id, not a topic. */
export const broadcastType: PushType = {
  ...rows.liveactivity,
  topicSuffix: '',
  priorities: ['10', '5', '1'],
  maxBytes: 5120,
};

/** Push type of content that has none. */
export const defaultPushType = 'alert';

/**
 * Returns the row of a push type. Throws if the type is unknown, which rendering has already
 * excluded.
 */
export function pushTypeOf(name: string): PushType {
  const type = pushTypes.get(name);
  if (!type) throw new Error(`${name} is no push type`);
  return type;
}

/**
 * Returns the topic to send to APNs; undefined if the credentials do not cover it. A topic without
 * suffix gets the suffix of the push type. A listed topic may already have a suffix.
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

/** Returns a topic without the suffix of a push type. */
export function bundleIdIn(topic: string): string {
  for (const { topicSuffix } of pushTypes.values())
    if (topicSuffix !== '' && topic.endsWith(topicSuffix))
      return topic.slice(0, -topicSuffix.length);
  return topic;
}
