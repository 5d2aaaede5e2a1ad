import type { JsonObject } from '../../domain/json.ts';
import type { ConnectorId } from '../../domain/labels.ts';
import type { Outcome } from '../../domain/outcome.ts';
import type { Handle } from '../pool.ts';
import { prepare } from '../prepared.ts';
import { type PageAfter, type PageBefore, query, reasonTextSql } from '../query.ts';
import { AppStatement } from '../sharding.ts';
import type { SqlCondition } from './audience.ts';
import type { PushKey } from './pushes.ts';

/** A recipient that a push did not reach, or that its gateway rejected. */
interface FailureRow {
  /** Internal id of the installation, which is also the position in the list. */
  installation: number;
  /** Public id of the installation; null if it was not stored. */
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

/** Lists the failures of a push in the order of its installations. */
export const listFailurePage = (
  db: Handle,
  { appId, id }: PushKey,
  { connector, outcome, reason }: FailureFilter,
  page: PageAfter,
) =>
  query(db).rows<FailureRow>(
    `SELECT installation, object_id AS "objectId", connector, outcome, status, reason,
      created_at AS at
       FROM push_failure
      WHERE app_id = $1 AND push_id = $2 AND ($3::text IS NULL OR connector = $3)
        AND ($4::text IS NULL OR outcome = $4) AND ($5::text IS NULL OR ${reasonTextSql()} = $5)
        AND ($6::bigint IS NULL OR installation > $6)
      ORDER BY installation LIMIT $7`,
    [appId, id, connector, outcome, reason, page.after, page.limit],
  );

/** Failures with the same cause. */
export interface FailureGroup {
  connector: ConnectorId;
  outcome: Outcome;
  status: number;
  reason: string;
  n: number;
}

/** Counts the failures of a push by cause, the most frequent first. */
export const summarizeFailures = (db: Handle, { appId, id }: PushKey, limit: number) =>
  query(db).rows<FailureGroup>(
    `SELECT connector, outcome, status, max(reason) AS reason, count(*) AS n FROM push_failure
      WHERE app_id = $1 AND push_id = $2 GROUP BY connector, outcome, status, ${reasonTextSql()}
      ORDER BY n DESC, connector, outcome, reason, status LIMIT $3`,
    [appId, id, limit],
  );

/** Returns when the first and the last batch of a push were settled. Undefined before the first. */
export async function readSettledSpan(
  db: Handle,
  { appId, id }: PushKey,
): Promise<{ first: Date; last: Date } | undefined> {
  const { first, last } = await query(db).one<{ first: Date | null; last: Date | null }>(
    'SELECT min(settled_at) AS first, max(settled_at) AS last FROM push_batch WHERE app_id = $1 AND push_id = $2',
    [appId, id],
  );
  return first && last ? { first, last } : undefined;
}

/** Sums the settled recipients of a push by connector and time step. */
export const readTimeline = (
  db: Handle,
  { appId, id }: PushKey,
  { from, stepMs }: { from: Date; stepMs: number },
) =>
  query(db).rows<{ connector: ConnectorId; slot: number; sent: number; other: number }>(
    `SELECT b.connector,
            floor(extract(epoch FROM b.settled_at - $3::timestamptz) * 1000 / $4)::int AS slot,
            sum(t.value::bigint) FILTER (WHERE t.key = 'sent')::bigint AS sent, sum(t.value::bigint)
            FILTER (WHERE t.key <> 'sent')::bigint AS other
       FROM push_batch b, jsonb_each_text(b.totals) AS t
      WHERE b.app_id = $1 AND b.push_id = $2 AND b.totals IS NOT NULL AND b.settled_at >= $3
      GROUP BY b.connector, slot`,
    [appId, id, from, stepMs],
  );

/**
 * Members of a batch that its failures need. `unanswered`: number of requests to its recipients
 * that got no answer.
 */
export interface FailedBatch {
  appId: string;
  pushId: number;
  connector: string;
  profile: string;
  unanswered: number;
}

/** Failure of one recipient. Contains ids, never a token. */
export interface RecipientFailure {
  installation: number;
  outcome: Outcome;
  status: number;
  reason: string;
  /** If the gateway reported the token as invalid, the installation's `updated_at` in epoch ms. */
  invalidAsOfMs?: number | null;
  /**
   * Form of an invalid token, and whether the answer proves that it is invalid (`AttemptResult`).
   */
  isProof?: boolean;
  form?: string | undefined;
}

/** Failures of one batch. */
export interface BatchFailures {
  batch: FailedBatch;
  failures: readonly RecipientFailure[];
}

/** Writes failures. A recipient has at most one failure per push. */
export async function insertFailures(tx: Handle, list: readonly BatchFailures[]): Promise<void> {
  const rows = list.flatMap(({ batch, failures }) => rowsOf(batch, failures));
  await insertStatement.run(tx, rows, (part) => [JSON.stringify(part)]);
}

/**
 * Returns `INSERT INTO push_failure SELECT … FROM`. `parameter` is the number of the parameter with
 * the JSON list of `failuresText`. `andApp`: condition that names the app of the table `i`.
 */
export const insertFailuresSql = (
  parameter: number,
  andApp: string,
): string => `INSERT INTO push_failure (app_id, push_id, connector, installation, object_id,
                               outcome, status, reason, dead_as_of, is_unsure, profile, is_proof,
                               form)
     SELECT f."appId", f."pushId", f.connector, f.installation,
            (SELECT i.object_id FROM installation i WHERE i.app_id = f."appId"
              AND i.id = f.installation${andApp}),
            f.outcome, f.status, f.reason, to_timestamp(f."invalidAsOfMs" / 1000.0),
            f.unanswered > 0, f.profile, nullif(f."isProof", false), f.form
       FROM json_to_recordset($${parameter}) AS f (
         "appId" text, "pushId" bigint, connector text, installation bigint, outcome text,
         status int, reason text, "invalidAsOfMs" float8, unanswered int, profile text,
         "isProof" boolean, form text)`;

const insertStatement = new AppStatement(
  2,
  (andApp) => `${insertFailuresSql(1, andApp('i'))} ON CONFLICT DO NOTHING`,
);

/** Returns the parameter with the failures of a batch. */
export const failuresText = (batch: FailedBatch, failures: readonly RecipientFailure[]): string =>
  JSON.stringify(rowsOf(batch, failures));

function rowsOf(
  { appId, pushId, connector, profile, unanswered }: FailedBatch,
  failures: readonly RecipientFailure[],
) {
  const ofBatch = { appId, pushId, connector, profile, unanswered };
  return failures.map((failure) => ({ ...ofBatch, ...failure }));
}

/** Returns whether a failure meets a condition on `push_failure`. */
export const hasFailure = (db: Handle, { text, values }: SqlCondition) =>
  query(db).hasRows(`SELECT FROM push_failure WHERE ${text} LIMIT 1`, values);

/** Failures with one cause: their number, and the numbers that a redrive omits. */
interface RedrivableCause extends FailureGroup {
  /** Failures that another redrive already covers. */
  redriven: number;
  /** Failures of recipients that may have received the message. */
  unsure: number;
}

interface RedrivableCounts {
  /** The most frequent causes. */
  causes: RedrivableCause[];
  n: number;
  redriven: number;
  unsure: number;
}

/**
 * Counts selected failures, by cause and in total. `redriven` and `unsure` are SQL conditions on
 * `push_failure` that use the values of `selected`.
 */
export async function countRedrivable(
  tx: Handle,
  selected: SqlCondition,
  { redriven, unsure, limit }: { redriven: string; unsure: string; limit: number },
): Promise<RedrivableCounts> {
  const rows = await query(tx).rows<
    RedrivableCause & { all: number; allRedriven: number; allUnsure: number }
  >(
    `SELECT *, sum(n) OVER ()::bigint AS "all", sum(redriven) OVER ()::bigint AS "allRedriven",
            sum(unsure) OVER ()::bigint AS "allUnsure"
       FROM (SELECT connector, outcome, status, max(reason) AS reason, count(*) AS n,
                    count(*) FILTER (WHERE ${redriven}) AS redriven,
                    count(*) FILTER (WHERE NOT (${redriven}) AND ${unsure}) AS unsure
               FROM push_failure WHERE ${selected.text}
              GROUP BY connector, outcome, status, ${reasonTextSql()}) AS cause
      ORDER BY n DESC, connector, outcome, reason, status LIMIT ${limit}`,
    selected.values,
  );
  const causes = rows.map(
    ({ all: _all, allRedriven: _redriven, allUnsure: _unsure, ...cause }) => cause,
  );
  const { all: n, allRedriven, allUnsure } = rows[0] ?? { all: 0, allRedriven: 0, allUnsure: 0 };
  return { causes, n, redriven: allRedriven, unsure: allUnsure };
}

/** A push with recipients that it did not reach. */
export interface UndeliveredPush {
  id: number;
  objectId: string;
  state: string;
  /** Internal name of the push; null without one. */
  campaign: string | null;
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

/** Filter of an app's pushes: finished from `from` on, accepted before `to`. */
interface UndeliveredFilter {
  connector?: string | undefined;
  reason?: string | undefined;
  from?: Date | undefined;
  to?: Date | undefined;
}

/**
 * Lists finished pushes with recipients that failed, expired or were capped, newest first. Recalls
 * and Live Activity pushes are left out, because they cannot be redriven.
 */
export const listUndelivered = (
  db: Handle,
  appId: string,
  { connector, reason, from, to }: UndeliveredFilter,
  page: PageBefore,
) =>
  query(db).rows<UndeliveredPush>(
    `SELECT id, "objectId", state, campaign, msg, "pushTime", "finishedAt", failed, expired, capped, redriven
      FROM (
       SELECT app_id, id, object_id AS "objectId", state,
              request ->> 'campaign' AS campaign, request -> 'data' AS msg,
              push_time AS "pushTime", finished_at AS "finishedAt", redriven,
              ${countOf('failed')} AS failed, ${countOf('expired')} AS expired,
              ${countOf('capped')} AS capped
         FROM notification
        WHERE app_id = $1 AND totals IS NOT NULL AND state IN ('done', 'failed')
          AND recall_of IS NULL AND NOT request ? 'liveActivity'
          AND ($4::timestamptz IS NULL OR finished_at >= $4)
            AND ($5::timestamptz IS NULL OR created_at < $5)
          AND ($6::bigint IS NULL OR id < $6)) AS push
      WHERE failed + expired + capped > 0
        AND ($3::text IS NULL OR EXISTS (
              SELECT FROM push_failure f
               WHERE f.app_id = push.app_id AND f.push_id = push.id
                 AND ${reasonTextSql('f.reason')} = $3
                 AND f.outcome IN ('failed', 'expired', 'capped')
                   AND ($2::text IS NULL OR f.connector = $2)))
      ORDER BY id DESC LIMIT $7`,
    [appId, connector, reason, from, to, page.before, page.limit],
  );

/**
 * Locks the push first, as its deletion does, and rows in the order of ids, so that two redrives
 * cannot deadlock.
 */
const claimStatement = prepare(
  `WITH push AS MATERIALIZED (
     SELECT id FROM notification WHERE app_id = $1 AND id = $2 FOR NO KEY UPDATE),
   own AS MATERIALIZED (
     SELECT installation FROM push_failure
      WHERE app_id = $1 AND push_id = (SELECT id FROM push)
        AND installation = ANY($4::bigint[]) AND redriven_by IS NULL
      ORDER BY installation FOR UPDATE),
   claimed AS (
     UPDATE push_failure f SET redriven_by = $3 FROM own
      WHERE f.app_id = $1 AND f.push_id = $2 AND f.installation = own.installation
     RETURNING f.installation),
   counted AS (
     UPDATE notification SET redriven = redriven + (SELECT count(*) FROM claimed) WHERE app_id = $1
       AND id = $2)
   SELECT installation FROM claimed`,
);

/**
 * Assigns failures of a push to a redrive (`id`). Each failure is assigned to one redrive only. The
 * record of the push counts the assigned failures. Returns the assigned installations.
 */
export function claimFailures(
  tx: Handle,
  { appId, id, failedId }: PushKey & { failedId: number },
  installations: readonly number[],
): Promise<number[]> {
  const values = [appId, failedId, id, `{${installations.join(',')}}`];
  return query(tx).column(claimStatement, values);
}

/** A push that also sends to recipients of the locked push. */
export interface RivalPush {
  objectId: string;
  /** False if a process before 0.4.0 sent it. Such a process did not record the recipients. */
  isRedrive: boolean;
}

/**
 * Locks a push until `tx` ends. Returns another push that prevents a redrive: a push that is not
 * planned yet, so that its recipients are unknown, or a push of a version before 0.4.0.
 */
export async function lockForRedrive(
  tx: Handle,
  { appId, id }: PushKey,
  objectId: string,
): Promise<RivalPush | undefined> {
  await tx.query('SELECT FROM notification WHERE app_id = $1 AND id = $2 FOR UPDATE', [appId, id]);
  return query(tx).row(
    `SELECT object_id AS "objectId", redrive_of IS NOT NULL AS "isRedrive" FROM notification
      WHERE app_id = $1 AND object_id <> $3
        AND ((redrive_of = $2 AND NOT is_planned
          AND state IN ('scheduled', 'queued', 'sending', 'paused'))
          OR (redrive_of IS NULL
              AND object_id = (SELECT resent_as FROM notification WHERE app_id = $1 AND id = $2)))
      LIMIT 1`,
    [appId, id, objectId],
  );
}

const maxRedrives = 100;

/** Lists the redrives of a push, newest first. */
export const listRedrives = (db: Handle, { appId, id }: PushKey) =>
  query(db).column<string>(
    `SELECT object_id AS "objectId" FROM notification WHERE app_id = $1 AND redrive_of = $2
      ORDER BY id DESC LIMIT ${maxRedrives}`,
    [appId, id],
  );
