import { namesOfToken } from '../../../../domain/installations/identity.ts';
import type { DeviceTraits } from '../../../../domain/installations/installation.ts';
import { type Outcome, outcomeOfCode, retriedCode } from '../../../../domain/outcome.ts';
import type { Handle } from '../../../pool.ts';
import { holds } from '../../channel/inbox.ts';
import { localeExpression, traitColumns } from '../../installations/traits.ts';

/** Device of a push trace. */
export interface TracedDevice extends DeviceTraits {
  id: number;
  object_id: string;
  valid: boolean;
  time_zone: string | null;
  locale: string | null;
  created_at: Date;
  updated_at: Date;
}

/** Finds a device by its objectId, else its installationId or device token. */
export async function findDevice(db: Handle, appId: string, name: string): Promise<TracedDevice | undefined> {
  const { rows } = await db.query<TracedDevice>(
    `SELECT id, object_id, valid, time_zone, ${localeExpression} AS locale, created_at, updated_at, ${traitColumns}
       FROM installation WHERE app_id = $1 AND (object_id = $2 OR installation_id = $2 OR device_token = ANY($3))
      ORDER BY object_id = $2 DESC, (installation_id = $2) IS TRUE DESC LIMIT 1`,
    [appId, name, namesOfToken(name)],
  );
  return rows[0];
}

/**
 * Tests each of the conditions (SQL of the query compiler) on an installation; NULL counts as false.
 * Undefined if the installation is deleted.
 */
export async function testConditions(
  db: Handle,
  id: number,
  { conditions, values }: { conditions: string[]; values: unknown[] },
): Promise<boolean[] | undefined> {
  const tests = conditions.map((condition) => `(${condition}) IS TRUE`);
  const { rows } = await db.query<{ holds: boolean[] }>(
    `SELECT ARRAY[${tests.join(', ')}]::boolean[] AS holds FROM installation
      WHERE app_id = $1 AND id = $${values.length + 1}`,
    [...values, id],
  );
  return rows[0]?.holds;
}

/** Batch of a device, with the device's outcome. */
export interface TracedBatch {
  id: number;
  connector: string;
  profile: string;
  /** Translation that its recipients get; null: `data` as it is. */
  language: string | null;
  /** Quiet hours of its recipients (`quietRule`), and the end that they waited for; null for none. */
  quiet: string | null;
  quietUntil: Date | null;
  attempt: number;
  /** Unanswered requests to its recipients before this batch. */
  unanswered: number;
  /** Reason of the failure before this batch. */
  lastReason: string | null;
  isSettled: boolean;
  settledAt: Date | null;
  /** Null while it is open. */
  outcome: Outcome | null;
}

interface BatchRow {
  id: number;
  connector: string;
  profile: string;
  language: string | null;
  quiet: string | null;
  quiet_until: Date | null;
  attempt: number;
  unanswered: number;
  last_reason: string | null;
  is_settled: boolean;
  settled_at: Date | null;
  code: number | null;
}

/**
 * Finds the newest batch of a push that holds an installation; a retry is a batch of its own. Reads all batches of the
 * push without an index: a batch holds 1000 ids at most.
 */
export async function findBatchOfDevice(
  db: Handle,
  push: { appId: string; id: number },
  installation: number,
): Promise<TracedBatch | undefined> {
  const { rows } = await db.query<BatchRow>(
    `SELECT id, connector, profile, language, quiet, quiet_until, attempt, unanswered, last_reason, is_settled, settled_at,
            get_byte(settled, array_position(recipients, $3::bigint) - 1) AS code
       FROM push_batch WHERE app_id = $1 AND push_id = $2 AND recipients @> ARRAY[$3::bigint]
      ORDER BY attempt DESC, id DESC LIMIT 1`,
    [push.appId, push.id, installation],
  );
  return rows.map(
    (row): TracedBatch => ({
      id: row.id,
      connector: row.connector,
      profile: row.profile,
      language: row.language,
      quiet: row.quiet,
      quietUntil: row.quiet_until,
      attempt: row.attempt,
      unanswered: row.unanswered,
      lastReason: row.last_reason,
      isSettled: row.is_settled,
      settledAt: row.settled_at,
      outcome: row.code === null || row.code === retriedCode ? null : (outcomeOfCode(row.code) ?? null),
    }),
  )[0];
}

export interface TracedFailure {
  installation: number;
  objectId: string;
  connector: string;
  outcome: Outcome;
  status: number;
  reason: string;
  createdAt: Date;
}

/** Finds the failure of a device; by its public id also if the device was deleted for it. */
export async function findFailure(
  db: Handle,
  push: { appId: string; id: number },
  device: { id: number } | { objectId: string },
): Promise<TracedFailure | undefined> {
  const [column, value] =
    'id' in device ? (['installation', device.id] as const) : (['object_id', device.objectId] as const);
  const { rows } = await db.query<TracedFailure>(
    `SELECT installation, coalesce(object_id, '') AS "objectId", connector, outcome, status, reason,
            created_at AS "createdAt"
       FROM push_failure WHERE app_id = $1 AND push_id = $2 AND ${column} = $3 LIMIT 1`,
    [push.appId, push.id, value],
  );
  return rows[0];
}

/** Returns whether a message of a push is pending for a device of the channel; the acknowledgement deletes it. */
export async function hasPendingMessage(
  db: Handle,
  push: { appId: string; id: number },
  installation: number,
): Promise<boolean> {
  const { rowCount } = await db.query(
    `SELECT FROM channel_inbox WHERE app_id = $1 AND installation = $2 AND push_id = $3
     UNION ALL
     SELECT FROM channel_group g WHERE g.app_id = $1 AND g.push_id = $3 AND ${holds('$2::bigint')}`,
    [push.appId, installation, push.id],
  );
  return (rowCount ?? 0) > 0;
}
