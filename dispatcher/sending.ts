import type { Attempt, Message, Recipient, Report } from '../connectors/connector.ts';
import { messageOf, showsTrouble } from '../connectors/connector.ts';
import type { Clock } from '../shared/clock.ts';
import type { Database } from '../shared/db/pool.ts';
import { type Batch, checkpointBatch, type Failure, findBatch } from '../shared/db/tables/batches.ts';
import { countBadges, loadRecipients, setBadges } from '../shared/db/tables/delivery.ts';
import { findNotification } from '../shared/db/tables/notifications.ts';
import type { Notification } from '../shared/domain/notification.ts';
import { movedCode, type Outcome, openCode, outcomeCode } from '../shared/domain/outcome.ts';
import type { Logger } from '../shared/logging.ts';
import { cutCount } from './cuts.ts';
import { RetryGroups } from './retry-groups.ts';
import type { Lease, SenderCache } from './senders.ts';
import { sendInTime } from './slices.ts';
import type { DeliverResult, DeliverTask, Why } from './task.ts';

/** How often what is settled is written down while a batch is in flight (design.md 2 "Crash safety"). */
const checkpointMs = 100;

/** An unknown outcome whose repeat the device hides is tried this often, then counted failed. */
const maxUnknownAttempts = 5;

export interface SendingMeans {
  db: Database;
  senders: SenderCache;
  clock: Clock;
  log: Logger;
  /** Becomes 1 when nothing more may be sent. */
  stopFlag: Int32Array;
  cuts: Int32Array;
}

/** One batch on its way through a worker thread: load, send, note, report. */
export class Sending {
  readonly #means: SendingMeans;
  readonly #task: DeliverTask;
  readonly #stop = new AbortController();
  readonly #failures: Failure[] = [];
  readonly #retries = new RetryGroups();
  readonly #showing = { asked: 0, troubled: 0 };
  /** When each recipient's installation was last saved, by place. */
  #savedAtMs = new Map<number, number>();
  #settled = new Uint8Array(0);
  #writing: Promise<void> | undefined;
  #noted = 0;
  #changes = 0;
  #checkpointed = 0;
  #halt: string | null = null;
  #isSlice = false;
  #cutCount = 0;
  #isCut = false;

  constructor(means: SendingMeans, task: DeliverTask) {
    this.#means = means;
    this.#task = task;
  }

