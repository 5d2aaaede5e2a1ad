/** Work was turned away: too much of its lane waits already, or its turn did not come in time. */
export class QueueFull extends Error {
  override name = 'QueueFull';
  /** The lane has used up its own share; false when other lanes kept it waiting. */
  readonly isOfLane: boolean;

  constructor({ isOfLane }: { isOfLane: boolean }) {
    super('too much work waits');
    this.isOfLane = isOfLane;
  }
}

export interface FairQueueLimits {
  /** Pieces of work at a time, of all lanes together. */
  atOnce: number;
  /** Pieces of work of one lane at a time; as many as of all lanes when absent. */
  perLane?: number;
  /** Pieces of work of one lane that may wait. */
  maxWaiting: number;
  /** How long one may wait; without end when absent. */
  maxWaitMs?: number;
}

interface Waiting {
  begin(): void;
}

interface Lane {
  running: number;
  waiting: Set<Waiting>;
}

/**
 * Runs a few pieces of work at a time and takes turns between lanes, so that many calls of one lane do not make the
 * others wait behind them. Work begins within the call when there is a place for it.
 */
export class FairQueue {
  readonly #limits: Required<FairQueueLimits>;
  /** Lanes with work, the one whose turn is next first. */
  readonly #lanes = new Map<string, Lane>();
  #running = 0;

  constructor(limits: FairQueueLimits) {
    this.#limits = { perLane: limits.atOnce, maxWaitMs: 0, ...limits };
  }

  /**
   * Resolves with what `work` gives, when its turn has come. `maxWaitMs` replaces the queue's own. Throws `QueueFull`
   * at once, or after that time.
   */
  async run<T>(lane: string, work: () => Promise<T>, maxWaitMs = this.#limits.maxWaitMs): Promise<T> {
    const own = this.#lanes.get(lane) ?? { running: 0, waiting: new Set() };
    this.#lanes.set(lane, own);
    // While there is a place, only lanes that have their share wait.
    if (this.#running < this.#limits.atOnce && own.running < this.#limits.perLane) this.#take(own);
    else await this.#wait(lane, own, maxWaitMs);
    try {
      return await work();
    } finally {
      this.#leave(lane, own);
    }
  }

  #take(own: Lane): void {
    own.running += 1;
    this.#running += 1;
  }

  #wait(lane: string, own: Lane, maxWaitMs: number): Promise<void> {
    if (own.waiting.size >= this.#limits.maxWaiting) {
      this.#drop(lane, own);
      return Promise.reject(new QueueFull({ isOfLane: true }));
    }
    if (own.waiting.size === 0) this.#moveToEnd(lane, own);
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        own.waiting.delete(waiting);
        this.#drop(lane, own);
        reject(new QueueFull({ isOfLane: own.running >= this.#limits.perLane }));
      };
      const timer = maxWaitMs > 0 ? setTimeout(giveUp, maxWaitMs) : undefined;
      const begin = () => {
        clearTimeout(timer);
        resolve();
      };
      const waiting = { begin };
      own.waiting.add(waiting);
    });
  }

  #leave(lane: string, own: Lane): void {
    own.running -= 1;
    this.#running -= 1;
    this.#drop(lane, own);
    this.#next();
  }

  /** Forgets a lane that has no work. */
  #drop(lane: string, { running, waiting }: Lane): void {
    if (running === 0 && waiting.size === 0) this.#lanes.delete(lane);
  }

  #moveToEnd(lane: string, own: Lane): void {
    this.#lanes.delete(lane);
    this.#lanes.set(lane, own);
  }

  /** Gives a free place to the first lane that has work and not its share; the lane goes to the end. */
  #next(): void {
    for (const [name, lane] of this.#lanes) {
      if (this.#running >= this.#limits.atOnce) return;
      const [first] = lane.waiting;
      if (!first || lane.running >= this.#limits.perLane) continue;
      lane.waiting.delete(first);
      this.#moveToEnd(name, lane);
      this.#take(lane);
      first.begin();
    }
  }
}
