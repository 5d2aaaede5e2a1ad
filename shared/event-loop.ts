/** Keeps the event loop responsive. Long work is split into ticks, and apps share the ticks. */
import { setImmediate as nextTick } from 'node:timers/promises';
import { systemClock } from './clock.ts';

/** Maximum duration of the work in one tick. */
const maxTickMs = 5;

/**
 * Calls `map` for all items in order. Pauses every few milliseconds, so that a list of megabytes
 * does not delay other calls.
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

/** Number of calls of one app that may start in any tick, however long it lasts. */
const callsPerTick = 2;
/** In a shorter tick, any number of calls may start, because they are cheap. */
const cheapTickMs = 1;

/**
 * Shares the event loop between apps, because parsing a large condition blocks it for milliseconds.
 * If a tick lasts longer than a millisecond, each app may start only a few calls in it. Its other
 * calls start in the next ticks, in order. A single call starts at once.
 */
export class LoopShare {
  /** Number of calls that started in this tick, by app. */
  #started = new Map<string, number>();
  readonly #waiting = new Map<string, (() => void)[]>();
  #isTickCounted = false;
  #tickBeganMs = 0;
  readonly #monotonicMs: () => number;

  /** `monotonicMs` returns the milliseconds of a monotonic clock. */
  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /** Resolves when a call of this app may start. Returns undefined if it may start at once. */
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
