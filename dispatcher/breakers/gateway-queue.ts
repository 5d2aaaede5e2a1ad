import { randomInt } from 'node:crypto';
import { Breaker, type BreakerTiming } from '../../shared/breaker.ts';
import { type Clock, sleep } from '../../shared/clock.ts';
import { type BreakerKey, type BreakerState, breakerIdOf } from '../../shared/domain/breaker.ts';
import type { DeliverResult } from '../sending/task.ts';

/** Facts of a sent batch that tell about the health of its gateway. */
export type GatewayHealth = Pick<DeliverResult, 'health' | 'trouble'>;

/** Permission to send one batch to its gateway. The holder releases it exactly once. */
export interface GatewayPermit {
  kind: 'permit';
  /** Recipients of a batch that a probe may send to; undefined: all of them. */
  probeSize?: number;
  /**
   * Memory by which the batch is watched and stopped (`sending/shared-memory.ts`); absent: it is
   * not watched.
   */
  progressMemory?: SharedArrayBuffer;
  /**
   * Gives the permit back with the health that the batch showed; without one, sending failed for a
   * reason of ours. Resolves when the breaker has its new state, to whether the tries of this batch
   * count.
   */
  release(health: GatewayHealth | undefined): Promise<boolean>;
}

/** Answer to a batch that asks for a permit. */
export type PermitAnswer = GatewayPermit | { kind: 'wait'; afterMs: number };

/** Permit for the device channel, which has no gateway and no breaker. */
export const unwatchedPermit: GatewayPermit = {
  kind: 'permit',
  release: () => Promise.resolve(true),
};

/**
 * Distance between the returns of two waiting batches, so that a long queue does not return all at
 * once.
 */
const returnIntervalMs = 10;
const shortestWaitMs = 500;

/** Time after an answer in which the gateway counts as healthy and takes many batches at once. */
const healthyForMs = 60_000;
/**
 * While the health of a gateway is unknown, one batch probes it, and the others wait up to this
 * time for its answer. A batch that arrives later waits for one poll only, because it occupies a
 * job permit that other gateways need.
 */
const firstAnswerMs = 300;
/** Poll interval for that answer: a thread notes it in shared memory. */
const answerPollMs = 20;

const idleMs = 600_000;

export interface GatewayQueueOptions {
  clock: Clock;
  timing: BreakerTiming;
  onChange(state: BreakerState): void;
  /** Called at the first answer, and at the first one after the breaker opened. */
  onFirstAnswer?(): void;
}

/**
 * One gateway as one profile of an app reaches it: its breaker, and the batches that wait for it.
 */
export class GatewayQueue {
  readonly key: BreakerKey;
  readonly id: string;
  readonly breaker: Breaker;
  /** When the breaker changed its state last. */
  since: Date;
  /** When the breaker opened last; its creation before that. */
  openedAt: Date;
  readonly #clock: Clock;
  readonly #onFirstAnswer: (() => void) | undefined;
  #usedAtMs = 0;
  /** When the last waiting batch returns, without jitter, by the monotonic clock. */
  #lastReturnMs = 0;
  /** The same with jitter. */
  #allReturnedAtMs = 0;
  #healthyAtMs = Number.NEGATIVE_INFINITY;
  #inFlight = 0;
  /** When the first of the batches in flight began. */
  #probedAtMs = 0;
  /** Resolves when a batch in flight ends. */
  #batchEnd = Promise.withResolvers<void>();

  constructor(key: BreakerKey, { clock, timing, onChange, onFirstAnswer }: GatewayQueueOptions) {
    this.key = key;
    this.id = breakerIdOf(key);
    this.#clock = clock;
    this.#onFirstAnswer = onFirstAnswer;
    this.since = new Date(clock.now());
    this.openedAt = this.since;
    const monotonicMs = () => clock.monotonicMs();
    this.breaker = new Breaker(timing, monotonicMs, (state) => {
      this.since = new Date(clock.now());
      if (state === 'open') {
        this.#healthyAtMs = Number.NEGATIVE_INFINITY;
        this.openedAt = this.since;
      }
      onChange(state);
    });
  }

  markUsed(): void {
    this.#usedAtMs = this.#clock.monotonicMs();
  }

  get isIdle(): boolean {
    return this.#inFlight === 0 && this.#clock.monotonicMs() - this.#usedAtMs > idleMs;
  }

  /** Whether batches that were told to wait are not back yet. */
  get hasWaiting(): boolean {
    return this.#allReturnedAtMs > this.#clock.monotonicMs();
  }

  /**
   * Adds a batch to those that wait. Returns the milliseconds after which it returns: behind the
   * others, with jitter.
   */
  enqueue(leastMs: number): number {
    const nowMs = this.#clock.monotonicMs();
    const waitMs = Math.max(leastMs, shortestWaitMs);
    this.#lastReturnMs = Math.max(this.#lastReturnMs + returnIntervalMs, nowMs + waitMs);
    const returnMs = this.#lastReturnMs + randomInt(Math.ceil(waitMs / 4));
    this.#allReturnedAtMs = Math.max(this.#allReturnedAtMs, returnMs);
    return Math.ceil(returnMs - nowMs);
  }

  /** Empties the queue after its batches were woken. */
  clear(): void {
    this.#lastReturnMs = 0;
    this.#allReturnedAtMs = 0;
  }

  /** Notes an answer of the gateway: it may get many batches at once. */
  markHealthy(): void {
    const isFirst = this.healthyAt === null;
    this.#healthyAtMs = this.#clock.monotonicMs();
    if (isFirst) this.#onFirstAnswer?.();
  }

  /**
   * When the gateway answered last; null before its first answer, and after the breaker has opened.
   */
  get healthyAt(): Date | null {
    if (this.#healthyAtMs === Number.NEGATIVE_INFINITY) return null;
    return new Date(this.#clock.now() - (this.#clock.monotonicMs() - this.#healthyAtMs));
  }

  /**
   * Whether a batch may be sent beside those in flight. Waits a little for the first answer of an
   * untested gateway, to a batch in flight (`hasAnswer`) or one that ended.
   */
  async canProbe(hasAnswer: () => boolean): Promise<boolean> {
    const nowMs = this.#clock.monotonicMs();
    const untilMs = Math.max(this.#probedAtMs + firstAnswerMs, nowMs + answerPollMs);
    for (let atMs = nowMs; ; atMs += answerPollMs) {
      if (!this.#canProbe && hasAnswer()) this.markHealthy();
      if (this.#canProbe || atMs >= untilMs) return this.#canProbe;
      await Promise.race([this.#batchEnd.promise, sleep(answerPollMs)]);
    }
  }

  /** Counts a batch as in flight until `untrack`. */
  track(): void {
    if (this.#inFlight === 0) this.#probedAtMs = this.#clock.monotonicMs();
    this.#inFlight += 1;
  }

  untrack(): void {
    this.#inFlight -= 1;
    this.#batchEnd.resolve();
    this.#batchEnd = Promise.withResolvers();
  }

  get #canProbe(): boolean {
    return this.#inFlight === 0 || this.#clock.monotonicMs() - this.#healthyAtMs < healthyForMs;
  }
}
