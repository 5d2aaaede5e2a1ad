import type { PushMessage, Recipient, Report } from '../../connectors/contract/connector.ts';
import { toPushMessage } from '../../connectors/contract/connector.ts';
import type { Clock } from '../../shared/clock.ts';
import type { AppCache } from '../../shared/db/cache/app-cache.ts';
import type { Database } from '../../shared/db/pool.ts';
import { type Batch, checkpointBatch, findBatch } from '../../shared/db/tables/pushes/batches.ts';
import { incrementBadges, loadRecipients, setBadges } from '../../shared/db/tables/pushes/delivery.ts';
import { findPush } from '../../shared/db/tables/pushes/pushes.ts';
import type { Push } from '../../shared/domain/pushes/record.ts';
import type { Logger } from '../../shared/process/logging.ts';
import { InFlightBatch } from './in-flight-batch.ts';
import { interruptCount } from './interrupts.ts';
import { type LatenessBudget, sendPaced } from './paced-send.ts';
import type { Lease, SenderCache } from './sender-cache.ts';
import { Tally } from './tally.ts';
import type { DeliverResult, DeliverTask } from './task.ts';

/** How often what is settled is written down while a batch is in flight (develop/architecture.md#crash-safety). */
const checkpointMs = 100;

export interface BatchSenderDeps {
  db: Database;
  senders: SenderCache;
  appCache: AppCache;
  clock: Clock;
  latenessBudget: LatenessBudget;
  log: Logger;
  /** Becomes 1 when nothing more may be sent. */
  stopFlag: Int32Array;
  interrupts: Int32Array;
}

/** A batch in hand, and what became of it so far. */
interface InHand {
  batch: Batch;
  tally: Tally;
}

/** One batch on its way through a worker thread: load, send, note, report. */
export class BatchSender {
  readonly #deps: BatchSenderDeps;
  readonly #task: DeliverTask;
  readonly #progress: InFlightBatch | undefined;
  readonly #stop = new AbortController();
  #writing: Promise<void> | undefined;
  /** How many failures, and which change of the tally, the last checkpoint held. */
  #noted = 0;
  #checkpointed = 0;
  #isSlice = false;
  #interruptCount = 0;
  #isInterrupted = false;

  constructor(deps: BatchSenderDeps, task: DeliverTask) {
    this.#deps = deps;
    this.#task = task;
    this.#progress = task.progressMemory && new InFlightBatch(task.progressMemory);
  }

