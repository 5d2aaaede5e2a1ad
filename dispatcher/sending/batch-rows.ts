import { connectors } from '../../connectors/registry.ts';
import { Batcher } from '../../shared/batcher.ts';
import { isConnectionFailure } from '../../shared/db/limits/database-errors.ts';
import type { Database } from '../../shared/db/pool.ts';
import { type Batch, type BatchKey, findBatches } from '../../shared/db/tables/batches.ts';
import { findPush } from '../../shared/db/tables/pushes.ts';
import { loadRecipients, type RecipientGroup, type TokenField } from '../../shared/db/tables/recipients.ts';
import type { Push } from '../../shared/domain/pushes/record.ts';
import type { DeliverTask } from './task.ts';

/** Rows of a batch; undefined where they were deleted. */
export interface BatchRows {
  batch: Batch | undefined;
  groups: RecipientGroup[];
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
  readonly #batches: Batcher<LoadedKey, Batch | undefined>;
  readonly #recipients: Record<TokenField, Batcher<LoadedKey, RecipientGroup[]>>;

  /** `concurrency`: statements of one kind at the same time. */
  constructor(db: Database, concurrency: number) {
    const shared = <R>(run: (keys: LoadedKey[]) => Promise<R[]>) =>
      new Batcher<LoadedKey, R>({
        ...{ concurrency, size: mostRecipients, weightOf: ({ size }: LoadedKey) => size },
        run,
        runOne: async (key) => (await run([key]))[0] as R,
        isShared: isConnectionFailure,
      });
    const ofField = (field: TokenField) => shared((keys) => loadRecipients(db, keys, field));
    this.#db = db;
    this.#batches = shared((keys) => findBatches(db, keys));
    this.#recipients = {
      deviceToken: ofField('deviceToken'),
      registrationId: ofField('registrationId'),
      installationId: ofField('installationId'),
    };
  }

  /** Reads a batch with its recipients, and its push unless the task has it. */
  async load({ appId, batchId, pushId, connector, size, known }: DeliverTask): Promise<BatchRows> {
    const key = { appId, batchId, size };
    const tokenField = connectors.get(connector)?.tokenField ?? 'deviceToken';
    const [batch, groups, push] = await Promise.all([
      this.#batches.run(key),
      this.#recipients[tokenField].run(key),
      known?.push ?? findPush(this.#db, appId, pushId),
    ]);
    return { batch, groups, push };
  }
}
