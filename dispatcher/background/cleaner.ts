import { type Clock, dayMs, hourMs } from '../../shared/clock.ts';
import { forEachItem } from '../../shared/db/outage.ts';
import type { Database, Handle } from '../../shared/db/pool.ts';
import { listAppIds } from '../../shared/db/tables/apps.ts';
import {
  deleteExpiredMessages,
  evictOldest,
  findFullInboxes,
  firstInbox,
  type InboxPosition,
} from '../../shared/db/tables/channel-messages.ts';
import { deleteEndedSessions, deleteOldAudit } from '../../shared/db/tables/console.ts';
import { deleteOldGatewayDays, deleteOldRates } from '../../shared/db/tables/gateway-limits.ts';
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
import { deleteOldConversions, deleteOldSends } from '../../shared/db/tables/sms.ts';
import { rewriteTokens } from '../../shared/db/tables/token-spellings.ts';
import { deleteOldUsage } from '../../shared/db/tables/usage.ts';
import { deleteOldDeliveries } from '../../shared/db/tables/webhook-deliveries.ts';
import { sessionIdleMs, sessionLifeMs } from '../../shared/domain/admin/operator.ts';
import { webhookLimits } from '../../shared/domain/webhooks/endpoint.ts';
import type { Metrics } from '../../shared/metrics.ts';
import type { DispatcherDeps } from '../deps.ts';

const recordRetentionMs = 7 * dayMs;
/** Maximum failures of an app, about 2 GB. The oldest ones are deleted. */
const keptFailures = 10_000_000;
const requestRetentionMs = 10 * 60_000;
/**
 * Failed logins count for 15 minutes, and a lock lasts as long (protocol/users.md#account-lock).
 */
const loginRetentionMs = 35 * 60_000;
/**
 * Update tokens of Live Activities are kept for a while after their end, so that `why` can tell
 * that they ended.
 */
const updateTokenRetentionMs = 2 * dayMs;
/** A notice of an invalid token is kept for this time, until the next push to the device. */
const noticeRetentionMs = 30 * dayMs;
/** More than a year, so that a bill can be written after the end of a year. */
const usageRetentionMs = 400 * dayMs;
/** As long as usage, so that a year can be audited after its end. */
const auditRetentionMs = 400 * dayMs;
/** Two years, so that a day can be compared with the same day of the year before. */
const reportRetentionMs = 731 * dayMs;

interface CleanerDeps extends InboxLimitDeps {
  clock: Clock;
}

/**
 * The deletions of a pass. A deletion with a limit returns the number of rows. The other deletions
 * delete everything in one pass.
 */
const deletions: ((deps: CleanerDeps, now: number, rows: number) => Promise<unknown>)[] = [
  ({ db }, now, rows) => deleteOldPushes(db, new Date(now - recordRetentionMs), rows),
  ({ db }) => deleteSurplusFailures(db, { keptPerApp: keptFailures }),
  ({ db, metrics }, now, rows) =>
    deleteExpiredMessages(db, new Date(now), rows, (expired) =>
      metrics.channelMessages.inc({ event: 'expired' }, expired),
    ),
  ({ db }, now) => deleteOldRequestIds(db, new Date(now - requestRetentionMs)),
  ({ db }, now, rows) => deleteOldUsage(db, new Date(now - usageRetentionMs), rows),
  // A transaction that began yesterday may still write the row of yesterday.
  ({ db }, now, rows) => deleteOldDeviceDays(db, new Date(now - dayMs), rows),
  ({ db }, now, rows) => deleteOldFailedReceipts(db, new Date(now - recordRetentionMs), rows),
  ({ db }, now, rows) => deleteOldGatewayMessages(db, new Date(now - recordRetentionMs), rows),
  ({ db }, now, rows) => deleteOldGatewayDays(db, new Date(now - usageRetentionMs), rows),
  ({ db }, now) =>
    deleteEndedSessions(db, {
      now: new Date(now),
      seenAfter: new Date(now - sessionIdleMs),
      createdAfter: new Date(now - sessionLifeMs),
    }),
  ({ db }, now) => deleteOldRates(db, new Date(now - recordRetentionMs)),
  ({ db }, now) => deleteOldGatewayTokens(db, new Date(now - recordRetentionMs)),
  ({ db }, now, rows) => deleteOldInvalidTokenNotices(db, new Date(now - noticeRetentionMs), rows),
  ({ db }, now, rows) => deleteOldTokens(db, new Date(now - updateTokenRetentionMs), rows),
  ({ db }, now, rows) => deleteOldClocks(db, new Date(now - recordRetentionMs), rows),
  ({ db }, now, rows) => deleteOldLoginLocks(db, new Date(now - loginRetentionMs), rows),
  ({ db }, now, limit) => {
    const { kept, keptMs } = webhookLimits;
    return deleteOldDeliveries(db, { before: new Date(now - keptMs), kept, limit });
  },
  ({ db }, now, rows) => deleteOldAudit(db, new Date(now - auditRetentionMs), rows),
  ...reportSweeps.map(
    (sweep) =>
      ({ db }: CleanerDeps, now: number, rows: number) =>
        sweep(db, new Date(now - reportRetentionMs), rows),
  ),
];

