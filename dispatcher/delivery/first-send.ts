import type { BatchSnapshot } from '../../shared/db/tables/pushes/delivery.ts';
import { markFirstSend } from '../../shared/db/tables/pushes/progress.ts';
import { pushBeganAtMs } from '../../shared/domain/pushes/record.ts';
import type { DeliverJob } from '../../shared/queue/jobs.ts';
import type { DispatcherDeps } from '../deps.ts';
import type { BatchInWork } from '../recording/batch-in-work.ts';

/**
 * Time after which the first send of a small push is saved without waiting for its end: longer than such a push takes on a busy
 * dispatcher, where thousands of statements more would delay all of them.
 */
const slowMs = 1000;

/** What the first send of a push waited for: its beginning, the end of the waits of its batch, and that of its job. */
interface Waits {
  began: Pick<BatchSnapshot, 'createdAt' | 'pushTime'>;
  batch?: Pick<BatchSnapshot, 'notBefore' | 'quietUntil'>;
  job: Pick<DeliverJob, 'waitedUntilMs'>;
}

/**
 * Returns how long the service took for a first send, in ms: from the beginning of the push or, if it is later, from the end of
 * the last wait that somebody asked for. An operator would else be woken for the quiet hours of a push.
 */
export function firstSendMs(at: Date, { began, batch, job }: Waits): number {
  const { notBefore, quietUntil } = batch ?? {};
  const ends = [notBefore?.at.getTime(), quietUntil?.getTime(), job.waitedUntilMs].map((ms) => ms ?? 0);
  return Math.max(0, at.getTime() - Math.max(pushBeganAtMs(began), ...ends));
}

/** The time of a push's first send: saved beside the sending, for a small push together with its end. */
export class FirstSend {
  readonly #deps: DispatcherDeps;
  readonly #batch: BatchInWork;
  readonly #at: Date;
  #saving: Promise<void> | undefined;

  constructor(deps: DispatcherDeps, batch: BatchInWork) {
    this.#deps = deps;
    this.#batch = batch;
    this.#at = new Date(deps.clock.now());
    if (batch.stored.firstSentAt) this.#saving = Promise.resolve();
  }

  /** The time, until it is saved. */
  get unsavedAt(): Date | null {
    return this.#saving ? null : this.#at;
  }

  /** Waits for `sending` and saves the time: at once, which delays no request, or after a while if it takes long. */
  async during<T>(sending: Promise<T>, isSavedAtOnce: boolean): Promise<T> {
    const timer = isSavedAtOnce ? undefined : setTimeout(() => void this.save(), slowMs);
    if (isSavedAtOnce) void this.save();
    try {
      return await sending;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Saves the time once. Never rejects: the batch is on its way, and the next one saves its own time. */
  save(): Promise<void> {
    this.#saving ??= this.#write();
    return this.#saving;
  }

  async #write(): Promise<void> {
    const { db, log, metrics } = this.#deps;
    const { ids, stored } = this.#batch;
    const isFirst = await markFirstSend(db, ids.appId, ids.pushId, this.#at).catch((error: unknown) =>
      log.warn({ err: error, push: ids.pushId }, 'could not save the time of the first send'),
    );
    if (!isFirst) return;
    const tookMs = firstSendMs(this.#at, { began: stored, batch: stored, job: ids });
    metrics.pushFirstSendSeconds.observe(tookMs / 1000);
  }
}
