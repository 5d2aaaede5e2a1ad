import { type Clock, dayMs, hourMs, minuteMs } from '../../shared/clock.ts';
import { largestOfItems } from '../../shared/db/outage.ts';
import type { Database } from '../../shared/db/pool.ts';
import { listAppIds } from '../../shared/db/tables/apps.ts';
import {
  deleteExpiredMessages,
  evictOldest,
  findFullInboxes,
  firstInbox,
  type InboxPosition,
} from '../../shared/db/tables/channel-messages.ts';
import { deleteEndedSessions, deleteOldAudit } from '../../shared/db/tables/console.ts';
import { deleteOldRates, gatewayDaySweeps } from '../../shared/db/tables/gateway-limits.ts';
import { deleteOldGatewayTokens } from '../../shared/db/tables/gateways.ts';
import {
  continueIdleWalk,
  continueRegistrationWalk,
} from '../../shared/db/tables/installation-walks.ts';
import { deleteOldInvalidTokenNotices } from '../../shared/db/tables/invalid-tokens.ts';
import { deleteOldClocks, deleteOldTokens } from '../../shared/db/tables/live-activities.ts';
import { deleteOldMessages } from '../../shared/db/tables/outbox.ts';
import {
  deleteOldPushes,
  deleteOldRequestIds,
  deleteSurplusFailures,
} from '../../shared/db/tables/pushes.ts';
import {
  deleteOldFailedReceipts,
  deleteOldGatewayMessages,
} from '../../shared/db/tables/receipts.ts';
import { deleteOldDeviceDays } from '../../shared/db/tables/recipients.ts';
import { reportSweeps } from '../../shared/db/tables/reports.ts';
import {
  deleteExpiredCaptchas,
  deleteExpiredCodes,
  deleteExpiredLinks,
  deleteOldLoginLocks,
} from '../../shared/db/tables/sign-in.ts';
import { deleteOldConversions, sendSweeps } from '../../shared/db/tables/sms.ts';
import { rewriteTokens } from '../../shared/db/tables/token-spellings.ts';
import { deleteOldUsage } from '../../shared/db/tables/usage.ts';
import { deleteOldDeliveries } from '../../shared/db/tables/webhook-deliveries.ts';
import { sessionIdleMs, sessionLifeMs } from '../../shared/domain/admin/operator.ts';
import { webhookLimits } from '../../shared/domain/webhooks/endpoint.ts';
import type { Metrics } from '../../shared/metrics.ts';
import type { DispatcherDeps } from '../deps.ts';

/** Retention of records, and of what belongs to them. */
const recordMs = 7 * dayMs;
/** More than a year, so that a bill can be written after the end of a year. */
const usageMs = 400 * dayMs;
/** Maximum failures of an app, about 2 GB. The oldest ones are deleted. */
const keptFailures = 10_000_000;

/**
 * Deletes rows of one kind. A deletion with a limit returns the number of rows. The other deletions
 * delete everything in one pass.
 */
type Deletion<D> = (deps: D, now: number, rows: number) => Promise<unknown>;

/** Returns a deletion of the rows that a sweep finds older than `keptMs`. */
const olderThan =
  (
    keptMs: number,
    sweep: (db: Database, before: Date, limit: number) => Promise<unknown>,
  ): Deletion<{ db: Database }> =>
  ({ db }, now, rows) =>
    sweep(db, new Date(now - keptMs), rows);

interface CleanerDeps extends InboxLimitDeps {
  clock: Clock;
}

const deletions: readonly Deletion<CleanerDeps>[] = [
  olderThan(recordMs, deleteOldPushes),
  ({ db }) => deleteSurplusFailures(db, { keptPerApp: keptFailures }),
  ({ db, metrics }, now, rows) =>
    deleteExpiredMessages(db, new Date(now), rows, (expired) =>
      metrics.channelMessages.inc({ event: 'expired' }, expired),
    ),
  olderThan(10 * minuteMs, deleteOldRequestIds),
  olderThan(usageMs, deleteOldUsage),
  // A transaction that began yesterday may still write the row of yesterday.
  olderThan(dayMs, deleteOldDeviceDays),
  olderThan(recordMs, deleteOldFailedReceipts),
  olderThan(recordMs, deleteOldGatewayMessages),
  ...gatewayDaySweeps.map((sweep) => olderThan(usageMs, sweep)),
  ({ db }, now) =>
    deleteEndedSessions(db, {
      now: new Date(now),
      seenAfter: new Date(now - sessionIdleMs),
      createdAfter: new Date(now - sessionLifeMs),
    }),
  olderThan(recordMs, deleteOldRates),
  olderThan(recordMs, deleteOldGatewayTokens),
  // The next push to the device decides about the notice.
  olderThan(30 * dayMs, deleteOldInvalidTokenNotices),
  // After the end of a Live Activity, so that `why` can tell that it ended.
  olderThan(2 * dayMs, deleteOldTokens),
  olderThan(recordMs, deleteOldClocks),
  // Failed logins count for 15 minutes, and a lock lasts as long (protocol/users.md#account-lock).
  olderThan(35 * minuteMs, deleteOldLoginLocks),
  olderThan(webhookLimits.keptMs, (db, before, limit) =>
    deleteOldDeliveries(db, { before, kept: webhookLimits.kept, limit }),
  ),
  // A year can be audited after its end.
  olderThan(400 * dayMs, deleteOldAudit),
  // A day can be compared with the same day of the year before.
  ...reportSweeps.map((sweep) => olderThan(731 * dayMs, sweep)),
];

