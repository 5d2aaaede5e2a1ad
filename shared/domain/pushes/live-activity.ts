import { isJsonObject, type JsonObject } from '../json.ts';

/** Events of a Live Activity, as APNs names them. */
export type ActivityEvent = 'start' | 'update' | 'end';

/** Whether APNs stores the newest message of a broadcast channel for devices that are offline. */
export const channelStorages = ['none', 'last'] as const;
export type ChannelStorage = (typeof channelStorages)[number];

/**
 * What a Live Activity push is sent to (protocol/live-activities.md#targets):
 *
 * - `type`: the push-to-start tokens of one type of attributes.
 * - `activity`: the update tokens of one activity.
 * - `channel`: a broadcast channel of APNs, which is the only recipient.
 */
export type ActivityTarget =
  | { kind: 'type' | 'activity'; name: string }
  | { kind: 'channel'; name: string; storage: ChannelStorage };

/** Live Activity that a push starts, updates or ends. Its content is in `data` of the push. */
export type LiveActivity = {
  event: ActivityEvent;
  target: ActivityTarget;
};

/** Kinds of tokens: a push-to-start token, or the update token of a running activity. */
export type ActivityTokenKind = 'start' | 'update';

/** Token kind and name that a target selects. Null for a channel, which has no tokens. */
export const tokensOfTarget = ({
  kind,
  name,
}: ActivityTarget): { kind: ActivityTokenKind; name: string } | null =>
  kind === 'channel' ? null : { kind: kind === 'type' ? 'start' : 'update', name };

/**
 * An update token expires this long after its last report. An activity lives 8 hours, and its end
 * stays visible for 4 hours more.
 */
export const updateTokenLifeMs = 12 * 3_600_000;

/** Default lifetime of a Live Activity push: no activity lives longer. */
export const activityExpiryMs = 12 * 3_600_000;

/** Recipient id of the channel of a broadcast. No installation has this id. */
export const channelRecipient = 0;

/** Maximum characters of an activity id. */
const maxActivityIdChars = 128;

/** Names that the paths below `/1.1/liveActivities` use themselves. */
const reservedIds = new Set(['tokens', 'channels']);

/**
 * True if the path of a call can name the activity. Ids consist of letters, digits and `._~:@-`,
 * and do not begin with a dot.
 */
export const isActivityId = (text: string): boolean =>
  text.length <= maxActivityIdChars &&
  /^[A-Za-z0-9_~:@-][A-Za-z0-9._~:@-]*$/.test(text) &&
  !reservedIds.has(text);

export const activityIdForm =
  'expected at most 128 letters, digits or ._~:@- without a dot at the beginning; ' +
  'tokens and channels are no ids';

/** Returns a time as APNs takes it. */
export const epochSeconds = (time: Date): number => Math.floor(time.getTime() / 1000);

/** Returns the `timestamp` of a Live Activity push, in epoch seconds. 0 if it has none. */
export function timestampOf(data: JsonObject): number {
  const at = isJsonObject(data.aps) ? data.aps.timestamp : 0;
  return typeof at === 'number' ? at : 0;
}

/** Returns the data of a push with another `timestamp`. */
export function withTimestamp(data: JsonObject, timestamp: number): JsonObject {
  const { aps } = data;
  return isJsonObject(aps) ? { ...data, aps: { ...aps, timestamp } } : data;
}

/** Members of `aps` with a time, by their name in a record. */
const shownTimes = [
  ['timestamp', 'timestamp'],
  ['staleDate', 'stale-date'],
  ['dismissalDate', 'dismissal-date'],
] as const;

/** Returns what a push sent to Live Activities, for its record. Contains no token. */
export function shownActivity({ event, target }: LiveActivity, data: JsonObject): JsonObject {
  const sent = isJsonObject(data.aps) ? data.aps : {};
  const to =
    target.kind === 'channel'
      ? { channel: target.name, storage: target.storage }
      : { [target.kind === 'type' ? 'attributesType' : 'activityId']: target.name };
  const times = shownTimes.flatMap(([name, member]) => {
    const at = sent[member];
    return typeof at === 'number' ? [[name, new Date(at * 1000).toISOString()]] : [];
  });
  return {
    event,
    ...to,
    ...Object.fromEntries(times),
    contentState: sent['content-state'] ?? null,
    ...(sent.attributes === undefined ? {} : { attributes: sent.attributes }),
    alert: sent.alert ?? null,
    priority: data['apns-priority'] ?? null,
  };
}
