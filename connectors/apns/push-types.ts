/** Push types of APNs, their topic suffixes and their rules (protocol/apns.md#push-types). */
export interface PushType {
  /** Suffix of the bundle id in `apns-topic`. */
  topicSuffix: string;
  /** Token authentication only (protocol/apns.md#certificates). */
  isTokenOnly?: true;
  /** The system shows a notification; one with the same collapse id replaces it. */
  isShown?: true;
  maxBytes: number;
}

const maxBytes = 4096;

const alert: PushType = { topicSuffix: '', isShown: true, maxBytes };

const pushTypes = new Map<string, PushType>([
  ['alert', alert],
  ['background', { topicSuffix: '', maxBytes }],
  ['voip', { topicSuffix: '.voip', maxBytes: 5120 }],
  ['complication', { topicSuffix: '.complication', maxBytes }],
  ['fileprovider', { topicSuffix: '.pushkit.fileprovider', maxBytes }],
  ['mdm', { topicSuffix: '', maxBytes }],
  ['liveactivity', { topicSuffix: '.push-type.liveactivity', isTokenOnly: true, maxBytes }],
  ['location', { topicSuffix: '.location-query', isTokenOnly: true, maxBytes }],
  ['pushtotalk', { topicSuffix: '.voip-ptt', isTokenOnly: true, maxBytes }],
  ['controls', { topicSuffix: '.push-type.controls', isTokenOnly: true, maxBytes }],
  ['widgets', { topicSuffix: '.push-type.widgets', isTokenOnly: true, maxBytes }],
]);

/** Types of the plain layout; the `aps` layout accepts all (protocol/push.md#ios-content). */
export const plainPushTypes: readonly string[] = ['alert', 'background'];
export const allPushTypes: readonly string[] = [...pushTypes.keys()];

/** Returns the rules of a push type; those of `alert` for an unknown name, which rendering refuses. */
export const pushTypeOf = (name: string): PushType => pushTypes.get(name) ?? alert;

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
