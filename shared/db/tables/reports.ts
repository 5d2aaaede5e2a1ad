import type { Handle } from '../pool.ts';
import { query, reasonTextSql, sweepOf } from '../query.ts';
import { today, utcDay } from './usage.ts';

/**
 * Totals by day of an app, which outlive the records of its pushes. They are computed again while
 * the records exist, because receipts arrive late.
 */

/** Days whose records all exist: records are kept for seven days after their end. */
const wholeDays = 6;
/** Most frequent reasons that are kept of a connector and day. */
const maxReasons = 50;
/** Maximum platforms of a day. Clients choose their device types. */
const maxPlatforms = 50;

/**
 * Returns whether the totals of an app are due, and sets the next time. Of several dispatchers, one
 * gets the turn.
 */
export async function claimReports(db: Handle, appId: string, nextAt: Date): Promise<boolean> {
  await db.query(
    `INSERT INTO report_walk (app_id) SELECT app_id FROM app WHERE app_id = $1
     ON CONFLICT DO NOTHING`,
    [appId],
  );
  return query(db).hasRows(
    'UPDATE report_walk SET next_at = $2 WHERE app_id = $1 AND next_at <= now() RETURNING app_id',
    [appId, nextAt],
  );
}

const endDay = `(n.finished_at AT TIME ZONE 'UTC')::date`;
const ended = `n.app_id = $1 AND n.state = 'done' AND n.totals IS NOT NULL
  AND n.finished_at >= (${today} - ${wholeDays - 1})::timestamp AT TIME ZONE 'UTC'`;
const classOf = `coalesce(n.request ->> 'messageClass', n.request ->> 'kind', '')`;

const receipt = (name: string, column: string, comparison: string) =>
  `SELECT app_id, push_id, connector, '${name}' AS outcome, ${column} AS n FROM push_receipt_total
    WHERE app_id = $1 AND connector ${comparison} 'app' AND ${column} > 0`;

/**
 * Computes the totals of the last days again. The number of a reason never falls: above the limit
 * of an app, its oldest failures are deleted while their day is still computed again.
 */
export async function writePushDays(tx: Handle, appId: string): Promise<void> {
  await tx.query(
    `INSERT INTO push_day (app_id, day, connector, class, outcome, n)
     SELECT n.app_id, ${endDay}, t.connector, ${classOf}, o.outcome, sum(o.n::bigint)
       FROM notification n, jsonb_each(n.totals) AS t (connector, counts),
            jsonb_each_text(t.counts) AS o (outcome, n)
      WHERE ${ended} GROUP BY 1, 2, 3, 4, 5
     UNION ALL
     SELECT n.app_id, ${endDay}, '', ${classOf}, 'pushes', count(*)
       FROM notification n WHERE ${ended} GROUP BY 1, 2, 4
     UNION ALL
     SELECT n.app_id, ${endDay}, r.connector, ${classOf}, r.outcome, sum(r.n)
       FROM notification n JOIN (
         ${receipt('delivered', 'delivered', '<>')} UNION ALL
         ${receipt('clicked', 'clicked', '<>')} UNION ALL
         ${receipt('received', 'delivered', '=')} UNION ALL
         ${receipt('opened', 'clicked', '=')} UNION ALL
         ${receipt('dismissed', 'dismissed', '=')}) AS r
         ON r.app_id = n.app_id AND r.push_id = n.id
      WHERE ${ended} GROUP BY 1, 2, 3, 4, 5
     ON CONFLICT (app_id, day, connector, class, outcome) DO UPDATE SET n = excluded.n`,
    [appId],
  );
  await tx.query(
    `INSERT INTO reason_day AS d (app_id, day, connector, reason, sample, n)
     SELECT app_id, day, connector, reason, sample, n FROM (
       SELECT n.app_id, ${endDay} AS day, f.connector, ${reasonTextSql('f.reason')} AS reason,
              max(f.reason) AS sample, count(*) AS n,
              row_number() OVER (PARTITION BY ${endDay}, f.connector ORDER BY count(*) DESC) AS place
         FROM notification n JOIN push_failure f ON f.app_id = n.app_id AND f.push_id = n.id
        WHERE ${ended} GROUP BY 1, 2, 3, 4) AS counted
      WHERE place <= ${maxReasons}
     ON CONFLICT (app_id, day, connector, reason) DO UPDATE
        SET n = greatest(d.n, excluded.n), sample = excluded.sample`,
    [appId],
  );
}

/** Counts the valid installations of an app by platform, once a day. */
export async function writeInstallationDay(tx: Handle, appId: string): Promise<void> {
  const isWritten = await query(tx).hasRows(
    `SELECT FROM installation_day WHERE app_id = $1 AND day = ${today}`,
    [appId],
  );
  if (isWritten) return;
  await tx.query(
    `INSERT INTO installation_day (app_id, day, platform, n)
     SELECT app_id, ${today}, coalesce(nullif(vendor, ''), device_type), count(*)
       FROM installation WHERE app_id = $1 AND valid GROUP BY 1, 3
      ORDER BY 4 DESC LIMIT ${maxPlatforms}
     ON CONFLICT DO NOTHING`,
    [appId],
  );
}

/** Days of a report (`YYYY-MM-DD`, UTC, both included), and a narrower selection. */
export interface ReportRange {
  from: string;
  to: string;
  connector: string | null;
  /** Message class; an empty text selects pushes without a class. */
  class: string | null;
}

/** Recipients of a day, connector and class with one outcome. */
export interface DayTotal {
  day: string;
  connector: string;
  class: string;
  outcome: string;
  n: number;
}

const ofRange = 'app_id = $1 AND day BETWEEN $2::date AND $3::date';

/** Lists totals, oldest day first. */
export const listDayTotals = (db: Handle, appId: string, range: ReportRange) =>
  query(db).rows<DayTotal>(
    `SELECT day::text AS day, connector, class, outcome, n FROM push_day
      WHERE ${ofRange} AND ($4::text IS NULL OR connector IN ($4, '')) AND ($5::text IS NULL OR class = $5)
      ORDER BY day, connector, class, outcome`,
    [appId, range.from, range.to, range.connector, range.class],
  );

/** Lists the most frequent reasons of failures. */
export const listTopReasons = (
  db: Handle,
  appId: string,
  { from, to, connector }: ReportRange,
  limit: number,
) =>
  query(db).rows<{ connector: string; reason: string; sample: string; n: number }>(
    `SELECT connector, reason, max(sample) AS sample, sum(n)::bigint AS n FROM reason_day
      WHERE ${ofRange} AND ($4::text IS NULL OR connector = $4)
      GROUP BY connector, reason ORDER BY n DESC, connector, reason LIMIT $5`,
    [appId, from, to, connector, limit],
  );

/** Lists the installations by platform, oldest day first. */
export const listInstallationDays = (db: Handle, appId: string, { from, to }: ReportRange) =>
  query(db).rows<{ day: string; platform: string; n: number }>(
    `SELECT day::text AS day, platform, n FROM installation_day WHERE ${ofRange}
      ORDER BY day, platform`,
    [appId, from, to],
  );

const sweepDays = (table: string, key: string[]) =>
  sweepOf({ table, key: ['app_id', 'day', ...key], column: 'day', bound: utcDay });

/** Deletes totals of days before a time. */
export const reportSweeps = [
  sweepDays('push_day', ['connector', 'class', 'outcome']),
  sweepDays('reason_day', ['connector', 'reason']),
  sweepDays('installation_day', ['platform']),
];
