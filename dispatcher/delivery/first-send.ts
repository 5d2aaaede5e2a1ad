import type { BatchSnapshot } from '../../shared/db/tables/push-progress.ts';
import { pushBeganAtMs } from '../../shared/domain/pushes/record.ts';
import type { DeliverJob } from '../../shared/queue/jobs.ts';
import type { DispatcherDeps } from '../deps.ts';
import type { BatchInWork } from '../recording/batch-in-work.ts';

/**
 * Times that a first send waited for: the beginning of the push, the waits of its batch and of its
 * job.
 */
interface Waits {
  began: Pick<BatchSnapshot, 'createdAt' | 'pushTime'>;
  batch: Pick<BatchSnapshot, 'notBefore' | 'quietUntil'>;
  job: Pick<DeliverJob, 'waitedUntilMs'>;
}

/**
 * Returns how long Carillon took until the first send, in ms. The time counts from the beginning of
 * the push, or from the end of the last wait that somebody requested, such as quiet hours.
 * Requested waits must not trigger an alert.
 */
export function firstSendMs(at: Date, { began, batch, job }: Waits): number {
  const { notBefore, quietUntil } = batch;
  const ends = [notBefore?.at.getTime(), quietUntil?.getTime(), job.waitedUntilMs].map(
    (ms) => ms ?? 0,
  );
  return Math.max(0, at.getTime() - Math.max(pushBeganAtMs(began), ...ends));
}

/** If the first send takes longer, its time is saved before the result. */
const slowMs = 1000;

/**
 * Saves the time of the first send of a push. Does nothing if the time is already saved. Saving
 * runs in parallel with sending. If the push has only one batch, the time is saved together with
 * the result, unless sending is slow.
 */
export class FirstSend {
  readonly #deps: DispatcherDeps;
  readonly #batch: BatchInWork;
  readonly #at: Date | null;

  constructor(deps: DispatcherDeps, batch: BatchInWork) {
    this.#deps = deps;
    this.#batch = batch;
    this.#at = batch.stored.firstSentAt ? null : new Date(deps.clock.now());
  }

  /** Waits until the batch is sent. If saving the time has begun, also waits until it is saved. */
  async during<T>(sending: Promise<T>): Promise<T> {
    const { only } = this.#batch;
    if (only) only.firstSentAt = this.#at;
    let saved = only ? undefined : this.#save();
    const saveSlow = () => {
      saved = this.#save();
      if (only) only.firstSentAt = null;
    };
    const timer = only && this.#at ? setTimeout(saveSlow, slowMs) : undefined;
    try {
      return await sending;
    } finally {
      clearTimeout(timer);
      await saved;
    }
  }

  /** Saves the time if the push has only one batch and its result did not save it. */
  async end(): Promise<void> {
    const { only } = this.#batch;
    if (!only?.firstSentAt) return;
    if (only.isClosed) this.#observe(only.firstSentAt);
    else await this.#save();
    only.firstSentAt = null;
  }

  /** Never rejects: the batch is already being sent, and the next batch saves its own time. */
  async #save(): Promise<void> {
    if (!this.#at) return;
    const { queries, log } = this.#deps;
    const { appId, pushId: id } = this.#batch.ids;
    try {
      if (await queries.markFirstSend({ appId, id, at: this.#at })) this.#observe(this.#at);
    } catch (error) {
      log.warn({ err: error, push: id }, 'could not save the time of the first send');
    }
  }

  #observe(at: Date): void {
    const { ids, stored } = this.#batch;
    const tookMs = firstSendMs(at, { began: stored, batch: stored, job: ids });
    this.#deps.metrics.pushFirstSendSeconds.observe(tookMs / 1000);
  }
}
