import { randomUUID } from 'node:crypto';
import { type BreakerTiming, isUnhealthy } from '../../shared/breaker.ts';
import { type Clock, dayMs, sleep } from '../../shared/clock.ts';
import type { Database, Handle } from '../../shared/db/pool.ts';
import {
  clearGatewayFailure,
  deleteBreakerStatesOf,
  deleteOldBreakerStates,
  deleteOldGatewayFailures,
  findBreakerState,
  findFailingElsewhere,
  hasAnsweredElsewhere,
  isOpenElsewhere,
  lockBreaker,
  readBreakerOverrides,
  recordGatewayFailure,
  saveBreakerState,
} from '../../shared/db/tables/gateways.ts';
import type { WebhookEvents } from '../../shared/db/webhook-events.ts';
import {
  type BreakerKey,
  type BreakerState,
  breakerIdOf,
  breakerStates,
  type GatewayFailure,
  type OverrideState,
  parseBreakerId,
} from '../../shared/domain/breaker.ts';
import { profileConnectorIds } from '../../shared/domain/labels.ts';
import { reasonText, shortenReason } from '../../shared/domain/reasons.ts';
import type { Metrics } from '../../shared/metrics.ts';
import type { Logger } from '../../shared/process/logging.ts';
import type { ConcurrencySlot } from '../../shared/queue/consumer.ts';
import { TtlCache } from '../../shared/ttl-cache.ts';
import {
  type GatewayHealth,
  GatewayQueue,
  type PermitAnswer,
  unwatchedPermit,
} from './gateway-queue.ts';
import { InFlightBatches } from './in-flight-batches.ts';

/**
 * Minimum interval of writes for one gateway. It applies if the gateway alternates between failing
 * and answering.
 */
const writeEveryMs = 1000;

/** Interval at which the time of a lasting failure is updated. */
const renewEveryMs = 10_000;

/**
 * Maximum length of a stored reason. Reasons come from fixed sets, so this limit only guards
 * against a defect.
 */
const maxReasonChars = 200;

/** Age at which the failure of a gateway without traffic is deleted. */
const retentionMs = dayMs;

interface Entry {
  /** Current failure; null if the gateway answers; undefined if unknown. */
  failure: GatewayFailure | null | undefined;
  /** Failure that was written last. */
  written: GatewayFailure | null | undefined;
  writtenAtMs: number;
}

/**
 * Stores the last failure of each gateway in the table `gateway_failure`, which all processes read.
 * Writes at most once per gateway and second, and nothing while the gateway answers.
 */
class GatewayFailures {
  readonly #options: Pick<BreakersOptions, 'db' | 'clock' | 'log'>;
  readonly #entries = new WeakMap<GatewayQueue, Entry>();
  #writes: Promise<void> = Promise.resolve();

  constructor(options: Pick<BreakersOptions, 'db' | 'clock' | 'log'>) {
    this.#options = options;
  }

  /**
   * Records the health sample of a batch. An unhealthy sample counts as a failure here and in the
   * breaker.
   */
  record(queue: GatewayQueue, { health, failureReason }: GatewayHealth): void {
    const entry = this.#entryOf(queue);
    if (failureReason !== null && isUnhealthy(health))
      entry.failure = {
        reason: shortenReason(failureReason, maxReasonChars),
        at: new Date(this.#options.clock.now()),
      };
    else if (health.requests > 0) entry.failure = null;
    this.#sync(queue, entry);
  }

  /**
   * Returns the reason of a gateway's current failure. Returns undefined if the gateway answers or
   * was not used.
   */
  reasonOf(queue: GatewayQueue): string | undefined {
    return this.#entries.get(queue)?.failure?.reason;
  }

  /**
   * Writes failures that were postponed because of the minimum interval, and deletes old failures.
   */
  async maintain(queues: Iterable<GatewayQueue>): Promise<void> {
    for (const queue of queues) {
      const entry = this.#entries.get(queue);
      if (entry) this.#sync(queue, entry);
    }
    await this.#writes;
    const { db, clock } = this.#options;
    await deleteOldGatewayFailures(db, new Date(clock.now() - retentionMs));
  }

