import type { BatchSnapshot } from '../../shared/db/tables/push-progress.ts';
import { pushBeganAtMs } from '../../shared/domain/pushes/record.ts';
import type { DeliverJob } from '../../shared/queue/jobs.ts';
import type { DispatcherDeps } from '../deps.ts';
import type { BatchInWork } from '../recording/batch-in-work.ts';

/**
 * What the first send of a push waited for: its beginning, the end of the waits of its batch, and
 * that of its job.
 */
interface Waits {
  began: Pick<BatchSnapshot, 'createdAt' | 'pushTime'>;
  batch: Pick<BatchSnapshot, 'notBefore' | 'quietUntil'>;
  job: Pick<DeliverJob, 'waitedUntilMs'>;
}

/**
 * Returns how long the service took for a first send, in ms: from the beginning of the push or, if
 * it is later, from the end of the last wait that somebody asked for. Otherwise the quiet hours of
 * a push would wake an operator.
 */
export function firstSendMs(at: Date, { began, batch, job }: Waits): number {
  const { notBefore, quietUntil } = batch;
  const ends = [notBefore?.at.getTime(), quietUntil?.getTime(), job.waitedUntilMs].map(
    (ms) => ms ?? 0,
  );
  return Math.max(0, at.getTime() - Math.max(pushBeganAtMs(began), ...ends));
}

/** Time after which the first send of the only batch of a push is saved before its result. */
const slowMs = 1000;

/**
 * The time of the first send of a push; does nothing if the push has one. It is saved during the
 * sending, which it does not delay. The only batch of a push saves it with its result, unless the
 * sending is slow.
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

  /** Waits for the sending, and for the time to be saved if that has begun. */
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

  /** Saves the time of an only batch whose result has not saved it. */
  async end(): Promise<void> {
    const { only } = this.#batch;
    if (!only?.firstSentAt) return;
    if (only.isClosed) this.#observe(only.firstSentAt);
    else await this.#save();
    only.firstSentAt = null;
  }

  /** Never rejects: the batch is on its way, and the next one saves its own time. */
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
