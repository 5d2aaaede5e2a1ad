import type { Clock } from '../../../shared/clock.ts';
import type { Database } from '../../../shared/db/pool.ts';
import { type CanaryAnswers, recordCanary } from '../../../shared/db/tables/apps/canary-decisions.ts';
import { claimBatches, type RotatedProfile } from '../../../shared/db/tables/apps/profile-rotations.ts';
import { canaryShare } from '../../../shared/domain/apps/canary.ts';

/** Batches that a thread counts with one statement; divides `canaryShare`. */
const batchesAtOnce = 10;

/** Canary of a profile, as a batch finds it. */
export interface Canary extends RotatedProfile {
  stagedAt: Date;
}

/**
 * Chooses the batches that are sent with a candidate: over all threads and dispatchers, one of a hundred of the profile, and
 * the first one. A thread counts ten batches at once, so that many small pushes do not wait for one row.
 */
export class CanaryBatches {
  readonly #db: Database;
  readonly #clock: Clock;
  /** Batches that are counted already, by profile and version. */
  readonly #counted = new Map<string, number>();
  /** Canaries whose batch ended without a request: their next batch is sent with the candidate. */
  readonly #owed = new Set<string>();

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  /** Returns whether the next batch is sent with the candidate. Never rejects: without a database the current version sends. */
  async takesNext(canary: Canary): Promise<boolean> {
    const key = JSON.stringify(canary);
    if (this.#owed.delete(key)) return true;
    const left = this.#counted.get(key) ?? 0;
    this.#counted.set(key, left > 0 ? left - 1 : batchesAtOnce - 1);
    if (left > 0) return false;
    const before = await claimBatches(this.#db, canary, batchesAtOnce).catch(() => undefined);
    if (before === undefined) this.#counted.delete(key);
    return before !== undefined && before % canaryShare === 0;
  }

  /** Adds the answers of a batch; one that was interrupted before its first request is made up for. Never rejects: answers that are not counted only delay the decision. */
  async record(canary: Canary, answers: CanaryAnswers): Promise<void> {
    if (answers.asked === 0) {
      this.#owed.add(JSON.stringify(canary));
      return;
    }
    const { stagedAt, appId, connector, name } = canary;
    const profile = { appId, connector, name, stagedAt };
    await recordCanary(this.#db, profile, { ...answers, nowMs: this.#clock.now() }).catch(() => undefined);
  }
}
