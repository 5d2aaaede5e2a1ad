import { minuteMs } from '../../shared/clock.ts';
import { forEachItem } from '../../shared/db/outage.ts';
import { listAppIds } from '../../shared/db/tables/apps.ts';
import {
  claimReports,
  writeInstallationDay,
  writePushDays,
} from '../../shared/db/tables/reports.ts';
import type { DispatcherDeps } from '../deps.ts';

/** Interval at which the totals of an app are computed. Reports are at most this old. */
const reportEveryMs = 15 * minuteMs;
/**
 * Timeout of a statement. It reads all records of the app of six days, and once a day all
 * installations.
 */
const statementTimeoutMs = 5 * minuteMs;

/** Computes the totals by day of the apps whose turn it is (protocol/admin-api.md#reports). */
export async function computeReports({
  db,
  clock,
}: Pick<DispatcherDeps, 'db' | 'clock'>): Promise<void> {
  await forEachItem(await listAppIds(db), async (appId) => {
    const nextAt = new Date(clock.now() + reportEveryMs);
    if (!(await claimReports(db, appId, nextAt))) return;
    await db.transaction((tx) => writePushDays(tx, appId), { statementTimeoutMs });
    await db.transaction((tx) => writeInstallationDay(tx, appId), { statementTimeoutMs });
  });
}
