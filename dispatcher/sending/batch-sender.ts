import { type Report, toPushMessage } from '../../connectors/contract/connector.ts';
import type { Clock } from '../../shared/clock.ts';
import type { AppCache } from '../../shared/db/cache/app-cache.ts';
import type { Database } from '../../shared/db/pool.ts';
import { type Batch, findBatch } from '../../shared/db/tables/pushes/batches.ts';
import { findPush } from '../../shared/db/tables/pushes/pushes.ts';
import type { Push } from '../../shared/domain/pushes/record.ts';
import { RecipientStates } from '../../shared/domain/recipient-states.ts';
import type { Logger } from '../../shared/process/logging.ts';
import { Checkpoints } from './checkpoints.ts';
import { InFlightBatch } from './in-flight-batch.ts';
import { interruptCount } from './interrupts.ts';
import type { LatenessBudget } from './lateness.ts';
import { sendPaced } from './paced-send.ts';
import { loadOpenRecipients, type OpenBatch } from './recipients.ts';
import type { Lease, SenderCache } from './sender-cache.ts';
import { Tally } from './tally.ts';
import type { DeliverResult, DeliverTask, LoadedBatch } from './task.ts';

/** Interval of checkpoints, and of the look for a stop or an interrupt. */
const tickMs = 100;

export interface BatchSenderDeps {
  db: Database;
  senders: SenderCache;
  appCache: AppCache;
  clock: Clock;
  latenessBudget: LatenessBudget;
  log: Logger;
  /** 1 when the dispatcher stops. */
  stopFlag: Int32Array;
  interrupts: Int32Array;
}

/** Sends one batch in a worker thread: load, send, checkpoint, return the result. */
export class BatchSender {
  readonly #deps: BatchSenderDeps;
  readonly #task: DeliverTask;
  readonly #progress: InFlightBatch | undefined;
  readonly #stop = new AbortController();
  #interruptCount = 0;
  #isInterrupted = false;
  #hasUnsent = false;

  constructor(deps: BatchSenderDeps, task: DeliverTask) {
    this.#deps = deps;
    this.#task = task;
    this.#progress = task.progressMemory && new InFlightBatch(task.progressMemory);
  }

  /** Sends to the open recipients. Rejects only when the database is unavailable. */
  async run(): Promise<DeliverResult> {
    const { appId, pushId, loaded } = this.#task;
    // Before the push is read: a later pause or cancellation changes the counter.
    const interrupts = interruptCount(this.#deps.interrupts, pushId);
    this.#interruptCount = loaded?.interruptCount ?? interrupts;
    const [{ batch, push }, app] = await Promise.all([
      loaded ? withStates(loaded) : this.#load(),
      this.#deps.appCache.app(appId),
      // For the sender, which would read them after the batch.
      this.#deps.appCache.profiles(appId),
    ]);
    if (!batch || !push) throw new Error('the batch was deleted');
    const open = { batch, tally: new Tally(batch, app?.options.unknownOutcome) };
    this.#isInterrupted = push.state !== 'sending' || interrupts !== this.#interruptCount;
    if (!this.#isInterrupted) await this.#send(open, push);
    return this.#result(open);
  }

  async #load(): Promise<{ batch: Batch | undefined; push: Push | undefined }> {
    const { appId, batchId, pushId } = this.#task;
    const { db } = this.#deps;
    const [batch, push] = await Promise.all([findBatch(db, appId, batchId), findPush(db, appId, pushId)]);
    return { batch, push };
  }

  async #send(open: OpenBatch, push: Push): Promise<void> {
    const { senders } = this.#deps;
    const { appId, connector, profile } = open.batch;
    const lease = await senders.lease(appId, connector, profile);
    if (typeof lease === 'string') {
      open.tally.failAll(lease);
      return;
    }
    try {
      await this.#sendWith(lease, open, push);
    } finally {
      lease.release();
    }
  }

  async #sendWith(lease: Lease, open: OpenBatch, push: Push): Promise<void> {
    const { db, clock, latenessBudget } = this.#deps;
    const message = toPushMessage(push);
    const { loaded } = this.#task;
    const recipients = await loadOpenRecipients(db, open, { message, connector: lease.connector, loaded });
    const { slot, probeSize = recipients.length } = this.#task;
    this.#hasUnsent = probeSize < recipients.length;
    recipients.limit(probeSize);
    open.tally.useSaveTimes(recipients);
    const report: Report = (index, attempt) => {
      open.tally.note(index, attempt);
      this.#progress?.countAnswer();
    };
    const checkpoints = new Checkpoints(this.#deps, open.batch, open.tally);
    const timer = setInterval(() => this.#tick(checkpoints), tickMs);
    try {
      this.#progress?.begin(recipients.length);
      const request = { pushId: push.id, message, recipients, signal: this.#stop.signal, report };
      const isOnTime = await sendPaced(lease.sender, request, { slot, clock, latenessBudget });
      if (!isOnTime) this.#isInterrupted = true;
    } finally {
      clearInterval(timer);
      await checkpoints.finish();
    }
  }

  /** Stops the batch if its dispatcher, its breaker or its push was stopped, and writes a checkpoint. */
  #tick(checkpoints: Checkpoints): void {
    const { stopFlag, interrupts } = this.#deps;
    if (Atomics.load(stopFlag, 0) === 1 || this.#progress?.isStopped) this.#stop.abort();
    if (interruptCount(interrupts, this.#task.pushId) !== this.#interruptCount) {
      this.#isInterrupted = true;
      this.#stop.abort();
    }
    checkpoints.writeIfChanged();
  }

  #result({ batch: { appId, connector, profile }, tally }: OpenBatch): DeliverResult {
    const { calls, durations } = this.#deps.senders.drainCalls(appId, connector, profile);
    return {
      connector,
      profile,
      ...tally.end(this.#stop.signal.aborted),
      failures: tally.failures,
      isInterrupted: this.#isInterrupted,
      hasUnsent: this.#hasUnsent,
      health: tally.health,
      trouble: tally.trouble,
      profileError: tally.profileError,
      messages: tally.messages,
      calls,
      durations,
    };
  }
}

const withStates = ({ batch, push }: LoadedBatch): { batch: Batch; push: Push } => ({
  batch: { ...batch, states: RecipientStates.allOpen(batch.recipients.length) },
  push,
});
