import { flagIn } from '../client-values.ts';
import type { JsonObject } from '../json.ts';
import { type ConnectorId, connectorIds, successField } from '../labels.ts';
import { addTotals, type OutcomeTotals } from '../outcome.ts';
import { reasonText } from '../reasons.ts';
import { type KeptTokens, keptText } from './invalid-tokens.ts';
import { shownActivity } from './live-activity.ts';
import { noReceipts, originalTarget, type PushOrder, type ReceiptTotals } from './push.ts';

/** State of a push. develop/dispatcher.md shows the transitions. */
export const pushStates = [
  'scheduled',
  'queued',
  'sending',
  'paused',
  'done',
  'failed',
  'cancelled',
] as const;
export type PushState = (typeof pushStates)[number];

/** Outcomes of the recipients of a push by connector. */
export type ConnectorTotals = Partial<Record<ConnectorId, OutcomeTotals>>;

/** What planning, sending and the rules of a push read of it. */
export interface OpenPush {
  appId: string;
  id: number;
  objectId: string;
  notificationId: string;
  state: PushState;
  pushOrder: PushOrder;
  pushTime: Date;
  expiresAt: Date;
  plannedThrough: number;
  isPlanned: boolean;
  devices: number;
  profileErrors: Record<string, string>;
  createdAt: Date;
  firstSentAt: Date | null;
}

/** A push with its results, as stored in the table `notification`. */
export interface Push extends OpenPush {
  error: string | null;
  fromService: string;
  /** Name and token id of the admin API caller. Null for a push of the app. */
  createdBy: string | null;
  createdToken: number | null;
  /** Totals of a closed push; null if the push is open. */
  totals: ConnectorTotals | null;
  acked: number;
  /**
   * Recipients that were sent to again because a request got no response; 0 while the push is open.
   */
  repeats: number;
  /** Messages of the device channel that were evicted from full inboxes by newer messages. */
  displaced: number;
  /** Recipients that redrives have taken over. */
  redriven: number;
  /** Recipients that waited for the end of their quiet hours. */
  quietWaits: number;
  /**
   * Profiles for which the push kept devices with invalid tokens (`deletableOf`); empty in a list.
   */
  keptTokens: readonly KeptTokens[];
  updatedAt: Date;
  finishedAt: Date | null;
}

/** Admin API caller that sends a push. `tokenId` is null for CARILLON_ADMIN_TOKEN. */
export interface PushCreator {
  name: string;
  tokenId: number | null;
}

/**
 * Returns when a push began, for durations: its scheduled time, or the time when it was accepted.
 */
export const pushBeganAtMs = ({
  createdAt,
  pushTime,
}: Pick<Push, 'createdAt' | 'pushTime'>): number =>
  Math.max(createdAt.getTime(), pushTime.getTime());

/** Adds up the totals of all connectors. */
export function allTotals(totals: ConnectorTotals): OutcomeTotals {
  const all: OutcomeTotals = {};
  for (const ofConnector of Object.values(totals)) addTotals(all, ofConnector);
  return all;
}

/**
 * Returns the `status` for clients: in-queue, scheduled, done, or the error text
 * (protocol/push-records.md#status).
 */
function publicStatus(record: Push): string {
  if (record.state === 'failed') return record.error === null ? 'error' : reasonText(record.error);
  if (record.state === 'scheduled' || record.state === 'done') return record.state;
  return record.state === 'cancelled' ? 'cancelled' : 'in-queue';
}

/** Returns the `status` for operators, who also see `paused`. Clients see `in-queue` instead. */
export function operatorStatus(record: Push): string {
  return record.state === 'paused' ? 'paused' : publicStatus(record);
}

/** Returns the target of a push as one `where`, for its record. */
function publicWhere(pushOrder: PushOrder): JsonObject {
  const target = originalTarget(pushOrder);
  if (target.kind === 'devices') return { deviceType: target.deviceType };
  const { where, channels } = target;
  const base: JsonObject = Array.isArray(where)
    ? { $and: where }
    : typeof where === 'object' && where
      ? { ...where }
      : {};
  if (channels && channels.length > 0) base.channels = { $in: channels };
  return base;
}