/** Expired codes, captchas and links, old messages, and counts outside of every window. */
const verificationDeletions = [
  // More than the window of the conversion rate, and than the time that a breaker stays open.
  olderThan(3 * hourMs, deleteOldConversions),
  olderThan(0, deleteExpiredCodes),
  olderThan(0, deleteExpiredCaptchas),
  olderThan(0, deleteExpiredLinks),
  // More than a day, which is the longest window of a limit.
  ...sendSweeps.map((sweep) => olderThan(25 * hourMs, sweep)),
  // Messages contain addresses and phone numbers.
  olderThan(recordMs, deleteOldMessages),
];

/**
 * Deletes rows after their retention (protocol/push-records.md#retention), at most `rows` of each
 * kind. A failed deletion does not stop the others. The first error is thrown at the end, as a
 * `PartialFailure`. Returns the largest number of rows.
 */
export const cleanOnce = (deps: CleanerDeps, rows: number): Promise<number> =>
  deleteAll(deletions, deps, { now: deps.clock.now(), rows });

/** Like `cleanOnce`, for the rows of verification and of messages. */
export const cleanVerification = (db: Database, now: number, rows: number): Promise<number> =>
  deleteAll(verificationDeletions, { db }, { now, rows });

async function deleteAll<D>(
  list: readonly Deletion<D>[],
  deps: D,
  { now, rows }: { now: number; rows: number },
): Promise<number> {
  return largestOfItems(list, async (remove) => {
    const deleted = await remove(deps, now, rows);
    return typeof deleted === 'number' ? deleted : 0;
  });
}

/** Interval of scans for idle installations of a large app. Each scan reads all installations. */
const walkEveryMs = dayMs;

/**
 * Deletes installations that were neither updated nor imported within their app's validity
 * (protocol/installations.md#idle-installations), at most `limit` per app and pass. Returns the
 * largest number of one app, or `limit` if a scan is not finished.
 */
export async function deleteIdle(
  { db, appCache, clock }: DispatcherDeps,
  limit: number,
): Promise<number> {
  return largestOfItems(await listAppIds(db), async (appId) => {
    const app = await appCache.app(appId);
    if (!app) return 0;
    const now = clock.now();
    const before = new Date(now - app.options.installationValidityDays * dayMs);
    const walk = { appId, before, limit, now: new Date(now), nextAt: new Date(now + walkEveryMs) };
    return continueIdleWalk(db, walk);
  });
}

/**
 * Merges installations of the same device (`tables/installations.ts`). Handles at most `limit`
 * tokens, and one page of each app. Returns `limit` if there is more to do, otherwise the number of
 * tokens.
 */
export async function mergeDevices(
  { db, clock }: Pick<DispatcherDeps, 'db' | 'clock'>,
  limit: number,
): Promise<number> {
  const mergeApp = async (appId: string) => {
    const now = clock.now();
    const walk = { appId, now: new Date(now), nextAt: new Date(now + walkEveryMs) };
    return (await continueRegistrationWalk(db, walk)) ? limit : 0;
  };
  const appIds = await listAppIds(db);
  const merges = [() => rewriteTokens(db, limit), ...appIds.map((appId) => () => mergeApp(appId))];
  return largestOfItems(merges, (merge) => merge());
}

/** Inbox rows that one pass reads. This takes the database about 10 ms. */
const rowsPerPass = 20_000;

interface InboxLimitDeps {
  db: Database;
  metrics: Pick<Metrics, 'channelMessages'>;
}

/**
 * Scans all inboxes, and drops the oldest messages of inboxes over their limit
 * (protocol/channel.md#channel-limits). A check at each new message would cost a third of storing
 * the message.
 */
export class InboxLimit {
  #next: InboxPosition = firstInbox;

  /**
   * Reads the next rows, and starts over after the last one. Returns the number of dropped
   * messages.
   */
  async run({ db, metrics }: InboxLimitDeps, rows = rowsPerPass): Promise<number> {
    const { installations, next } = await findFullInboxes(db, this.#next, rows);
    this.#next = next ?? firstInbox;
    let displaced = 0;
    for (const [appId, inboxes] of installations)
      displaced += await evictOldest(db, appId, inboxes);
    metrics.channelMessages.inc({ event: 'displaced' }, displaced);
    return displaced;
  }
}
