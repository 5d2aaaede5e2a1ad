import { setImmediate } from 'node:timers/promises';
import { isDoneWithin, sleep, systemClock } from '../clock.ts';
import type { Logger } from '../process/logging.ts';
import type { JobKind } from './jobs.ts';
import type { FetchFilter, Job, JobQueue, PriorityRange } from './queue.ts';
import { type Waking, wakeTopic } from './waking.ts';

/**
 * How the work on a job ended. `done`: the handler has ended the job in its own transaction.
 * `again`: the job returns to the queue, which hands it out again after its back-off.
 */
export type JobEnd = 'done' | 'again';

export interface ConsumerOptions<T extends object> extends Waking {
  queue: JobQueue;
  log: Logger;
  kind: JobKind<T>;
  /**
   * Concurrency slots: maximum jobs in work at the same time. Jobs that have released their slot do
   * not count.
   */
  capacity: number;
  /** Limits the jobs that have released their slot. If absent, jobs keep their slot. */
  waitingJobs?: WaitingJobs;
  /** Priorities that this consumer takes. Another consumer takes the other priorities. */
  range?: PriorityRange;
  /** Name with which NOTIFY wakes this consumer (`SendOptions`). Default: the name of the queue. */
  wakeName?: string;
  /**
   * Minimum time between two fetches in ms, default 0. Jobs that arrive within this time are
   * fetched by one statement, and work that shares statements starts together. If the last fetch is
   * longer ago, a job is fetched at once.
   */
  cooldownMs?: number;
  /**
   * The cooldown after a fetch of `jobs` or more. Under load, fewer and larger groups cost less.
   */
  busyCooldown?: { jobs: number; ms: number } | undefined;
  /** Does the work and ends the job. If the handler throws, the job returns to the queue. */
  handle(job: Job<T>, context: JobContext): Promise<JobEnd>;
}

/** Context that a consumer passes to the handler of a job. */
export interface JobContext {
  /** Aborts when the job has to stop. */
  signal: AbortSignal;
  concurrencySlot: ConcurrencySlot;
}

/** A concurrency slot of a consumer, which one job holds. */
export interface ConcurrencySlot {
  /**
   * Releases the slot while the job only waits, so that the consumer can take another job. The job
   * then counts in `waitingJobs`, by default in the object that all consumers share. Does nothing
   * if `waitingJobs` is full. A job may release again to count in another object.
   */
  release(waitingJobs?: WaitingJobs): void;
}

/**
 * Limits the jobs in work that have released their slot, over all consumers that share this object.
 * This limits memory.
 */
export class WaitingJobs {
  #free: number;

  constructor(size: number) {
    this.#free = size;
  }

  tryAdd(): boolean {
    if (this.#free <= 0) return false;
    this.#free -= 1;
    return true;
  }

  remove(): void {
    this.#free += 1;
  }
}

interface Entry<T> {
  job: Job<T>;
  /**
   * The object in which the job counts after it released its slot. Undefined if the job has a slot.
   */
  waitingIn: WaitingJobs | undefined;
  takenAtMs: number;
  done: Promise<void>;
}

/** Poll interval of a consumer that nothing wakes. */
const pollMs = 60_000;
const heartbeatMs = 3000;
/**
 * Age from which a job gets heartbeats. The fetch writes the first heartbeat, and most jobs end
 * before the second.
 */
const freshMs = 1500;

/**
 * Rounds down to a multiple of 16, below 16 to a power of two. pg-boss writes LIMIT into its SQL
 * text, so this limits the number of prepared statements.
 */
const roundedDown = (count: number): number =>
  count >= 16 ? count - (count % 16) : 2 ** Math.floor(Math.log2(count));

/**
 * Takes jobs of one kind and works on them. Its states:
 *
 * - **fetching**: takes jobs until all concurrency slots are in use, or until a fetch returns fewer
 *   jobs than requested. If a group is busy, it first skips the jobs of this group (`BusyGroups`).
 *   Leads to *full* or *drained*. With a cooldown it fetches once: if slots are left after a full
 *   fetch, it leads to *cooling*. A fetch that fails leads to *full*, so that the next event repeats
 *   it.
 * - **full**: all slots are in use. A job that ends or releases its slot leads to *cooling*.
 * - **drained**: the queue was empty. A NOTIFY or the poll for due jobs leads to *cooling*. A job
 *   that ends does not, because no job waits for its slot.
 * - **cooling**: waits until the cooldown since the last fetch is over, then *fetching*. Without a
 *   cooldown it waits for the end of the tick. Jobs that end in the same tick then free their slots
 *   for one fetch.
 * - **stopping** (from every state): takes no more jobs. Waits for the jobs in work up to the grace
 *   time, aborts their signals, and waits until they have ended.
 *
 * A NOTIFY or a poll during *fetching* is not lost: it leads to *cooling* at once. Independent of
 * these states, the jobs in work get a heartbeat every 3 s.
 */
export class Consumer<T extends object> {
  readonly #options: ConsumerOptions<T>;
  readonly #stop = new AbortController();
  readonly #interrupt = new AbortController();
  /**
   * The jobs in work. A job that lost its heartbeats can be taken again while its first try still
   * runs.
   */
  readonly #active = new Set<Entry<T>>();
  readonly #busyGroups: BusyGroups<T>;
  #slotsInUse = 0;
  #taken = 0;
  /** True if the last fetch returned fewer jobs than requested. */
  #isDrained = false;
  #wake = new AbortController();
  #loop: Promise<void> | undefined;
  #heartbeat: NodeJS.Timeout | undefined;
  readonly #unlisten: (() => void)[] = [];

