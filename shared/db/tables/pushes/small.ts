/** Statements of pushes to one device, many of them at a time. */
import type { ConnectorId } from '../../../domain/labels.ts';
import type { OutcomeTotals } from '../../../domain/outcome.ts';
import type { Push } from '../../../domain/pushes/record.ts';
import type { Handle } from '../../pool.ts';
import { prepare } from '../../prepared.ts';
import { today } from '../apps/usage.ts';
import type { ClosedPush } from './progress.ts';
import { type PushRow, pushColumns, toPush } from './pushes.ts';
import type { RecipientFailure } from './reports/recipient-failures.ts';

interface PushKey {
  appId: string;
  pushId: number;
}

const findStatement = prepare(
  `SELECT p.place, ${pushColumns} FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS p (app_id, id, place)
     JOIN notification n USING (app_id, id)`,
);

/** Reads pushes by key, in their order; undefined for one that was deleted. */
export async function findPushes(db: Handle, keys: readonly PushKey[]): Promise<(Push | undefined)[]> {
  const { rows } = await db.query<PushRow & { place: number }>(findStatement, [
    keys.map(({ appId }) => appId),
    keys.map(({ pushId }) => pushId),
  ]);
  const found: (Push | undefined)[] = new Array(keys.length).fill(undefined);
  for (const row of rows) found[row.place - 1] = toPush(row);
  return found;
}

/** A push that is planned in one step. */
export interface SmallPlan extends PushKey {
  /** Its only recipient and the route to it; null: no installation matches. */
  recipient: { id: number; connector: ConnectorId; profile: string } | null;
  /** Daily cap of the app that the recipient is charged to now; null: the gates charge it later. */
  cap: number | null;
}

/** A push that was planned in one step. */
export interface StartedPush {
  /** Its batch; null without a recipient. */
  batchId: number | null;
  /** Recipients that the daily cap grants; null: not charged yet. */
  granted: number | null;
}

/**
 * Moves queued pushes to `sending`, all planned, writes their batches without jobs and charges them to the daily caps of
 * their apps, as `advancePlanning`, `insertBatches` and `grantRecipients` do for one. Undefined for a push that another
 * planner has taken over, that was paused or stopped, or that a transaction has locked.
 */
export async function startSmallPushes(
  db: Handle,
  plans: readonly SmallPlan[],
): Promise<(StartedPush | undefined)[]> {
  const { rows } = await db.query<StartedPush & { place: number }>(startStatement, [
    plans.map(({ appId }) => appId),
    plans.map(({ pushId }) => pushId),
    plans.map(({ recipient }) => recipient?.id ?? null),
    plans.map(({ recipient }) => recipient?.connector ?? null),
    plans.map(({ recipient }) => recipient?.profile ?? null),
    plans.map(({ cap }) => cap),
  ]);
  const started: (StartedPush | undefined)[] = new Array(plans.length).fill(undefined);
  for (const { place, ...push } of rows) started[place - 1] = push;
  return started;
}

/** The rows of `usage_day` are locked in the order of apps, so that two such statements do not deadlock. */
const startStatement = prepare(`
  WITH plan AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::bigint[]) WITH ORDINALITY
             AS p (app_id, push_id, recipient, connector, profile, cap, place)),
  free AS MATERIALIZED (
    SELECT n.app_id, n.id FROM plan p JOIN notification n ON n.app_id = p.app_id AND n.id = p.push_id
     ORDER BY n.app_id, n.id FOR UPDATE OF n SKIP LOCKED),
  started AS (
    UPDATE notification n
       SET state = 'sending', planned_through = coalesce(p.recipient, 0), is_planned = true, updated_at = now(),
           devices = n.devices + CASE WHEN p.recipient IS NULL THEN 0 ELSE 1 END
      FROM plan p JOIN free f ON f.app_id = p.app_id AND f.id = p.push_id
     WHERE n.app_id = p.app_id AND n.id = p.push_id AND n.planned_through = 0 AND NOT n.is_planned
       AND n.state IN ('queued', 'sending')
    RETURNING p.*),
  charged AS MATERIALIZED (
    SELECT app_id, place, cap, row_number() OVER (PARTITION BY app_id ORDER BY place) AS number
      FROM started WHERE cap IS NOT NULL AND recipient IS NOT NULL),
  wanted AS MATERIALIZED (SELECT app_id, count(*) AS size, max(cap) AS cap FROM charged GROUP BY app_id),
  used AS (
    INSERT INTO usage_day AS u (app_id, day, recipients, last_grant)
    SELECT app_id, ${today}, least(size, cap), least(size, cap) FROM wanted ORDER BY app_id
    ON CONFLICT (app_id, day) DO UPDATE
       SET (recipients, last_grant) =
           (SELECT u.recipients + g.granted, g.granted
              FROM (SELECT greatest(0, least(w.size, w.cap - u.recipients)) AS granted
                      FROM wanted w WHERE w.app_id = u.app_id) AS g)
    RETURNING app_id, last_grant),
  batch AS (
    INSERT INTO push_batch (app_id, push_id, connector, profile, recipients, size, attempt, has_job, granted)
    SELECT s.app_id, s.push_id, s.connector, s.profile, ARRAY[s.recipient], 1, 0, false,
           CASE WHEN c.number <= u.last_grant THEN 1 WHEN c.number > u.last_grant THEN 0 END
      FROM started s LEFT JOIN charged c USING (app_id, place) LEFT JOIN used u USING (app_id)
     WHERE s.recipient IS NOT NULL
    RETURNING app_id, push_id, id, granted)
  SELECT s.place, b.id AS "batchId", b.granted
    FROM started s LEFT JOIN batch b USING (app_id, push_id)`);