  /** Waits for pending writes. */
  async close(): Promise<void> {
    await this.#writes;
  }

  #entryOf(queue: GatewayQueue): Entry {
    const existing = this.#entries.get(queue);
    if (existing) return existing;
    const entry = { failure: undefined, written: undefined, writtenAtMs: Number.NEGATIVE_INFINITY };
    this.#entries.set(queue, entry);
    return entry;
  }

  #sync(queue: GatewayQueue, entry: Entry): void {
    const { failure } = entry;
    const sinceMs = this.#options.clock.monotonicMs() - entry.writtenAtMs;
    if (failure === undefined || sinceMs < writeEveryMs || isWritten(entry, sinceMs)) return;
    entry.written = failure;
    entry.writtenAtMs = this.#options.clock.monotonicMs();
    this.#write(queue, failure);
  }

  #write({ key }: GatewayQueue, failure: GatewayFailure | null): void {
    const { db, clock, log } = this.#options;
    this.#writes = this.#writes
      .then(() =>
        failure === null
          ? clearGatewayFailure(db, key, new Date(clock.now()))
          : recordGatewayFailure(db, key, failure),
      )
      .catch((error: unknown) => log.warn({ err: error }, 'gateway failure could not be written'));
  }
}

function isWritten({ failure, written }: Entry, sinceMs: number): boolean {
  if (!failure || !written) return failure === written;
  if (failure.reason !== written.reason) return false;
  return failure.at.getTime() === written.at.getTime() || sinceMs < renewEveryMs;
}

/** Recipients that a half-open breaker lets through as a probe of a large batch. */
const probeSize = 10;

/**
 * Maximum wait at a breaker that is forced open. The end of the override wakes the batches earlier,
 * unless its notification is lost.
 */
const maxForcedWaitMs = 15_000;

/**
 * Delay of the second wake-up. It reaches batches that were being postponed during the first one.
 */
const secondWakeMs = 500;

/**
 * Maximum age of the cached overrides. An override must apply on every dispatcher within one second
 * (protocol/admin-api.md#changes).
 */
const overridesMaxAgeMs = 400;

interface BreakerOverride {
  forced: OverrideState;
  since: Date;
}

interface BreakersOptions {
  db: Database;
  webhooks: Pick<WebhookEvents, 'emit'>;
  clock: Clock;
  log: Logger;
  timing: BreakerTiming;
  /** If a gateway has this many slow batches (`in-flight-batches.ts`), further batches wait. */
  maxSlow: number;
  /** Makes the jobs of the batches that wait for a gateway due now. */
  wakeWaiting(key: BreakerKey): Promise<void>;
}

/** The breakers of this dispatcher, one per connector, app and profile. States: README.md. */
export class Breakers {
  readonly #options: BreakersOptions;
  readonly #queues = new Map<string, GatewayQueue>();
  readonly #overrides: TtlCache<'all', Promise<Map<string, BreakerOverride>>>;
  readonly #inFlight: InFlightBatches;
  readonly #failures: GatewayFailures;
  readonly #states: BreakerStates;
  readonly #stop = new AbortController();

  constructor(options: BreakersOptions) {
    this.#options = options;
    this.#overrides = new TtlCache({ clock: options.clock, maxAgeMs: overridesMaxAgeMs });
    this.#failures = new GatewayFailures(options);
    this.#states = new BreakerStates(options);
    const readOverrides = () => this.#readOverrides();
    this.#inFlight = new InFlightBatches({ clock: options.clock, readOverrides });
  }