/**
 * Returns the record for `GET /1.1/notifications/:id` (protocol/push-records.md#record-fields).
 *
 * - Successes are acknowledgements for the device channel, and accepted recipients for gateways.
 * - `delivered` and `clicked` come from receipts.
 * - `repeats` counts recipients that were sent to again because a request got no response.
 * - `displaced` counts messages that were evicted from full inboxes
 *   (protocol/channel.md#channel-limits).
 * - The argument `gatewayFailure` describes unavailable gateways that an open push waits for.
 */
export function toPublicRecord(
  record: Push,
  totals: ConnectorTotals,
  {
    receipts = noReceipts,
    gatewayFailure = '',
  }: { receipts?: Readonly<ReceiptTotals>; gatewayFailure?: string } = {},
): JsonObject {
  const successes: JsonObject = {};
  let sum = 0;
  for (const connector of connectorIds) {
    const counts = totals[connector];
    if (!counts) continue;
    const count = connector === 'channel' ? record.acked : (counts.sent ?? 0);
    const field = successField(connector);
    successes[field] = Number(successes[field] ?? 0) + count;
    sum += count;
  }
  const outcomes = allTotals(totals);
  return {
    objectId: record.objectId,
    notificationId: record.notificationId,
    msg: record.pushOrder.data,
    where: publicWhere(record.pushOrder),
    ...(record.pushOrder.liveActivity
      ? { liveActivity: shownActivity(record.pushOrder.liveActivity, record.pushOrder.data) }
      : {}),
    prod: record.pushOrder.prod,
    status: publicStatus(record),
    devices: record.devices,
    successes: sum,
    ...successes,
    delivered: receipts.delivered,
    clicked: receipts.clicked,
    ...(record.pushOrder.hasPushId ? { events: eventsOf(receipts) } : {}),
    invalidTokens: outcomes.invalid_token ?? 0,
    outcomes,
    repeats: record.repeats,
    displaced: record.displaced,
    ...(record.quietWaits > 0 ? { quietWaits: record.quietWaits } : {}),
    ...(record.keptTokens.length > 0
      ? { keptTokens: record.keptTokens.map((kept) => ({ ...kept })) }
      : {}),
    errors: [
      ...record.keptTokens.map(keptText),
      record.error === null ? gatewayFailure : reasonText(record.error),
    ]
      .filter(Boolean)
      .join('; '),
    'from-service': record.fromService,
    'push-time': record.pushTime.toISOString(),
    createdAt: record.createdAt.toISOString(),
    updatedAt: record.updatedAt.toISOString(),
  };
}

/** Returns the events that the app reported. */
export const eventsOf = ({ received, opened, dismissed }: Readonly<ReceiptTotals>) => ({
  received,
  opened,
  dismissed,
});

/** Scheduled push with the integer id that is used to cancel it. */
export interface ScheduledPush extends Push {
  entryId: number;
}

/**
 * Returns an entry of `GET /1.1/scheduledPushMessages` (protocol/push.md#scheduled-push-entry).
 * `query` includes the condition that the service adds. `through?` is the value of `silent`.
 */
export function toScheduledEntry(push: ScheduledPush): JsonObject {
  const { pushOrder } = push;
  return {
    id: push.entryId,
    expire_time: push.pushTime.getTime(),
    push_msg: {
      'through?': flagIn(pushOrder.data.silent) ?? null,
      'app-id': push.appId,
      where: { sort: { createdAt: 1 }, query: { ...publicWhere(pushOrder), valid: true } },
      prod: pushOrder.prod,
      'api-version': '1.1',
      msg: pushOrder.data,
      id: push.objectId,
      notificationId: push.notificationId,
    },
    createdAt: push.createdAt.toISOString(),
  };
}
