import type { JsonObject } from '../../../../domain/json.ts';
import type { ConnectorId } from '../../../../domain/labels.ts';
import type { Outcome } from '../../../../domain/outcome.ts';
import type { Handle } from '../../../pool.ts';
import type { SqlCondition } from '../../installations/audience.ts';

/** Returns whether a failure meets a condition over `push_failure`. */
export async function hasFailure(db: Handle, { text, values }: SqlCondition): Promise<boolean> {
  const { rowCount } = await db.query(`SELECT FROM push_failure WHERE ${text} LIMIT 1`, values);
  return (rowCount ?? 0) > 0;
}

/** Failures with one cause: all of them, and those that a redrive leaves out. */
export interface RedrivableCause {
  connector: ConnectorId;
  outcome: Outcome;
  status: number;
  reason: string;
  n: number;
  /** Failures that a redrive has taken over. */
  redriven: number;
  /** Failures of recipients that may have the message. */
  unsure: number;
}

export interface RedrivableCounts {
  /** The most frequent causes. */
  causes: RedrivableCause[];
  n: number;
  redriven: number;
  unsure: number;
}

/** Counts selected failures, by cause and in all. The conditions are SQL over `push_failure` with the values of `selected`. */
export async function countRedrivable(
  tx: Handle,
  selected: SqlCondition,
  { taken, unsure, limit }: { taken: string; unsure: string; limit: number },
): Promise<RedrivableCounts> {
  const { rows } = await tx.query<RedrivableCause & { all: number; allRedriven: number; allUnsure: number }>(
    `SELECT *, sum(n) OVER ()::bigint AS "all", sum(redriven) OVER ()::bigint AS "allRedriven",
            sum(unsure) OVER ()::bigint AS "allUnsure"
       FROM (SELECT connector, outcome, status, reason, count(*) AS n, count(*) FILTER (WHERE ${taken}) AS redriven,
                    count(*) FILTER (WHERE NOT (${taken}) AND ${unsure}) AS unsure
               FROM push_failure WHERE ${selected.text} GROUP BY connector, outcome, status, reason) AS cause
      ORDER BY n DESC, connector, outcome, reason, status LIMIT ${limit}`,
    selected.values,
  );
  const causes = rows.map(({ connector, outcome, status, reason, n, redriven, unsure }) => ({
    connector,
    outcome,
    status,
    reason,
    n,
    redriven,
    unsure,
  }));
  const [first] = rows;
  return { causes, n: first?.all ?? 0, redriven: first?.allRedriven ?? 0, unsure: first?.allUnsure ?? 0 };
}

/** Push with recipients that it did not reach. */
export interface UndeliveredPush {
  id: number;
  objectId: string;
  state: string;
  /** `data` of the push. */
  msg: JsonObject;
  pushTime: Date;
  finishedAt: Date | null;
  failed: number;
  expired: number;
  capped: number;
  redriven: number;
}

const countOf = (outcome: string): string =>
  `(SELECT coalesce(sum((counts ->> '${outcome}')::bigint), 0)::bigint
      FROM jsonb_each(totals) AS t (connector, counts) WHERE $2::text IS NULL OR t.connector = $2)`;

/** Selection among the pushes of an app: finished from `from` on, accepted before `to`. */
export interface UndeliveredFilter {
  connector?: string | undefined;
  reason?: string | undefined;
  from?: Date | undefined;
  to?: Date | undefined;
}

/** Lists finished pushes with recipients that failed, expired or were capped, newest first. */
export async function listUndelivered(
  db: Handle,
  appId: string,
  { connector, reason, from, to }: UndeliveredFilter,
  page: { before: number | null; limit: number },
): Promise<UndeliveredPush[]> {
  const { rows } = await db.query<UndeliveredPush>(
    `SELECT id, "objectId", state, msg, "pushTime", "finishedAt", failed, expired, capped, redriven FROM (
       SELECT app_id, id, object_id AS "objectId", state, request -> 'data' AS msg, push_time AS "pushTime",
              finished_at AS "finishedAt", redriven,
              ${countOf('failed')} AS failed, ${countOf('expired')} AS expired, ${countOf('capped')} AS capped
         FROM notification
        WHERE app_id = $1 AND totals IS NOT NULL AND state IN ('done', 'failed')
          AND ($4::timestamptz IS NULL OR finished_at >= $4) AND ($5::timestamptz IS NULL OR created_at < $5)
          AND ($6::bigint IS NULL OR id < $6)) AS push
      WHERE failed + expired + capped > 0
        AND ($3::text IS NULL OR EXISTS (
              SELECT FROM push_failure f WHERE f.app_id = push.app_id AND f.push_id = push.id AND f.reason = $3
                 AND f.outcome IN ('failed', 'expired', 'capped') AND ($2::text IS NULL OR f.connector = $2)))
      ORDER BY id DESC LIMIT $7`,
    [appId, connector ?? null, reason ?? null, from ?? null, to ?? null, page.before, page.limit],
  );
  return rows;
}
