import { type Clock, dayMs, hourMs } from '../../shared/clock.ts';
import type { Database, Handle } from '../../shared/db/pool.ts';
import { listAppIds } from '../../shared/db/tables/apps.ts';
import {
  deleteExpiredMessages,
  displaceOldest,
  findCrowdedInboxes,
  firstInbox,
  type InboxPlace,
} from '../../shared/db/tables/channel-messages.ts';
import { deleteEndedSessions, deleteOldAudit } from '../../shared/db/tables/console.ts';
import { deleteOldGatewayDays, deleteOldRates } from '../../shared/db/tables/gateway-limits.ts';
import { deleteOldGatewayTokens } from '../../shared/db/tables/gateways.ts';
import {
  continueIdleWalk,
  continueRegistrationWalk,
  rewriteTokens,
} from '../../shared/db/tables/installations.ts';
import { deleteOldInvalidTokenNotices } from '../../shared/db/tables/invalid-tokens.ts';
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
import {
  deleteExpiredCaptchas,
  deleteExpiredCodes,
  deleteExpiredLinks,
  deleteOldLoginLocks,
} from '../../shared/db/tables/sign-in.ts';
import { deleteOldConversions, deleteOldSends } from '../../shared/db/tables/sms.ts';
import { deleteOldUsage } from '../../shared/db/tables/usage.ts';
import { sessionIdleMs, sessionLifeMs } from '../../shared/domain/admin/operator.ts';
import type { Metrics } from '../../shared/metrics.ts';
import type { DispatcherDeps } from '../deps.ts';

const recordRetentionMs = 7 * dayMs;
/** Failures that an app keeps, the newest ones: about 2 GB. */
const keptFailures = 10_000_000;
const requestRetentionMs = 10 * 60_000;
/** Failures count for 15 minutes, and lock for as long (protocol/users.md#account-lock). */
const loginRetentionMs = 35 * 60_000;
/** A gateway's notice of an invalid token waits this long for the next push to the device. */
const noticeRetentionMs = 30 * dayMs;
/** More than a year, so that a bill can be written after the end of a year. */
const usageRetentionMs = 400 * dayMs;
/** As long as usage: an audit of a year is possible after its end. */
const auditRetentionMs = 400 * dayMs;

interface CleanerDeps {
  db: Database;
  clock: Clock;
  metrics: Pick<Metrics, 'channelMessages'>;
}

/**
 * Deletions of a pass. Those that are bounded return the number of rows; the others delete all in
 * one pass.
 */
const deletions: ((deps: CleanerDeps, now: number, rows: number) => Promise<unknown>)[] = [
  ({ db }, now, rows) => deleteOldPushes(db, new Date(now - recordRetentionMs), rows),
  ({ db }) => deleteSurplusFailures(db, { most: keptFailures }),
  ({ db, metrics }, now, rows) =>
    deleteExpiredMessages(db, new Date(now), rows, (expired) =>
      metrics.channelMessages.inc({ event: 'expired' }, expired),
    ),
  ({ db }, now) => deleteOldRequestIds(db, new Date(now - requestRetentionMs)),
  ({ db }, now, rows) => deleteOldUsage(db, new Date(now - usageRetentionMs), rows),
  // The day of yesterday may still be written by a transaction that began in it.
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
  ({ db }, now, rows) => deleteOldLoginLocks(db, new Date(now - loginRetentionMs), rows),
  ({ db }, now, rows) => deleteOldAudit(db, new Date(now - auditRetentionMs), rows),
];

/**
 * Deletes what is older than its retention (protocol/push-records.md#retention), at most `rows` of
 * a kind. One that fails delays no other; the first error is thrown at the end. Returns the largest
 * number of rows.
 */
