import { EqualRefusals } from '../../connectors/contract/attempt-result.ts';
import { type Report, toPushMessage } from '../../connectors/contract/connector.ts';
import { isFailure } from '../../connectors/contract/gateway-health.ts';
import { recallMessages } from '../../connectors/contract/recall.ts';
import { connectors } from '../../connectors/registry.ts';
import { classesOf } from '../../connectors/routing.ts';
import { Batcher } from '../../shared/batcher.ts';
import type { Clock } from '../../shared/clock.ts';
import type { AppCache } from '../../shared/db/app-cache.ts';
import { isConnectionFailure } from '../../shared/db/limits/database-errors.ts';
import type { Database } from '../../shared/db/pool.ts';
import { type Batch, type BatchKey, checkpointBatch } from '../../shared/db/tables/batches.ts';
import { findPush } from '../../shared/db/tables/pushes.ts';
import {
  type LoadedBatch,
  loadBatches,
  type RecipientGroup,
  type TokenField,
} from '../../shared/db/tables/recipients.ts';
import { orderIn } from '../../shared/domain/pushes/languages.ts';
import type { OpenPush } from '../../shared/domain/pushes/record.ts';
import type { Logger } from '../../shared/process/logging.ts';
import { TtlCache } from '../../shared/ttl-cache.ts';
import { activityGroups } from './activity-tokens.ts';
import { type LatenessBudget, sendPaced } from './pace.ts';
import { personalSender } from './personal-sender.ts';
import { RecallSender } from './recall-sender.ts';
import { type OpenBatch, openRecipients } from './recipients.ts';
import type { Lease, SenderCache } from './sender-cache.ts';
import { InFlightBatch, interruptCount } from './shared-memory.ts';
import { Tally } from './tally.ts';
import type { DeliverResult, DeliverTask } from './task.ts';

/** Rows that a batch needs. A row is undefined if it was deleted. */
interface BatchRows {
  loaded: LoadedBatch | undefined;
  push: OpenPush | undefined;
}

/** Maximum recipients of all batches of one statement. A larger batch has its own statement. */
const maxRecipientsPerStatement = 1000;

type LoadedKey = BatchKey & Pick<DeliverTask, 'size'>;

/**
 * Reads the rows of batches in a worker thread. Most batches have one recipient, so batches that
 * are loaded at the same time share one statement.
 */
export class BatchLoader {
  readonly #db: Database;
  readonly #batches: Record<TokenField, Batcher<LoadedKey, LoadedBatch | undefined>>;

  /** `concurrency`: concurrent statements of one kind. */
  constructor(db: Database, concurrency: number) {
    const ofField = (field: TokenField) =>
      new Batcher<LoadedKey, LoadedBatch | undefined>({
        concurrency,
        size: maxRecipientsPerStatement,
        weightOf: ({ size }: LoadedKey) => size,
        run: (keys) => loadBatches(db, keys, field),
        runOne: async (key) => (await loadBatches(db, [key], field))[0],
        isShared: isConnectionFailure,
      });
    this.#db = db;
    this.#batches = {
      deviceToken: ofField('deviceToken'),
      registrationId: ofField('registrationId'),
      installationId: ofField('installationId'),
      subscription: ofField('subscription'),
    };
  }

  /** Reads a batch with its recipients. Also reads its push, unless the task contains it. */
  async load({
    appId,
    batchId,
    pushId,
    connector,
    size,
    plannedPush,
  }: DeliverTask): Promise<BatchRows> {
    const key = { appId, batchId, size };
    const tokenField = connectors.get(connector)?.tokenField ?? 'deviceToken';
    const [loaded, push] = await Promise.all([
      this.#batches[tokenField].run(key),
      plannedPush?.push ?? findPush(this.#db, appId, pushId),
    ]);
    return { loaded, push };
  }
}

/**
 * Writes the checkpoints of one batch in flight, one at a time
 * (develop/architecture.md#crash-safety).
 */
class Checkpoints {
  readonly #deps: { db: Database; log: Logger };
  readonly #batch: Batch;
  readonly #tally: Tally;
  #writing: Promise<void> | undefined;
  /** Number of changes and of failures of the tally that the last checkpoint contained. */
  #changes = 0;
  #failures = 0;

  constructor(deps: { db: Database; log: Logger }, batch: Batch, tally: Tally) {
    this.#deps = deps;
    this.#batch = batch;
    this.#tally = tally;
  }

  /** Starts a checkpoint if the tally has changed and no checkpoint is being written. */
  writeIfChanged(): void {
    if (this.#writing || this.#changes === this.#tally.changes) return;
    this.#writing = this.#write().finally(() => {
      this.#writing = undefined;
    });
  }

  /** Waits for the checkpoint that is being written. */
  async finish(): Promise<void> {
    await this.#writing;
  }

  async #write(): Promise<void> {
    const { changes, sentBy } = this.#tally;
    const failures = this.#tally.failures.slice(this.#failures);
    try {
      const states = this.#tally.checkpoint();
      await checkpointBatch(this.#deps.db, this.#batch, { states, sentBy, failures });
      this.#changes = changes;
      this.#failures += failures.length;
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'checkpoint failed');
    }
  }
}

/** Interval of checkpoints. The batch also checks at this interval whether it must stop. */
const tickMs = 100;

interface BatchSenderDeps {
  db: Database;
  senders: SenderCache;
  appCache: Pick<AppCache, 'app' | 'profiles'>;
  loader: BatchLoader;
  clock: Clock;
  latenessBudget: LatenessBudget;
  log: Logger;
  /** Becomes 1 when the dispatcher stops. */
  stopFlag: Int32Array;
  interrupts: Int32Array;
}

