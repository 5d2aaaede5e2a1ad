import type { Outcome } from '../../../../domain/outcome.ts';
import type { Handle } from '../../../pool.ts';

/** What failures of a batch need of it. `unanswered`: requests to its recipients that got no answer. */
export interface FailedBatch {
  appId: string;
  pushId: number;
  connector: string;
  profile: string;
  unanswered: number;
}

/** Failure of one recipient. Holds ids, never a token. */
export interface RecipientFailure {
  installation: number;
  outcome: Outcome;
  status: number;
  reason: string;
  /** The installation's `updated_at` in epoch ms if the gateway reported its token invalid, else null. */
  invalidAsOfMs: number | null;
  /** Of an invalid token: whether the answer proves its end, and its form (`AttemptResult`). */
  isProof?: boolean;
  form?: string | undefined;
}

export async function insertFailures(
  tx: Handle,
  batch: FailedBatch,
  failures: RecipientFailure[],
): Promise<void> {
  if (failures.length === 0) return;
  await tx.query(`${insertFailuresSql(2)} ON CONFLICT DO NOTHING`, [
    batch.appId,
    ...failureValues(batch, failures),
  ]);
}

/** Returns `INSERT INTO push_failure SELECT … FROM unnest(…)`; `$1` is the app, the arrays start at `$first`. */
export function insertFailuresSql(first: number): string {
  const p = (i: number) => `$${first + i}`;
  return `INSERT INTO push_failure (app_id, push_id, connector, installation, object_id, outcome, status,
                               reason, dead_as_of, is_unsure, profile, is_proof, form)
     SELECT $1, ${p(0)}::bigint, ${p(1)}::text, f.installation,
            (SELECT i.object_id FROM installation i WHERE i.app_id = $1 AND i.id = f.installation),
            f.outcome, f.status, f.reason, to_timestamp(f.dead_ms / 1000.0), ${p(7)}::boolean, ${p(8)}::text, f.is_proof, f.form
       FROM unnest(${p(2)}::bigint[], ${p(3)}::text[], ${p(4)}::int[], ${p(5)}::text[], ${p(6)}::float8[], ${p(9)}::boolean[],
                   ${p(10)}::text[]) AS f (installation, outcome, status, reason, dead_ms, is_proof, form)`;
}

export function failureValues(batch: FailedBatch, failures: RecipientFailure[]): unknown[] {
  return [
    batch.pushId,
    batch.connector,
    failures.map((failure) => failure.installation),
    failures.map((failure) => failure.outcome),
    failures.map((failure) => failure.status),
    failures.map((failure) => failure.reason),
    failures.map((failure) => failure.invalidAsOfMs),
    batch.unanswered > 0,
    batch.profile,
    failures.map((failure) => failure.isProof || null),
    failures.map((failure) => failure.form ?? null),
  ];
}