  /** Sends what of the batch is not settled. Rejects only when the database cannot be asked. */
  async run(): Promise<DeliverResult> {
    const { appId, batchId, pushId } = this.#task;
    this.#interruptCount = interruptCount(this.#deps.interrupts, pushId);
    const [batch, push, app] = await Promise.all([
      findBatch(this.#deps.db, appId, batchId),
      findPush(this.#deps.db, appId, pushId),
      this.#deps.appCache.app(appId),
    ]);
    if (!batch || !push) throw new Error('the batch is gone');
    const inHand = { batch, tally: new Tally(batch, app?.options.unknownOutcome) };
    // Read after the counter: a push that is stopped later than this moves it.
    this.#isInterrupted = push.state !== 'sending';
    if (this.#isInterrupted) return this.#result(inHand);
    const lease = await this.#deps.senders.lease(appId, batch.connector, batch.profile);
    if (typeof lease === 'string') inHand.tally.giveUp(lease);
    else await this.#send(inHand, push, lease);
    return this.#result(inHand);
  }

  async #send(inHand: InHand, push: Push, lease: Lease): Promise<void> {
    try {
      const message = toPushMessage(push);
      this.#deps.senders.introduce(push.objectId, push.id);
      const recipients = await this.#load(inHand, message, lease);
      const timer = setInterval(() => this.#tick(inHand), checkpointMs);
      try {
        const report: Report = (index, attempt) => {
          inHand.tally.note(index, attempt);
          this.#progress?.answer();
        };
        const request = { message, recipients, signal: this.#stop.signal, report };
        this.#progress?.begin(recipients.length);
        const { clock, latenessBudget } = this.#deps;
        const isInTime = await sendPaced(lease.sender, request, {
          slot: this.#task.slot,
          clock,
          latenessBudget,
        });
        if (!isInTime) this.#isInterrupted = true;
      } finally {
        clearInterval(timer);
        await this.#writing;
      }
    } finally {
      lease.release();
    }
  }

  /** Loads what is still open; an installation that is gone by now is counted, not sent to. */
  async #load({ batch, tally }: InHand, message: PushMessage, { connector }: Lease): Promise<Recipient[]> {
    const open = batch.recipients.filter((_, i) => tally.isOpen(i));
    const rows = await loadRecipients(this.#deps.db, batch.appId, open, connector.tokenField);
    const badges = await this.#badges(batch, connector.badge?.(message) ?? null);
    const byId = new Map(rows.map((row) => [row.id, row]));
    const recipients: Recipient[] = [];
    for (const [index, id] of batch.recipients.entries()) {
      if (!tally.isOpen(index)) continue;
      const row = byId.get(id);
      if (!row?.address) {
        tally.fail(index, { outcome: 'dropped', status: 0, reason: 'the installation was deleted' });
        continue;
      }
      recipients.push({
        index,
        id: String(id),
        deviceToken: row.address,
        deviceType: row.device_type,
        vendor: row.vendor_name,
        topic: row.topic,
        teamId: row.team_id,
        badge: badges?.[index] ?? null,
        updatedAtMs: row.updated_at.getTime(),
      });
    }
    const { slice = recipients.length } = this.#task;
    this.#isSlice = slice < recipients.length;
    recipients.length = Math.min(slice, recipients.length);
    for (const { index, updatedAtMs } of recipients) tally.noteSaved(index, updatedAtMs);
    return recipients;
  }

  async #badges(batch: Batch, change: 'Increment' | number | null): Promise<(number | null)[] | null> {
    if (change === null) return null;
    if (change === 'Increment') {
      batch.badges ??= await this.#deps.db.transaction((tx) => incrementBadges(tx, batch));
      return batch.badges;
    }
    if (batch.attempt === 0) await setBadges(this.#deps.db, batch.appId, batch.recipients, change);
    return null;
  }

  /** Every 100 ms: has the dispatcher stopped, or somebody the push, and is there anything new to write down? */
  #tick({ batch, tally }: InHand): void {
    if (Atomics.load(this.#deps.stopFlag, 0) === 1 || this.#progress?.isStopped) this.#stop.abort();
    if (interruptCount(this.#deps.interrupts, batch.pushId) !== this.#interruptCount) {
      this.#isInterrupted = true;
      this.#stop.abort();
    }
    if (this.#writing || this.#checkpointed === tally.changes) return;
    this.#writing = this.#checkpoint({ batch, tally }).finally(() => {
      this.#writing = undefined;
    });
  }

  async #checkpoint({ batch, tally }: InHand): Promise<void> {
    const { changes } = tally;
    const failures = tally.failures.slice(this.#noted);
    try {
      await checkpointBatch(this.#deps.db, batch, tally.withoutMoved(), failures);
      this.#checkpointed = changes;
      this.#noted += failures.length;
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'a checkpoint could not be written');
    }
  }

  #result({ batch, tally }: InHand): DeliverResult {
    const { appId, connector, profile } = batch;
    const { calls, seconds } = this.#deps.senders.drainCalls(appId, connector, profile);
    return {
      connector: batch.connector,
      profile: batch.profile,
      attempt: batch.attempt,
      ...tally.end(this.#stop.signal.aborted),
      failures: tally.failures,
      isInterrupted: this.#isInterrupted,
      isSlice: this.#isSlice,
      health: tally.health,
      trouble: tally.trouble,
      halt: tally.halt,
      messages: tally.messages,
      calls,
      callSeconds: [{ connector: batch.connector, seconds }],
    };
  }
}