interface BatchWithRecipients extends OpenBatch {
  groups: RecipientGroup[];
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

  /** Sends to the open recipients. Rejects only if the database is unavailable. */
  async run(): Promise<DeliverResult> {
    const { appId, pushId, plannedPush } = this.#task;
    const { appCache, loader } = this.#deps;
    // Read before the push, so that a later pause or cancellation changes the count.
    const interrupts = interruptCount(this.#deps.interrupts, pushId);
    this.#interruptCount = plannedPush?.interruptCount ?? interrupts;
    const [{ loaded, push }, app] = await Promise.all([
      loader.load(this.#task),
      appCache.app(appId),
      // Loads the app and its profiles into the cache in parallel, because the sender needs them
      // next.
      appCache.profiles(appId),
    ]);
    if (!loaded || !push) throw new Error('the batch was deleted');
    const open = { ...loaded, tally: new Tally(loaded.batch, app?.options.unknownOutcome) };
    this.#isInterrupted = push.state !== 'sending' || interrupts !== this.#interruptCount;
    if (!this.#isInterrupted) await this.#send(open, push);
    return this.#result(open);
  }

  async #send(open: BatchWithRecipients, push: OpenPush): Promise<void> {
    const { senders } = this.#deps;
    const lease = await senders.lease(open.batch);
    if (typeof lease === 'string') {
      open.tally.failAll(lease);
      return;
    }
    try {
      await this.#sendWith(lease, open, push);
    } finally {
      await lease.settle?.();
      lease.release();
    }
  }

  async #sendWith(lease: Lease, open: BatchWithRecipients, push: OpenPush): Promise<void> {
    const { appCache, db, clock, latenessBudget } = this.#deps;
    const { language, expiresAt } = open.batch;
    const pushOrder = orderIn(push.pushOrder, language);
    const { appId, connector, profile } = open.batch;
    const classes = classesOf(await appCache.profiles(appId), connector, profile);
    const message = toPushMessage(
      { ...push, pushOrder, expiresAt: expiresAt ?? push.expiresAt },
      { connector, classes },
    );
    // A recall without a replacement has no content and changes no badge.
    const badge = lease.connector.badge?.(message) ?? null;
    const { liveActivity } = push.pushOrder;
    const tokens = liveActivity
      ? await activityGroups(
          db,
          { batch: open.batch, groups: open.groups, nowMs: clock.now() },
          { ...push, pushOrder: { ...push.pushOrder, liveActivity } },
        )
      : open;
    const recipients = await openRecipients(db, open, tokens, badge);
    const { slot, probeSize = recipients.length } = this.#task;
    this.#hasUnsent = probeSize < recipients.length;
    recipients.limit(probeSize);
    open.tally.savedAtMs = (index) => recipients.savedAtMs(index);
    const { variables, recall } = push.pushOrder;
    const messages = recall && recallMessages({ ...push, pushOrder });
    const sender = messages
      ? new RecallSender(lease, { messages, pushId: recall.pushId })
      : variables
        ? await personalSender(db, lease, open, variables)
        : lease.sender;
    const report: Report = (index, attempt) => {
      open.tally.record(index, attempt);
      this.#progress?.countAnswer(isFailure(attempt));
    };
    const checkpoints = new Checkpoints(this.#deps, open.batch, open.tally);
    const timer = setInterval(() => this.#tick(checkpoints), tickMs);
    try {
      this.#progress?.begin(recipients.length);
      const refusals = new EqualRefusals(successesOf(open.batch));
      const request = {
        pushId: push.id,
        message,
        recipients,
        signal: this.#stop.signal,
        report,
        refusals,
      };
      const isOnTime = await sendPaced(sender, request, { slot, clock, latenessBudget });
      if (!isOnTime) this.#isInterrupted = true;
    } finally {
      clearInterval(timer);
      await checkpoints.finish();
    }
  }

  /**
   * Checks whether the dispatcher, the breaker or the push was stopped, and stops the batch then.
   * Also writes a checkpoint.
   */
  #tick(checkpoints: Checkpoints): void {
    const { stopFlag, interrupts } = this.#deps;
    if (Atomics.load(stopFlag, 0) === 1 || this.#progress?.isStopped) this.#stop.abort();
    if (interruptCount(interrupts, this.#task.pushId) !== this.#interruptCount) {
      this.#isInterrupted = true;
      this.#stop.abort();
    }
    checkpoints.writeIfChanged();
  }

  #result({ batch, tally }: OpenBatch): DeliverResult {
    return {
      connector: batch.connector,
      profile: batch.profile,
      ...tally.end(this.#stop.signal.aborted),
      failures: tally.failures,
      sentBy: tally.sentBy,
      isInterrupted: this.#isInterrupted,
      hasUnsent: this.#hasUnsent,
      health: tally.health,
      failureReason: tally.failureReason,
      profileError: tally.profileError,
      messages: tally.messages,
      ...this.#deps.senders.drainCalls(batch),
    };
  }
}

/**
 * Groups of recipients that had a success, by push, connector and profile, of the latest pushes of
 * this thread. One batch may have only refusals although other batches of its push have successes.
 */
const successes = new TtlCache<string, Set<string>>({ maxEntries: 256 });

/**
 * Returns the groups of recipients that had a success in an earlier batch of the same push and
 * profile in this thread (`EqualRefusals`).
 */
function successesOf({
  pushId,
  connector,
  profile,
}: Pick<Batch, 'pushId' | 'connector' | 'profile'>): Set<string> {
  const key = `${pushId} ${connector} ${profile}`;
  const ofPush = successes.get(key) ?? new Set<string>();
  // Makes the push the newest one.
  successes.set(key, ofPush);
  return ofPush;
}