  constructor(options: ConsumerOptions<T>) {
    this.#options = options;
    this.#busyGroups = new BusyGroups(options.kind);
  }

  async start(): Promise<void> {
    const { listener, duePoll, kind, wakeName = kind.queue } = this.#options;
    const wake = () => this.#wake.abort('woken');
    this.#unlisten.push(
      await listener.listen(wakeTopic, (name) => {
        if (name === '' || name === wakeName) wake();
      }),
      duePoll.add(kind.queue, wake),
    );
    this.#heartbeat = setInterval(() => void this.#beat(), heartbeatMs);
    this.#loop = this.#run();
  }

  /**
   * Takes no more jobs, and waits up to `graceMs` for the jobs in work. Then aborts their signals,
   * and waits until they have ended.
   */
  async stop(graceMs: number): Promise<void> {
    for (const unlisten of this.#unlisten) unlisten();
    this.#stop.abort();
    this.#wake.abort('woken');
    await this.#loop;
    const finished = Promise.all([...this.#active].map((entry) => entry.done));
    await isDoneWithin(finished, graceMs);
    this.#interrupt.abort();
    await finished;
    clearInterval(this.#heartbeat);
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      this.#wake = new AbortController();
      const beganAtMs = systemClock.monotonicMs();
      const cooldownMs = this.#cooldownMsAfter(await this.#fill());
      await sleep(pollMs, this.#wake.signal);
      const leftMs = beganAtMs + cooldownMs - systemClock.monotonicMs();
      await (leftMs > 0 ? sleep(leftMs, this.#stop.signal) : setImmediate());
    }
  }

  #cooldownMsAfter(takenJobs: number): number {
    const { cooldownMs = 0, busyCooldown } = this.#options;
    return busyCooldown && takenJobs >= busyCooldown.jobs ? busyCooldown.ms : cooldownMs;
  }

  /** Takes jobs for all free slots. Returns their number. */
  async #fill(): Promise<number> {
    this.#isDrained = false;
    const takenBefore = this.#taken;
    try {
      const ignoreGroups = this.#busyGroups.busyGroups(this.#active);
      if (ignoreGroups) await this.#busyGroups.runAndMeasure(() => this.#take({ ignoreGroups }));
      this.#isDrained = await this.#take({});
    } catch (error) {
      this.#options.log.warn(
        { err: error, queue: this.#options.kind.queue },
        'could not fetch jobs',
      );
    }
    return this.#taken - takenBefore;
  }

  /**
   * Takes jobs until all slots are in use. With a cooldown it fetches once, and the slots that are
   * left wait for the next fetch, so that its jobs form a larger group. Returns whether no further
   * job was due.
   */
  async #take(filter: FetchFilter): Promise<boolean> {
    const { queue, kind, capacity, range, cooldownMs } = this.#options;
    for (let free = capacity - this.#slotsInUse; free > 0; ) {
      const requested = roundedDown(free);
      const jobs = await queue.fetch(kind, requested, { ...range, ...filter });
      for (const job of jobs) this.#begin(job);
      if (jobs.length < requested) return true;
      free -= requested;
      if (cooldownMs !== undefined && free > 0) {
        this.#wake.abort('woken');
        return false;
      }
    }
    return false;
  }

  /** Fetches jobs for a freed slot, unless the last fetch emptied the queue. */
  #wakeForMore(): void {
    if (!this.#isDrained) this.#wake.abort('woken');
  }

  #begin(job: Job<T>): void {
    this.#slotsInUse += 1;
    this.#taken += 1;
    const takenAtMs = systemClock.monotonicMs();
    const entry: Entry<T> = { job, waitingIn: undefined, takenAtMs, done: Promise.resolve() };
    entry.done = this.#work(job, {
      release: (waitingJobs) => this.#release(entry, waitingJobs),
    }).finally(() => {
      this.#active.delete(entry);
      this.#leave(entry);
      this.#wakeForMore();
    });
    this.#active.add(entry);
  }

