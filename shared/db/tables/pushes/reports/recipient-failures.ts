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

/** Failures of one batch. */
export interface BatchFailures {
  batch: FailedBatch;
  failures: readonly RecipientFailure[];
}

/** Writes failures; a recipient of a push has one. */
export async function insertFailures(tx: Handle, list: readonly BatchFailures[]): Promise<void> {
  const rows = list.flatMap(({ batch, failures }) => failures.map((failure) => toColumns(batch, failure)));
  if (rows.length > 0)
    await tx.query(`${insertFailuresSql(1)} ON CONFLICT DO NOTHING`, [JSON.stringify(rows)]);
}

/** Returns `INSERT INTO push_failure SELECT … FROM`; `$place` is the JSON list of `failuresText`. */
export const insertFailuresSql = (
  place: number,
): string => `INSERT INTO push_failure (app_id, push_id, connector, installation, object_id, outcome, status,
                               reason, dead_as_of, is_unsure, profile, is_proof, form)
     SELECT f.app_id, f.push_id, f.connector, f.installation,
            (SELECT i.object_id FROM installation i WHERE i.app_id = f.app_id AND i.id = f.installation),
            f.outcome, f.status, f.reason, to_timestamp(f.dead_ms / 1000.0), f.is_unsure, f.profile, f.is_proof, f.form
       FROM json_to_recordset($${place}) AS f (
         app_id text, push_id bigint, connector text, installation bigint, outcome text, status int, reason text,
         dead_ms float8, is_unsure boolean, profile text, is_proof boolean, form text)`;

/** Returns the parameter with the failures of a batch. */
export const failuresText = (batch: FailedBatch, failures: readonly RecipientFailure[]): string =>
  JSON.stringify(failures.map((failure) => toColumns(batch, failure)));

const toColumns = (batch: FailedBatch, failure: RecipientFailure) => ({
  app_id: batch.appId,
  push_id: batch.pushId,
  connector: batch.connector,
  profile: batch.profile,
  is_unsure: batch.unanswered > 0,
  installation: failure.installation,
  outcome: failure.outcome,
  status: failure.status,
  reason: failure.reason,
  dead_ms: failure.invalidAsOfMs,
  is_proof: failure.isProof || null,
  form: failure.form,
});
