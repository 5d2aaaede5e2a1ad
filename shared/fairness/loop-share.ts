/** Calls of one app that may start in one turn of the event loop, whatever their duration. */
const perTurn = 2;
/** In a turn shorter than this any number of calls may start: they are cheap. */
const cheapTurnMs = 1;

/**
 * Shares the event loop between apps: parsing a large condition blocks it for milliseconds. Once a turn lasts a
 * millisecond, an app starts only a few more calls in it; the others start in the following turns, in order. A single
 * call starts at once.
 */
export class LoopShare {
  /** Calls started in this turn, by app. */
  #begun = new Map<string, number>();
  readonly #waiting = new Map<string, (() => void)[]>();
  #isTurnCounted = false;
  #turnBeganMs = 0;
  readonly #monotonicMs: () => number;

  /** `monotonicMs` returns milliseconds of a monotonic clock. */
  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /** Resolves when a call of this app may start; returns undefined if it may start at once. */
  enter(appId: string): Promise<void> | undefined {
    this.#countTurn();
    const waiting = this.#waiting.get(appId);
    if (!waiting && this.#take(appId)) return undefined;
    return new Promise((resolve) => {
      if (waiting) waiting.push(resolve);
      else this.#waiting.set(appId, [resolve]);
    });
  }

  #take(appId: string): boolean {
    const begun = this.#begun.get(appId) ?? 0;
    if (begun >= perTurn && this.#monotonicMs() - this.#turnBeganMs >= cheapTurnMs) return false;
    this.#begun.set(appId, begun + 1);
    return true;
  }

  #countTurn(): void {
    if (this.#isTurnCounted) return;
    this.#isTurnCounted = true;
    this.#turnBeganMs = this.#monotonicMs();
    setImmediate(() => this.#nextTurn());
  }

  #nextTurn(): void {
    this.#isTurnCounted = false;
    this.#begun = new Map();
    for (const [appId, waiting] of this.#waiting) {
      this.#countTurn();
      for (const begin of waiting.splice(0, perTurn)) {
        this.#take(appId);
        begin();
      }
      if (waiting.length === 0) this.#waiting.delete(appId);
    }
  }
}