export async function cleanOnce(deps: CleanerDeps, rows: number): Promise<number> {
  const now = deps.clock.now();
  let most = 0;
  const errors: unknown[] = [];
  for (const remove of deletions) {
    try {
      const deleted = await remove(deps, now, rows);
      if (typeof deleted === 'number') most = Math.max(most, deleted);
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
  return most;
}

/** Interval of walks over the installations of a large app: each walk reads them all. */
const walkEveryMs = dayMs;

/**
 * Deletes installations that were neither updated nor imported within their app's validity
 * (protocol/installations.md#idle-installations), at most `limit` per app and pass; returns the
 * largest number of one app, or `limit` where a walk goes on.
 */
export async function deleteIdle(
  { db, appCache, clock }: DispatcherDeps,
  limit: number,
): Promise<number> {
  let most = 0;
  for (const appId of await listAppIds(db)) {
    const app = await appCache.app(appId);
    if (!app) continue;
    const now = clock.now();
    const before = new Date(now - app.options.installationValidityDays * dayMs);
    const walk = { appId, before, limit, now: new Date(now), nextAt: new Date(now + walkEveryMs) };
    most = Math.max(most, await continueIdleWalk(db, walk));
  }
  return most;
}

/** More than a day, the longest window of a limit. */
const sendRetentionMs = 25 * hourMs;
/** More than the window of the conversion rate, and than the time that a breaker stays open. */
const conversionRetentionMs = 3 * hourMs;
/** Retention of messages, which contain addresses and numbers: the same as of push records. */
const messageRetentionMs = 7 * 24 * hourMs;

/**
 * Deletes expired codes, captchas and links, messages after seven days, and counts outside every
 * window; at most `limit` rows of each table. Returns the largest number that it deleted from one
 * table.
 */
export async function cleanVerification(db: Handle, nowMs: number, limit: number): Promise<number> {
  const now = new Date(nowMs);
  const before = (ageMs: number) => new Date(nowMs - ageMs);
  await deleteOldConversions(db, before(conversionRetentionMs));
  return Math.max(
    await deleteExpiredCodes(db, now, limit),
    await deleteExpiredCaptchas(db, now, limit),
    await deleteExpiredLinks(db, now, limit),
    await deleteOldSends(db, before(sendRetentionMs), limit),
    await deleteOldMessages(db, before(messageRetentionMs), limit),
  );
}

/**
 * Leaves one installation of each device (`tables/installations.ts`), at most `limit`
 * tokens and a page of each app at a time. Returns `limit` if there is more to do, else the number
 * of tokens.
 */
export async function mergeDevices(
  { db, clock }: Pick<DispatcherDeps, 'db' | 'clock'>,
  limit: number,
): Promise<number> {
  const tokens = await rewriteTokens(db, limit);
  let isMore = false;
  for (const appId of await listAppIds(db)) {
    const now = clock.now();
    const walk = { appId, now: new Date(now), nextAt: new Date(now + walkEveryMs) };
    if (await continueRegistrationWalk(db, walk)) isMore = true;
  }
  return isMore ? limit : tokens;
}

/** Inbox rows that one pass reads: 10 ms of the database. */
const rowsPerPass = 20_000;

interface InboxLimitDeps {
  db: Database;
  metrics: Pick<Metrics, 'channelMessages'>;
}

/**
 * Walks over all inboxes and drops the oldest messages of those over their limit
 * (protocol/channel.md#channel-limits). A check at each new message would cost a third of storing
 * it.
 */
export class InboxLimit {
  #next: InboxPlace = firstInbox;

  /**
   * Reads the next rows, from the beginning again after the last; returns the number of dropped
   * messages.
   */
  async run({ db, metrics }: InboxLimitDeps, rows = rowsPerPass): Promise<number> {
    const { installations, next } = await findCrowdedInboxes(db, this.#next, rows);
    this.#next = next ?? firstInbox;
    let displaced = 0;
    for (const [appId, inboxes] of installations)
      displaced += await displaceOldest(db, appId, inboxes);
    metrics.channelMessages.inc({ event: 'displaced' }, displaced);
    return displaced;
  }
}
