/** Calls of one app that may begin in one turn of the event loop, however long they take. */
const perTurn = 2;
/** While a turn is younger than this, its calls are cheap and any number may begin: they need no pause. */
const cheapTurnMs = 1;

/**
 * Shares the event loop between apps: reading a large condition keeps it for milliseconds, and everybody else's next
 * step waits for the end of a turn. Once a turn lasts a millisecond an app begins no more than a few calls in it, the rest
 * of them in the following ones, in their order. A call that is alone begins at once.
 */
export class LoopShare {
  /** How many calls began in this turn, by app. */
  #begun = new Map<string, number>();
  readonly #waiting = new Map<string, (() => void)[]>();
  #isTurnCounted = false;
  #turnBeganMs = 0;
  readonly #monotonicMs: () => number;

  /** `monotonicMs` gives milliseconds of a clock that never goes backwards. */
  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /** Resolves when a call of this app may begin; undefined when it may at once. */
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