  /** Sends what of the batch is not settled. Rejects only when the database cannot be asked. */
  async run(): Promise<DeliverResult> {
    const { appId, batchId, pushId } = this.#task;
    this.#cutCount = cutCount(this.#means.cuts, pushId);
    const [batch, push] = await Promise.all([
      findBatch(this.#means.db, appId, batchId),
      findNotification(this.#means.db, appId, pushId),
    ]);
    if (!batch || !push) throw new Error('the batch is gone');
    this.#settled = batch.settled ? Uint8Array.from(batch.settled) : new Uint8Array(batch.recipients.length);
    // Read after the counter: a push that is stopped later than this moves it.
    this.#isCut = push.state !== 'sending';
    if (this.#isCut) return this.#result(batch);
    const lease = await this.#means.senders.lease(appId, batch.connector, batch.profile);
    if (typeof lease === 'string') this.#giveUp(batch, lease);
    else await this.#send(batch, push, lease);
    return this.#result(batch);
  }

  async #send(batch: Batch, push: Notification, lease: Lease): Promise<void> {
    try {
      const message = messageOf(push);
      this.#means.senders.introduce(push.objectId, push.id);
      const recipients = await this.#load(batch, message, lease);
      const timer = setInterval(() => this.#tick(batch), checkpointMs);
      try {
        const report: Report = (index, attempt) => this.#note(batch, index, attempt);
        const request = { message, recipients, signal: this.#stop.signal, report };
        await sendInTime(lease.sender, request, { slot: this.#task.slot, clock: this.#means.clock });
      } finally {
        clearInterval(timer);
        await this.#writing;
      }
    } finally {
      lease.release();
    }
  }

  /** Loads what is still open; an installation that is gone by now is counted, not sent to. */
  async #load(batch: Batch, message: Message, { connector }: Lease): Promise<Recipient[]> {
    const open = batch.recipients.filter((_, i) => this.#settled[i] === openCode);
    const rows = await loadRecipients(this.#means.db, batch.appId, open, connector.address);
    const badges = await this.#badges(batch, connector.badge?.(message) ?? null);
    const byId = new Map(rows.map((row) => [row.id, row]));
    const recipients: Recipient[] = [];
    for (const [index, id] of batch.recipients.entries()) {
      if (this.#settled[index] !== openCode) continue;
      const row = byId.get(id);
      if (!row?.address) {
        this.#fail(batch, index, { outcome: 'dropped', status: 0, reason: 'the installation was deleted' });
        continue;
      }
      recipients.push({
        index,
        id: String(id),
        address: row.address,
        deviceType: row.device_type,
        topic: row.topic,
        teamId: row.team_id,
        badge: badges?.[index] ?? null,
        updatedAtMs: row.updated_at.getTime(),
      });
    }
    const { slice = recipients.length } = this.#task;
    this.#isSlice = slice < recipients.length;
    recipients.length = Math.min(slice, recipients.length);
    this.#savedAtMs = new Map(recipients.map((recipient) => [recipient.index, recipient.updatedAtMs]));
    return recipients;
  }

  async #badges(batch: Batch, change: 'Increment' | number | null): Promise<(number | null)[] | null> {
    if (change === null) return null;
    if (change === 'Increment') {
      batch.badges ??= await this.#means.db.transaction((tx) => countBadges(tx, batch));
      return batch.badges;
    }
    if (batch.attempt === 0) await setBadges(this.#means.db, batch.appId, batch.recipients, change);
    return null;
  }

  #note(batch: Batch, index: number, attempt: Attempt): void {
    if (this.#settled[index] !== openCode) return;
    const isTrouble = showsTrouble(attempt);
    if (isTrouble !== null) this.#showing.asked += 1;
    if (isTrouble) this.#showing.troubled += 1;
    switch (attempt.kind) {
      case 'sent':
        this.#settle(index, 'sent');
        break;
      case 'rejected':
        this.#fail(batch, index, attempt);
        break;
      case 'invalid_token':
        this.#fail(
          batch,
          index,
          { ...attempt, outcome: 'invalid_token' },
          this.#deadAsOf(index, attempt.deadSinceMs),
        );
        break;
      case 'retry':
        this.#retry(index, attempt, attempt.afterMs);
        break;
      case 'unknown':
        if (attempt.isRepeatHidden && batch.tries < maxUnknownAttempts)
          this.#retry(index, { status: 0, reason: attempt.reason, mayHaveArrived: true });
        else this.#fail(batch, index, { outcome: 'failed', status: 0, reason: 'unknown' });
        break;
      case 'halt':
        this.#halt ??= attempt.sentence;
        this.#fail(batch, index, { outcome: 'failed', status: attempt.status, reason: attempt.reason });
        break;
    }
  }

  /** A token is dead only if the installation was not saved after the gateway found it so (gateways-apns 1.6). */
  #deadAsOf(index: number, deadSinceMs: number | undefined): number | null {
    const savedAtMs = this.#savedAtMs.get(index);
    if (savedAtMs === undefined) return null;
    return deadSinceMs === undefined || savedAtMs < deadSinceMs ? savedAtMs : null;
  }

  #settle(index: number, outcome: Outcome): void {
    this.#settled[index] = outcomeCode(outcome);
    this.#changes += 1;
  }

  #fail(
    batch: Batch,
    index: number,
    failure: { outcome: Outcome; status: number; reason: string },
    deadAsOfMs: number | null = null,
  ): void {
    this.#settle(index, failure.outcome);
    const { outcome, status, reason } = failure;
    this.#failures.push({ installation: batch.recipients[index] ?? 0, outcome, status, reason, deadAsOfMs });
  }

  #retry(index: number, why: Why & { mayHaveArrived?: boolean }, afterMs: number | null = null): void {
    this.#settled[index] = movedCode;
    this.#retries.add(index, afterMs, why.status > 0 || why.mayHaveArrived === true, why);
  }

  #giveUp(batch: Batch, sentence: string): void {
    this.#halt = sentence;
    for (const index of batch.recipients.keys())
      if (this.#settled[index] === openCode)
        this.#fail(batch, index, { outcome: 'failed', status: 0, reason: sentence });
  }

  #isStopped(): boolean {
    const { stop } = this.#task;
    return stop !== undefined && Atomics.load(new Int32Array(stop), 0) === 1;
  }

  /** Every 100 ms: has the dispatcher stopped, or somebody the push, and is there anything new to write down? */
  #tick(batch: Batch): void {
    if (Atomics.load(this.#means.stopFlag, 0) === 1 || this.#isStopped()) this.#stop.abort();
    if (cutCount(this.#means.cuts, batch.pushId) !== this.#cutCount) {
      this.#isCut = true;
      this.#stop.abort();
    }
    if (this.#writing || this.#checkpointed === this.#changes) return;
    this.#writing = this.#checkpoint(batch).finally(() => {
      this.#writing = undefined;
    });
  }

  /** Recipients that wait for a retry stay open here: until their new batch is written they are this one's. */
  async #checkpoint(batch: Batch): Promise<void> {
    const changes = this.#changes;
    const failures = this.#failures.slice(this.#noted);
    const settled = this.#withoutMoved();
    try {
      await checkpointBatch(this.#means.db, batch, settled, failures);
      this.#checkpointed = changes;
      this.#noted += failures.length;
    } catch (error) {
      this.#means.log.warn({ err: error }, 'a checkpoint could not be written');
    }
  }

  #withoutMoved(): Uint8Array<ArrayBuffer> {
    return this.#settled.map((code) => (code === movedCode ? openCode : code));
  }

  #result(batch: Batch): DeliverResult {
    // Handed back: those that could not leave any more are reported as to be tried again, and simply go on later.
    if (this.#stop.signal.aborted) this.#settled = this.#withoutMoved();
    const isComplete = !this.#settled.includes(openCode);
    const { calls, seconds } = this.#means.senders.drainCalls(batch.connector);
    return {
      connector: batch.connector,
      profile: batch.profile,
      attempt: batch.attempt,
      // Stopped half-way: those that wait for a retry go back with the rest.
      settled: isComplete ? this.#settled : this.#withoutMoved(),
      failures: this.#failures,
      isCut: this.#isCut,
      retries: isComplete ? this.#retries.of(batch) : [],
      isSlice: this.#isSlice,
      showing: this.#showing,
      halt: this.#halt,
      calls,
      callSeconds: [{ connector: batch.connector, seconds }],
    };
  }
}
