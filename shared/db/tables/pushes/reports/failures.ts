import type { ConnectorId } from '../../../../domain/labels.ts';
import type { Outcome } from '../../../../domain/outcome.ts';
import type { Handle } from '../../../pool.ts';

/** Recipient that a push did not reach, or that its gateway rejected. */
export interface FailureRow {
  /** Internal key of the installation, also the position in the list. */
  installation: number;
  /** Public id of the installation; null where it was not kept. */
  objectId: string | null;
  connector: ConnectorId;
  outcome: Outcome;
  status: number;
  reason: string;
  at: Date;
}

export interface FailureFilter {
  connector?: string | undefined;
  outcome?: string | undefined;
  reason?: string | undefined;
}

interface PushKey {
  appId: string;
  id: number;
}

/** Lists the failures of a push in the order of its installations. */
export async function listFailurePage(
  db: Handle,
  { appId, id }: PushKey,
  { connector, outcome, reason }: FailureFilter,
  page: { after: number | null; limit: number },
): Promise<FailureRow[]> {
  const { rows } = await db.query<FailureRow>(
    `SELECT installation, object_id AS "objectId", connector, outcome, status, reason, created_at AS at
       FROM push_failure
      WHERE app_id = $1 AND push_id = $2 AND ($3::text IS NULL OR connector = $3)
        AND ($4::text IS NULL OR outcome = $4) AND ($5::text IS NULL OR reason = $5)
        AND ($6::bigint IS NULL OR installation > $6)
      ORDER BY installation LIMIT $7`,
    [appId, id, connector ?? null, outcome ?? null, reason ?? null, page.after, page.limit],
  );
  return rows;
}

/** Failures with one cause. */
export interface FailureGroup {
  connector: ConnectorId;
  outcome: Outcome;
  status: number;
  reason: string;
  n: number;
}

/** Counts the failures of a push by cause, the most frequent first. */
export async function summarizeFailures(
  db: Handle,
  { appId, id }: PushKey,
  limit: number,
): Promise<FailureGroup[]> {
  const { rows } = await db.query<FailureGroup>(
    `SELECT connector, outcome, status, reason, count(*) AS n FROM push_failure
      WHERE app_id = $1 AND push_id = $2 GROUP BY connector, outcome, status, reason
      ORDER BY n DESC, connector, outcome, reason, status LIMIT $3`,
    [appId, id, limit],
  );
  return rows;
}

/** Recipients that were settled within one step of a timeline. */
export interface TimelineSlot {
  connector: ConnectorId;
  slot: number;
  sent: number;
  other: number;
}

/** Returns when the first and the last batch of a push were settled; undefined before the first. */
export async function readSettledSpan(
  db: Handle,
  { appId, id }: PushKey,
): Promise<{ first: Date; last: Date } | undefined> {
  const { rows } = await db.query<{ first: Date | null; last: Date | null }>(
    'SELECT min(settled_at) AS first, max(settled_at) AS last FROM push_batch WHERE app_id = $1 AND push_id = $2',
    [appId, id],
  );
  const { first = null, last = null } = rows[0] ?? {};
  return first && last ? { first, last } : undefined;
}

/** Adds up the settled recipients of a push by connector and step. */
export async function readTimeline(
  db: Handle,
  { appId, id }: PushKey,
  { from, stepMs }: { from: Date; stepMs: number },
): Promise<TimelineSlot[]> {
  const { rows } = await db.query<TimelineSlot>(
    `SELECT b.connector, floor(extract(epoch FROM b.settled_at - $3::timestamptz) * 1000 / $4)::int AS slot,
            sum(t.value::bigint) FILTER (WHERE t.key = 'sent')::bigint AS sent,
            sum(t.value::bigint) FILTER (WHERE t.key <> 'sent')::bigint AS other
       FROM push_batch b, jsonb_each_text(b.totals) AS t
      WHERE b.app_id = $1 AND b.push_id = $2 AND b.totals IS NOT NULL AND b.settled_at >= $3
      GROUP BY b.connector, slot`,
    [appId, id, from, stepMs],
  );
  return rows;
}