  #release(entry: Entry<T>, waitingJobs = this.#options.waitingJobs): void {
    // A job that has ended has no slot.
    if (!this.#active.has(entry)) return;
    if (entry.waitingIn === waitingJobs || !waitingJobs?.tryAdd()) return;
    this.#leave(entry);
    entry.waitingIn = waitingJobs;
    this.#wakeForMore();
  }

  #leave({ waitingIn: held }: Entry<T>): void {
    if (held) held.remove();
    else this.#slotsInUse -= 1;
  }

  async #work(job: Job<T>, concurrencySlot: ConcurrencySlot): Promise<void> {
    const { queue, kind, log, handle } = this.#options;
    try {
      const end = await handle(job, { signal: this.#interrupt.signal, concurrencySlot });
      if (end === 'again') await queue.putBack(kind, job, 'stopped');
    } catch (error) {
      log.error(
        { err: error, queue: kind.queue, job: job.data },
        'job failed, will be tried again',
      );
      await queue.putBack(kind, job, 'error').catch(() => undefined);
    }
  }

  async #beat(): Promise<void> {
    const takenBeforeMs = systemClock.monotonicMs() - freshMs;
    const jobs = [...this.#active]
      .filter(({ takenAtMs }) => takenAtMs <= takenBeforeMs)
      .map(({ job }) => job);
    await this.#options.queue.touch(this.#options.kind, jobs).catch((error: unknown) => {
      this.#options.log.warn({ err: error }, 'heartbeat failed');
    });
  }
}

/** Number of jobs in work from which a group counts as busy. */
const busyFrom = 16;

/**
 * Minimum pause between two fetches that skip groups, because skipping thousands of jobs takes
 * time. If a fetch empties the queue, the pause is at least this multiple of its duration.
 */
const groupFetchMs = 25;
const durationFactor = 10;

/**
 * Decides when a consumer skips the waiting jobs of groups that it is busy with. The queue is
 * ordered by time, so a group with thousands of waiting jobs would delay all other groups.
 */
class BusyGroups<T extends object> {
  readonly #kind: JobKind<T>;
  #nextAtMs = 0;

  constructor(kind: JobKind<T>) {
    this.#kind = kind;
  }

  /**
   * Returns the groups to skip in one fetch. Returns undefined if it is too early, or if no group
   * is busy.
   */
  busyGroups(active: Iterable<{ job: Job<T> }>): string[] | undefined {
    const { groupOf } = this.#kind;
    if (!groupOf || systemClock.monotonicMs() < this.#nextAtMs) return undefined;
    const counts = new Map<string, number>();
    for (const { job } of active) {
      const group = groupOf(job.data);
      counts.set(group, (counts.get(group) ?? 0) + 1);
    }
    const busy = [...counts.keys()].filter((group) => (counts.get(group) ?? 0) >= busyFrom);
    return busy.length > 0 ? busy : undefined;
  }

  /**
   * Runs a fetch that skips groups, and sets the time of the next one. `fetch` resolves to whether
   * no further job was due. If no further job was due, the next fetch waits for a multiple of the
   * duration. Otherwise it waits only for the minimum pause.
   */
  async runAndMeasure(fetch: () => Promise<boolean>): Promise<void> {
    const beganAtMs = systemClock.monotonicMs();
    const isDrained = await fetch();
    const endedAtMs = systemClock.monotonicMs();
    const pauseMs = isDrained ? durationFactor * (endedAtMs - beganAtMs) : 0;
    this.#nextAtMs = endedAtMs + Math.max(groupFetchMs, pauseMs);
  }
}
