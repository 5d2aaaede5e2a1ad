import { connectors } from '../../connectors/registry.ts';
import { Batcher } from '../../shared/batcher.ts';
import { isConnectionFailure } from '../../shared/db/limits/database-errors.ts';
import type { Database } from '../../shared/db/pool.ts';
import type { BatchKey } from '../../shared/db/tables/batches.ts';
import { findPush } from '../../shared/db/tables/pushes.ts';
import { type LoadedBatch, loadBatches, type TokenField } from '../../shared/db/tables/recipients.ts';
import type { Push } from '../../shared/domain/pushes/record.ts';
import type { DeliverTask } from './task.ts';

/** Rows of a batch; undefined where they were deleted. */
export interface BatchRows {
  loaded: LoadedBatch | undefined;
  push: Push | undefined;
}

/** Most recipients of the batches of one statement; a larger batch has its own. */
const mostRecipients = 1000;

type LoadedKey = BatchKey & Pick<DeliverTask, 'size'>;

/**
 * Reads the rows of batches in a worker thread. Small batches that are taken at the same time share
 * the statements: most batches have one recipient, and reading each by its own would cost more than
 * sending it.
 */
export class BatchLoader {
  readonly #db: Database;
  readonly #batches: Record<TokenField, Batcher<LoadedKey, LoadedBatch | undefined>>;

  /** `concurrency`: statements of one kind at the same time. */
  constructor(db: Database, concurrency: number) {
    const ofField = (field: TokenField) =>
      new Batcher<LoadedKey, LoadedBatch | undefined>({
        ...{ concurrency, size: mostRecipients, weightOf: ({ size }: LoadedKey) => size },
        run: (keys) => loadBatches(db, keys, field),
        runOne: async (key) => (await loadBatches(db, [key], field))[0],
        isShared: isConnectionFailure,
      });
    this.#db = db;
    this.#batches = {
      deviceToken: ofField('deviceToken'),
      registrationId: ofField('registrationId'),
      installationId: ofField('installationId'),
    };
  }

  /** Reads a batch with its recipients, and its push unless the task has it. */
  async load({ appId, batchId, pushId, connector, size, known }: DeliverTask): Promise<BatchRows> {
    const key = { appId, batchId, size };
    const tokenField = connectors.get(connector)?.tokenField ?? 'deviceToken';
    const [loaded, push] = await Promise.all([
      this.#batches[tokenField].run(key),
      known?.push ?? findPush(this.#db, appId, pushId),
    ]);
    return { loaded, push };
  }
}