/** End of a push to one device. */
export interface SmallEnd extends PushKey {
  /** Its batch and the result of that; null without a recipient. */
  batch: {
    id: number;
    connector: ConnectorId;
    profile: string;
    /** State of the recipient, one byte. */
    states: Buffer;
    totals: OutcomeTotals;
    failure: RecipientFailure | null;
    messageId: string | null;
  } | null;
  firstSentAt: Date | null;
}

export interface EndedPush {
  /** False: another take of the batch has settled it, or has moved its recipient to a retry batch. */
  isSettled: boolean;
  /** The push, if it is closed by this. */
  closed: ClosedPush | null;
}

/**
 * Settles the only batches of small pushes and closes these, with the reasons and message ids, as `settleBatch`,
 * `insertFailures`, `insertGatewayMessages` and `closeIfSettled` do for one. A push has no other batch, because
 * its recipient was not moved to a retry batch.
 */
export async function endSmallPushes(tx: Handle, ends: readonly SmallEnd[]): Promise<EndedPush[]> {
  const { rows } = await tx.query<{ place: number; created_at: Date | null; push_time: Date | null }>(
    endStatement,
    [JSON.stringify(ends.map(toColumns))],
  );
  const ended: EndedPush[] = ends.map(() => ({ isSettled: false, closed: null }));
  for (const { place, created_at: createdAt, push_time: pushTime } of rows)
    ended[place - 1] = { isSettled: true, closed: createdAt && pushTime && { createdAt, pushTime } };
  return ended;
}

const toColumns = ({ appId, pushId, batch, firstSentAt }: SmallEnd) => ({
  app_id: appId,
  push_id: pushId,
  first_sent_at: firstSentAt,
  batch_id: batch?.id,
  connector: batch?.connector,
  settled: batch?.states.toString('hex'),
  totals: batch?.totals,
  message_id: batch?.messageId,
  installation: batch?.failure?.installation,
  outcome: batch?.failure?.outcome,
  status: batch?.failure?.status,
  reason: batch?.failure?.reason,
  dead_ms: batch?.failure?.invalidAsOfMs,
  profile: batch?.profile,
  is_proof: batch?.failure?.isProof,
  form: batch?.failure?.form,
});

const endColumns = `app_id text, push_id bigint, first_sent_at timestamptz, batch_id bigint,
  connector text, settled text, totals jsonb, message_id text, installation bigint, outcome text, status int, reason text,
  dead_ms float8, profile text, is_proof boolean, form text`;

const endStatement = prepare(`
  WITH input AS MATERIALIZED (
    SELECT * FROM ROWS FROM (json_to_recordset($1) AS (${endColumns})) WITH ORDINALITY
             AS i (app_id, push_id, first_sent_at, batch_id, connector, settled, totals, message_id,
                   installation, outcome, status, reason, dead_ms, profile, is_proof, form, place)),
  settled AS (
    UPDATE push_batch b
       SET settled = decode(i.settled, 'hex'), totals = i.totals, is_settled = true, settled_at = now()
      FROM input i
     WHERE b.app_id = i.app_id AND b.id = i.batch_id AND NOT b.is_settled AND coalesce(cardinality(b.moved), 0) = 0
    RETURNING i.*),
  failed AS (
    INSERT INTO push_failure (app_id, push_id, connector, installation, object_id, outcome, status, reason, dead_as_of,
                              profile, is_proof, form)
    SELECT s.app_id, s.push_id, s.connector, s.installation,
           (SELECT d.object_id FROM installation d WHERE d.app_id = s.app_id AND d.id = s.installation),
           s.outcome, s.status, s.reason, to_timestamp(s.dead_ms / 1000.0), s.profile, s.is_proof, s.form
      FROM settled s WHERE s.installation IS NOT NULL ON CONFLICT DO NOTHING),
  told AS (
    INSERT INTO gateway_message (app_id, push_id, batch_id, connector, message_id, devices)
    SELECT app_id, push_id, batch_id, connector, message_id, 1 FROM settled WHERE message_id IS NOT NULL),
  ended AS (SELECT * FROM settled UNION ALL SELECT * FROM input WHERE batch_id IS NULL),
  closed AS (
    UPDATE notification n
       SET state = 'done', finished_at = now(), updated_at = now(), repeats = 0,
           first_sent_at = coalesce(n.first_sent_at, e.first_sent_at),
           totals = CASE WHEN e.batch_id IS NULL THEN '{}' ELSE jsonb_build_object(e.connector, e.totals) END,
           error = CASE WHEN e.installation IS NOT NULL THEN format('%s: %s (1)', e.connector, e.reason) END
      FROM ended e
     WHERE n.app_id = e.app_id AND n.id = e.push_id AND n.state IN ('sending', 'paused') AND n.is_planned
       AND n.devices = CASE WHEN e.batch_id IS NULL THEN 0 ELSE 1 END
    RETURNING e.place, n.created_at, n.push_time)
  SELECT e.place, c.created_at, c.push_time FROM ended e LEFT JOIN closed c USING (place)`);