  /**
   * Returns the milliseconds that a batch must wait before it may request a permit; 0 if it may
   * request one now.
   */
  async waitMs(key: BreakerKey): Promise<number> {
    if (!isWatched(key)) return 0;
    const queue = this.#queueOf(key);
    const override = (await this.#readOverrides()).get(queue.id);
    if (override?.forced === 'open') {
      const forcedForMs = this.#options.clock.now() - override.since.getTime();
      return queue.enqueue(Math.min(forcedForMs / 4, maxForcedWaitMs));
    }
    if (this.#isFull(queue)) return queue.enqueue(0);
    const isPassable = override?.forced === 'closed' || queue.breaker.isPassable;
    return isPassable ? 0 : queue.enqueue(queue.breaker.cooldownLeftMs);
  }

  /**
   * Requests a permit to send one batch. A gateway without a recent answer gets one batch at a
   * time. A gateway with too many slow batches gets no further batch, so that it does not use all
   * concurrency slots of its connector (protocol/delivery.md#promise-4). `concurrencySlot` is the
   * concurrency slot of the batch. A slow batch releases it.
   */
  async acquire(key: BreakerKey, concurrencySlot?: ConcurrencySlot): Promise<PermitAnswer> {
    if (!isWatched(key)) return unwatchedPermit;
    const queue = this.#queueOf(key);
    const override = (await this.#readOverrides()).get(queue.id);
    if (override?.forced === 'open' || this.#isFull(queue)) return wait(queue.enqueue(0));
    if (override?.forced === 'closed') return this.#forcedPermit(queue, concurrencySlot);
    // The answer to a probe counts only after the breaker has judged it.
    const hasAnswer = () => queue.breaker.state === 'closed' && this.#inFlight.hasAnswer(queue.id);
    if (await queue.tryTrack(hasAnswer)) {
      const permit = this.#breakerPermit(queue, concurrencySlot);
      if (permit) return permit;
      queue.untrack();
    }
    return wait(queue.enqueue(queue.breaker.cooldownLeftMs));
  }

  /**
   * Reads the overrides after a change. Wakes the batches that wait for a gateway that is no longer
   * forced open.
   */
  async refreshOverrides(): Promise<void> {
    this.#overrides.delete('all');
    const overrides = await this.#readOverrides();
    for (const queue of this.#queues.values())
      if (queue.hasWaiting && overrides.get(queue.id)?.forced !== 'open') this.#wakeWaiting(queue);
  }

  /** Sets the gauge of breaker states. If an operator forces a state, the gauge shows it. */
  async reportTo(metrics: Metrics): Promise<void> {
    const overrides = await this.#readOverrides();
    const states = new Map<string, BreakerState>();
    for (const [id, queue] of this.#queues) states.set(id, queue.breaker.state);
    for (const [id, { forced }] of overrides) states.set(id, forced);
    metrics.breakerState.reset();
    for (const [id, state] of states) {
      const key = parseBreakerId(id);
      if (!key) continue;
      const { connector, appId: app, profile } = key;
      metrics.breakerState.set({ connector, app, profile }, breakerStates.indexOf(state));
    }
  }

  /**
   * Renews the stored states, reads the states of other dispatchers, and drops breakers without
   * traffic.
   */
  async maintain(): Promise<void> {
    for (const [id, queue] of this.#queues) {
      const { breaker } = queue;
      if (breaker.state !== 'closed') {
        // A half-open breaker without waiting batches sends no probe, so it would stay half-open
        // while another dispatcher sends. Close it if the other dispatcher got an answer. If
        // batches wait, only the breaker's own probe decides, because the gateway may be
        // unreachable for this dispatcher only.
        const isWithoutProbe = breaker.state === 'half-open' && !queue.hasWaiting;
        if (isWithoutProbe && (await this.#states.hasAnsweredElsewhere(queue)))
          breaker.closeByPeer();
        this.#states.write(queue);
      } else if (queue.isIdle) {
        breaker.close();
        this.#queues.delete(id);
      }
    }
    await this.#states.shareAnswers(this.#queues);
    await this.#failures.maintain(this.#queues.values());
    await this.#states.maintain();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#inFlight.close();
    for (const { breaker } of this.#queues.values()) breaker.close();
    await this.#failures.close();
    await this.#states.close();
  }

  /**
   * Returns a permit for a breaker that an operator forced closed. The breaker does not judge the
   * result.
   */
  #forcedPermit(queue: GatewayQueue, concurrencySlot: ConcurrencySlot | undefined): PermitAnswer {
    const batch = this.#inFlight.track(queue.id, concurrencySlot);
    return {
      kind: 'permit',
      progressMemory: batch.progress.memory,
      release: async (health) => {
        this.#inFlight.untrack(batch);
        if (health) this.#failures.record(queue, health);
        return true;
      },
    };
  }

  /**
   * Returns a permit of the breaker for a batch that the queue counts as in flight. Returns
   * undefined while the breaker lets no batch pass.
   */
  #breakerPermit(
    queue: GatewayQueue,
    concurrencySlot: ConcurrencySlot | undefined,
  ): PermitAnswer | undefined {
    const isProbe = queue.breaker.state === 'half-open';
    const permit = queue.breaker.acquire();
    if (!permit) return undefined;
    const batch = this.#inFlight.track(queue.id, concurrencySlot);
    return {
      kind: 'permit',
      ...(isProbe ? { probeSize } : {}),
      progressMemory: batch.progress.memory,
      release: async (health) => {
        // Record the failure before the breaker judges it. The breaker logs its change of state
        // with this reason.
        if (health) this.#failures.record(queue, health);
        await permit.release(health?.health);
        this.#inFlight.untrack(batch);
        if (health && health.health.requests > health.health.failed) queue.markHealthy();
        queue.untrack();
        // Tries count only if the breaker is closed. Otherwise an outage of an hour would use up
        // all tries.
        return queue.breaker.state === 'closed';
      },
    };
  }

  /**
   * Returns the breakers that operators have forced open or closed, by breaker id. All dispatchers
   * share them in the database.
   */
  #readOverrides(): Promise<Map<string, BreakerOverride>> {
    return this.#overrides.getOrMake('all', () => readBreakerOverrides(this.#options.db));
  }

  #isFull({ id }: GatewayQueue): boolean {
    return this.#inFlight.slowOf(id) >= this.#options.maxSlow;
  }

  #queueOf(key: BreakerKey): GatewayQueue {
    const queue = this.#queues.get(breakerIdOf(key)) ?? this.#createQueue(key);
    queue.markUsed();
    return queue;
  }

  #createQueue(key: BreakerKey): GatewayQueue {
    const { clock, timing } = this.#options;
    const onChange = (state: BreakerState) => this.#onChange(queue, state);
    // Batches that found the gateway silent would otherwise return only after their delay.
    const onFirstAnswer = () => {
      if (queue.hasWaiting) this.#wakeWaiting(queue);
    };
    const queue: GatewayQueue = new GatewayQueue(key, { clock, timing, onChange, onFirstAnswer });
    this.#queues.set(queue.id, queue);
    return queue;
  }

  #onChange(queue: GatewayQueue, state: BreakerState): void {
    const failure = state === 'closed' ? undefined : this.#failures.reasonOf(queue);
    const reason = failure && reasonText(failure);
    this.#options.log.warn({ breaker: queue.id, state, reason }, 'a breaker changed its state');
    this.#states.writeChange(queue, reason);
    if (state === 'closed' && queue.hasWaiting) this.#wakeWaiting(queue);
  }

  /**
   * Wakes the waiting batches twice. The second time reaches batches that were being postponed
   * during the first.
   */
  #wakeWaiting(queue: GatewayQueue): void {
    const { wakeWaiting, log } = this.#options;
    const wakeTwice = async () => {
      queue.clear();
      await wakeWaiting(queue.key);
      await sleep(secondWakeMs, this.#stop.signal);
      if (!this.#stop.signal.aborted) await wakeWaiting(queue.key);
    };
    wakeTwice().catch((error: unknown) =>
      log.warn({ err: error }, 'could not wake waiting batches'),
    );
  }
}

const wait = (afterMs: number): PermitAnswer => ({ kind: 'wait', afterMs });

/**
 * Returns whether a connector has breakers. The device channel has none, because it writes to our
 * own database and has no gateway.
 */
function isWatched({ connector }: BreakerKey): boolean {
  return profileConnectorIds.some((id) => id === connector);
}

/**
 * Stores the breaker states of this dispatcher in the table `breaker_state`, and reads the states
 * of other dispatchers.
 */
class BreakerStates {
  readonly #options: Pick<BreakersOptions, 'db' | 'log' | 'webhooks'>;
  /** Name of this dispatcher in the table. */
  readonly #dispatcher = randomUUID();
  /** Time of the last answer that this dispatcher has shared, in ms. */
  readonly #sharedMs = new WeakMap<GatewayQueue, number>();
  #writes: Promise<void> = Promise.resolve();

  constructor(options: Pick<BreakersOptions, 'db' | 'log' | 'webhooks'>) {
    this.#options = options;
  }

  /** Writes the state of one breaker in the background. */
  write(queue: GatewayQueue): void {
    const { breaker, since } = queue;
    this.#write(queue, { state: breaker.state, since });
  }

  /**
   * Writes a changed state of one breaker in the background. Reports it to webhooks if it is the
   * first dispatcher whose breaker opened, or the last one whose breaker closed.
   */
  writeChange(queue: GatewayQueue, reason: string | undefined): void {
    const { breaker, since } = queue;
    const { state } = breaker;
    this.#write(queue, { state, since }, async (tx) => {
      if (state === 'half-open') return;
      const { key, id } = queue;
      if (await isOpenElsewhere(tx, key, this.#dispatcher)) return;
      const data = {
        breaker: id,
        connector: key.connector,
        profile: key.profile,
        reason: reason ?? null,
        isForced: false,
      };
      const type = state === 'open' ? 'breaker.opened' : 'breaker.closed';
      await this.#options.webhooks.emit(tx, { appId: key.appId, type, data });
    });
  }

  /**
   * Returns whether another dispatcher got an answer from the gateway after this breaker opened.
   */
  hasAnsweredElsewhere({ key, openedAt }: GatewayQueue): Promise<boolean> {
    return hasAnsweredElsewhere(this.#options.db, key, {
      dispatcher: this.#dispatcher,
      since: openedAt,
    });
  }

  /**
   * Stores the last successful answer of each gateway that another dispatcher reports as failing.
   * The half-open breaker of that dispatcher can then close, even if it sends nothing itself.
   */
  async shareAnswers(queues: ReadonlyMap<string, GatewayQueue>): Promise<void> {
    for (const id of await findFailingElsewhere(this.#options.db, this.#dispatcher)) {
      const queue = queues.get(id);
      const answeredAt = queue?.breaker.state === 'closed' ? queue.healthyAt : null;
      if (!queue || !answeredAt || answeredAt.getTime() <= (this.#sharedMs.get(queue) ?? 0))
        continue;
      this.#sharedMs.set(queue, answeredAt.getTime());
      this.#write(queue, { state: 'closed', since: answeredAt });
    }
  }

  /** Waits for pending writes and deletes old states. */
  async maintain(): Promise<void> {
    await this.#writes;
    await deleteOldBreakerStates(this.#options.db);
  }

  /** Waits for pending writes and deletes the states of this dispatcher. */
  async close(): Promise<void> {
    await this.#writes;
    await deleteBreakerStatesOf(this.#options.db, this.#dispatcher).catch(() => undefined);
  }

  #write(
    { key, breaker }: GatewayQueue,
    own: { state: BreakerState; since: Date },
    onSaved?: (tx: Handle) => Promise<void>,
  ): void {
    const probeInMs = own.state === 'open' ? breaker.cooldownLeftMs : null;
    const stored = { dispatcher: this.#dispatcher, ...own, probeInMs };
    this.#writes = this.#writes
      .then(() =>
        onSaved
          ? this.#options.db.transaction(async (tx) => {
              await lockBreaker(tx, key);
              const before = await findBreakerState(tx, key, this.#dispatcher);
              await saveBreakerState(tx, key, stored);
              // A failed probe of a half-open breaker opens it again, which is no news.
              if ((before ?? 'closed') === 'closed' || own.state === 'closed') await onSaved(tx);
            })
          : saveBreakerState(this.#options.db, key, stored),
      )
      .catch((error: unknown) =>
        this.#options.log.warn({ err: error }, 'breaker state could not be written'),
      );
  }
}
