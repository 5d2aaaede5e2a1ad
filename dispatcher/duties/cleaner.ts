import { type Clock, dayMs } from '../../shared/clock.ts';
import type { Database } from '../../shared/db/pool.ts';
import { deleteOldUsage } from '../../shared/db/tables/apps/usage.ts';
import { deleteExpiredMessages } from '../../shared/db/tables/channel/messages.ts';
import { deleteOldAudit } from '../../shared/db/tables/console/audit.ts';
import { deleteEndedSessions } from '../../shared/db/tables/console/sessions.ts';
import { deleteOldGatewayDays } from '../../shared/db/tables/gateways/daily-use.ts';
import { deleteOldFailedReceipts } from '../../shared/db/tables/gateways/failed-receipts.ts';
import { deleteOldGatewayMessages } from '../../shared/db/tables/gateways/messages.ts';
import { deleteOldRates } from '../../shared/db/tables/gateways/rates.ts';
import { deleteOldGatewayTokens } from '../../shared/db/tables/gateways/tokens.ts';
import { deleteOldDeviceDays } from '../../shared/db/tables/installations/device-days.ts';
import { deleteOldInvalidTokenNotices } from '../../shared/db/tables/installations/invalid-notices.ts';
import { deleteOldRequestIds } from '../../shared/db/tables/pushes/request-ids.ts';
import { deleteOldPushes, deleteSurplusFailures } from '../../shared/db/tables/pushes/retention.ts';
import { deleteOldLoginLocks } from '../../shared/db/tables/users/login-locks.ts';
import { sessionIdleMs, sessionLifeMs } from '../../shared/domain/admin/operator.ts';
import type { Metrics } from '../../shared/metrics.ts';

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

/** Deletions of a pass. Those that are bounded return the number of rows; the others delete all in one pass. */
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
 * Deletes what is older than its retention (protocol/push-records.md#retention), at most `rows` of a kind. One that fails
 * delays no other; the first error is thrown at the end. Returns the largest number of rows.
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
