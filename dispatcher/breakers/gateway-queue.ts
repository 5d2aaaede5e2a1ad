import { randomInt } from 'node:crypto';
import { Breaker, type BreakerTiming } from '../../shared/breaker.ts';
import { type Clock, sleep } from '../../shared/clock.ts';
import { type BreakerKey, type BreakerState, breakerIdOf } from '../../shared/domain/breaker.ts';

/** Batches that wait come back one after another, so that a long queue does not turn in step. */
const slotMs = 10;
const shortestWaitMs = 500;

/** A gateway that answered within this time may be sent to by many batches at once. */
const provenForMs = 60_000;
/** How long further batches wait in their place for the first answer of one that did not. */
const proofMs = 300;

const idleMs = 600_000;

export interface GatewayQueueOptions {
  clock: Clock;
  timing: BreakerTiming;
  onChange(state: BreakerState): void;
}

/** One gateway as one profile of an app reaches it, and the batches that wait for it. */
export class GatewayQueue {
  readonly key: BreakerKey;
  readonly id: string;
  readonly breaker: Breaker;
  since: Date;
  readonly #clock: Clock;
  #usedAtMs = 0;
  /** Where the queue of waiting batches ends, by the monotonic clock. */
  #lastSlotMs = 0;
  /** When the last of them is back. */
  #awaitedUntilMs = 0;
  #provenAtMs = Number.NEGATIVE_INFINITY;
  #inFlight = 0;
  /** Resolves when a batch comes back. */
  #news = Promise.withResolvers<void>();

  constructor(key: BreakerKey, { clock, timing, onChange }: GatewayQueueOptions) {
    this.key = key;
    this.id = breakerIdOf(key);
    this.#clock = clock;
    this.since = new Date(clock.now());
    const monotonicMs = () => clock.monotonicMs();
    this.breaker = new Breaker(timing, monotonicMs, (state) => {
      this.since = new Date(clock.now());
      if (state === 'open') this.#provenAtMs = Number.NEGATIVE_INFINITY;
      onChange(state);
    });
  }

  use(): this {
    this.#usedAtMs = this.#clock.monotonicMs();
    return this;
  }

  get isIdle(): boolean {
    return this.#inFlight === 0 && this.#clock.monotonicMs() - this.#usedAtMs > idleMs;
  }

  /** Whether batches were told to wait that are not back yet. */
  get isAwaited(): boolean {
    return this.#awaitedUntilMs > this.#clock.monotonicMs();
  }

  /** Milliseconds until a waiting batch comes back: behind those that wait already, with jitter. */
  slot(restMs: number): number {
    const nowMs = this.#clock.monotonicMs();
    const leastMs = Math.max(restMs, shortestWaitMs);
    this.#lastSlotMs = Math.max(this.#lastSlotMs + slotMs, nowMs + leastMs);
    const backAtMs = this.#lastSlotMs + randomInt(Math.ceil(leastMs / 4));
    this.#awaitedUntilMs = Math.max(this.#awaitedUntilMs, backAtMs);
    return Math.ceil(backAtMs - nowMs);
  }

  /** Those who waited were called back: the queue begins anew. */
  forgetSlots(): void {
    this.#lastSlotMs = 0;
    this.#awaitedUntilMs = 0;
  }

  /** The gateway answered: it may be sent to by many batches at once. */
  markHealthy(): void {
    this.#provenAtMs = this.#clock.monotonicMs();
  }

  /** False while another batch tries a gateway that has not answered lately. Waits a little for its answer. */
  async canProbe(): Promise<boolean> {
    if (this.#isFree) return true;
    await Promise.race([this.#news.promise, sleep(proofMs)]);
    return this.#isFree;
  }

  /** Does the work of one batch in flight. */
  async track<T>(work: () => Promise<T>): Promise<T> {
    this.#inFlight += 1;
    try {
      return await work();
    } finally {
      this.#inFlight -= 1;
      this.#news.resolve();
      this.#news = Promise.withResolvers();
    }
  }

  get #isFree(): boolean {
    return this.#inFlight === 0 || this.#clock.monotonicMs() - this.#provenAtMs < provenForMs;
  }
}
