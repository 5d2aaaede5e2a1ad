/** Keeps the event loop responsive: long work is spread over ticks, and apps share the ticks. */
import { setImmediate as nextTick } from 'node:timers/promises';
import { systemClock } from './clock.ts';

/** Work that is done in one tick. */
const maxTickMs = 5;

/**
 * Maps a list in ticks of a few milliseconds, so that a list of megabytes delays no other call:
 * `map` runs for every item in order.
 */
export async function mapInTicks<T, R>(items: readonly T[], map: (item: T) => R): Promise<R[]> {
  const mapped: R[] = [];
  let beganMs = systemClock.monotonicMs();
  for (const item of items) {
    mapped.push(map(item));
    if (systemClock.monotonicMs() - beganMs < maxTickMs) continue;
    await nextTick();
    beganMs = systemClock.monotonicMs();
  }
  return mapped;
}

/** Calls of one app that may start in one tick, however long the tick lasts. */
const callsPerTick = 2;
/** In a tick shorter than this any number of calls may start: they are cheap. */
const cheapTickMs = 1;

/**
 * Shares the event loop between apps: parsing a large condition blocks it for milliseconds. Once a
 * tick lasts a millisecond, an app starts only a few more calls in it. Its other calls start in the
 * following ticks, in order. A single call starts at once.
 */
export class LoopShare {
  /** Calls started in this tick, by app. */
  #started = new Map<string, number>();
  readonly #waiting = new Map<string, (() => void)[]>();
  #isTickCounted = false;
  #tickBeganMs = 0;
  readonly #monotonicMs: () => number;

  /** `monotonicMs` returns milliseconds of a monotonic clock. */
  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /** Resolves when a call of this app may start; returns undefined if it may start at once. */
  enter(appId: string): Promise<void> | undefined {
    this.#countTick();
    const waiting = this.#waiting.get(appId);
    if (!waiting && this.#take(appId)) return undefined;
    return new Promise((resolve) => {
      if (waiting) waiting.push(resolve);
      else this.#waiting.set(appId, [resolve]);
    });
  }

  #take(appId: string): boolean {
    const started = this.#started.get(appId) ?? 0;
    if (started >= callsPerTick && this.#monotonicMs() - this.#tickBeganMs >= cheapTickMs)
      return false;
    this.#started.set(appId, started + 1);
    return true;
  }

  #countTick(): void {
    if (this.#isTickCounted) return;
    this.#isTickCounted = true;
    this.#tickBeganMs = this.#monotonicMs();
    setImmediate(() => this.#nextTick());
  }

  #nextTick(): void {
    this.#isTickCounted = false;
    this.#started = new Map();
    for (const [appId, waiting] of this.#waiting) {
      this.#countTick();
      for (const start of waiting.splice(0, callsPerTick)) {
        this.#take(appId);
        start();
      }
      if (waiting.length === 0) this.#waiting.delete(appId);
    }
  }
}
