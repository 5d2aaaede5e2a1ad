/** Error of rejected work: its lane's queue is full, or its turn did not come in time. */
export class QueueFull extends Error {
  override name = 'QueueFull';
  /** True if the lane has used up its own share; false if other lanes kept it waiting. */
  readonly isOfLane: boolean;

  constructor({ isOfLane }: { isOfLane: boolean }) {
    super('too much work waits');
    this.isOfLane = isOfLane;
  }
}

export interface FairQueueLimits {
  /** Concurrent tasks of all lanes. */
  atOnce: number;
  /** Concurrent tasks of one lane; as many as of all lanes by default. */
  perLane?: number;
  /** Waiting tasks of one lane. */
  maxWaiting: number;
  /** Time limit of waiting; none by default. */
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
 * Round-robin queue: runs a limited number of tasks at a time and alternates between lanes, so that many calls of one
 * lane do not delay the others. A task starts within the call if there is capacity.
 */
export class FairQueue {
  readonly #limits: Required<FairQueueLimits>;
  /** Lanes with tasks; the next in turn is first. */
  readonly #lanes = new Map<string, Lane>();
  #running = 0;

  constructor(limits: FairQueueLimits) {
    this.#limits = { perLane: limits.atOnce, maxWaitMs: 0, ...limits };
  }

  /** Number of tasks that wait for their turn. */
  get waiting(): number {
    let waiting = 0;
    for (const lane of this.#lanes.values()) waiting += lane.waiting.size;
    return waiting;
  }

  /**
   * Runs `work` in its turn and resolves with its result. `maxWaitMs` overrides the limit of the queue. Throws
   * `QueueFull` at once or after that time.
   */
  async run<T>(lane: string, work: () => Promise<T>, maxWaitMs = this.#limits.maxWaitMs): Promise<T> {
    const own = this.#lanes.get(lane) ?? { running: 0, waiting: new Set() };
    this.#lanes.set(lane, own);
    // While there is capacity, only lanes that have used up their share wait.
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

  /** Removes a lane without tasks. */
  #drop(lane: string, { running, waiting }: Lane): void {
    if (running === 0 && waiting.size === 0) this.#lanes.delete(lane);
  }

  #moveToEnd(lane: string, own: Lane): void {
    this.#lanes.delete(lane);
    this.#lanes.set(lane, own);
  }

  /** Starts a task of the first lane below its share and moves the lane to the end. */
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
