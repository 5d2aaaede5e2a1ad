import type { Database } from '../../shared/db/pool.ts';
import { type Batch, checkpointBatch } from '../../shared/db/tables/pushes/batches.ts';
import type { Logger } from '../../shared/process/logging.ts';
import type { Tally } from './tally.ts';

/** Checkpoints of one batch in flight, one write at a time (develop/architecture.md#crash-safety). */
export class Checkpoints {
  readonly #deps: { db: Database; log: Logger };
  readonly #batch: Batch;
  readonly #tally: Tally;
  #writing: Promise<void> | undefined;
  /** Changes and failures of the tally that the last checkpoint holds. */
  #changes = 0;
  #failures = 0;

  constructor(deps: { db: Database; log: Logger }, batch: Batch, tally: Tally) {
    this.#deps = deps;
    this.#batch = batch;
    this.#tally = tally;
  }

  /** Starts a checkpoint if the tally has changed and none is being written. */
  writeIfChanged(): void {
    if (this.#writing || this.#changes === this.#tally.changes) return;
    this.#writing = this.#write().finally(() => {
      this.#writing = undefined;
    });
  }

  /** Waits for a checkpoint that is being written. */
  async finish(): Promise<void> {
    await this.#writing;
  }

  async #write(): Promise<void> {
    const { changes } = this.#tally;
    const failures = this.#tally.failures.slice(this.#failures);
    try {
      await checkpointBatch(this.#deps.db, this.#batch, this.#tally.checkpoint(), failures);
      this.#changes = changes;
      this.#failures += failures.length;
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'checkpoint failed');
    }
  }
}