/**
 * Deletes rows after their retention (protocol/push-records.md#retention), at most `rows` of each
 * kind. A failed deletion does not stop the others. The first error is thrown at the end. Returns
 * the largest number of rows.
 */
export async function cleanOnce(deps: CleanerDeps, rows: number): Promise<number> {
  const now = deps.clock.now();
  let largestCount = 0;
  await forEachItem(deletions, async (remove) => {
    const deleted = await remove(deps, now, rows);
    if (typeof deleted === 'number') largestCount = Math.max(largestCount, deleted);
  });
  return largestCount;
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
  let largestCount = 0;
  await forEachItem(await listAppIds(db), async (appId) => {
    const app = await appCache.app(appId);
    if (!app) return;
    const now = clock.now();
    const before = new Date(now - app.options.installationValidityDays * dayMs);
    const walk = { appId, before, limit, now: new Date(now), nextAt: new Date(now + walkEveryMs) };
    largestCount = Math.max(largestCount, await continueIdleWalk(db, walk));
  });
  return largestCount;
}

/** More than a day, which is the longest window of a limit. */
const sendRetentionMs = 25 * hourMs;
/**
 * More than the window of the conversion rate, and more than the time that a breaker stays open.
 */
const conversionRetentionMs = 3 * hourMs;
/**
 * Retention of messages. They contain addresses and phone numbers, so they are kept only as long as
 * push records.
 */
const messageRetentionMs = 7 * 24 * hourMs;

/**
 * Deletes expired codes, captchas and links, messages after seven days, and counts outside of every
 * window. Deletes at most `limit` rows of each table. Returns the largest number of one table.
 */
export async function cleanVerification(db: Handle, nowMs: number, limit: number): Promise<number> {
  const now = new Date(nowMs);
  const before = (ageMs: number) => new Date(nowMs - ageMs);
  let largestCount = 0;
  const count = async (deleted: Promise<number>) => {
    largestCount = Math.max(largestCount, await deleted);
  };
  await forEachItem(
    [
      () => deleteOldConversions(db, before(conversionRetentionMs)),
      () => count(deleteExpiredCodes(db, now, limit)),
      () => count(deleteExpiredCaptchas(db, now, limit)),
      () => count(deleteExpiredLinks(db, now, limit)),
      () => count(deleteOldSends(db, before(sendRetentionMs), limit)),
      () => count(deleteOldMessages(db, before(messageRetentionMs), limit)),
    ],
    (remove) => remove(),
  );
  return largestCount;
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
  const tokens = await rewriteTokens(db, limit);
  let isMore = false;
  await forEachItem(await listAppIds(db), async (appId) => {
    const now = clock.now();
    const walk = { appId, now: new Date(now), nextAt: new Date(now + walkEveryMs) };
    if (await continueRegistrationWalk(db, walk)) isMore = true;
  });
  return isMore ? limit : tokens;
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
