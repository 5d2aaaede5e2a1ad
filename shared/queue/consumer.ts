import { setImmediate } from 'node:timers/promises';
import { sleep, systemClock } from '../clock.ts';
import type { Logger } from '../process/logging.ts';
import type { JobKind } from './jobs.ts';
import type { FetchFilter, Job, JobQueue, PriorityRange } from './queue.ts';
import { type Waking, wakeTopic } from './waking.ts';

/**
 * How the work on a job ended. `done`: its handler has ended it, in its own transaction. `again`:
 * it goes back to the queue, which hands it out again after its back-off.
 */
export type JobEnd = 'done' | 'again';

export interface ConsumerOptions<T extends object> extends Waking {
  queue: JobQueue;
  log: Logger;
  kind: JobKind<T>;
  /**
   * Job permits: jobs in work at the same time, not counting those that have released their permit.
   */
  capacity: number;
  /** Bound of the jobs that have released their permit; absent: they keep it. */
  parkedJobs?: ParkedJobs;
  /** Priorities that this consumer takes; another consumer takes the others. */
  range?: PriorityRange;
  /** Name that NOTIFY wakes it by (`SendOptions`); by default that of the queue. */
  wakeName?: string;
  /**
   * Shortest time between two fetches, default 0: jobs that arrive in it are taken by one
   * statement, and work that shares statements starts together. A job that arrives later after the
   * last fetch is taken at once.
   */
  cooldownMs?: number;
  /** The same after a fetch of `jobs` or more: under load, fewer and larger groups cost less. */
  busyCooldown?: { jobs: number; ms: number } | undefined;
  /** Does the work and ends the job. A handler that throws puts the job back too. */
  handle(job: Job<T>, context: JobContext): Promise<JobEnd>;
}

/** Context that a consumer passes to a job. */
export interface JobContext {
  /** Aborts when the job has to stop. */
  signal: AbortSignal;
  permit: Permit;
}

/** Right of one job to be in work: a concurrency slot of its consumer. */
export interface Permit {
  /**
   * Lets another job be taken while this one only waits, and counts it among `held`; by default
   * among the jobs that wait of all consumers. Does nothing when these are too many already. A job
   * may move on from there in the same way.
   */
  release(held?: ParkedJobs): void;
}

/**
 * Bound of the jobs in work without a permit, over all consumers that share it; this bounds the
 * memory.
 */
export class ParkedJobs {
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
  /** What it is counted among; undefined: it has a job permit. */
  held: ParkedJobs | undefined;
  takenAtMs: number;
  done: Promise<void>;
}

/** Poll interval of a consumer that nothing wakes. */
const pollMs = 60_000;
const heartbeatMs = 3000;
/**
 * Age from which a job gets a heartbeat: the fetch wrote the first one, and most jobs end before
 * the second.
 */
const freshMs = 1500;

/**
 * Returns the highest power of two that is not above `count`. pg-boss writes LIMIT into its SQL
 * text, so this keeps the number of prepared statements small.
 */
const roundedDown = (count: number): number => 2 ** Math.floor(Math.log2(count));

/**
 * Takes jobs of one kind and works on them. Its states:
 *
 * - **fetching**: takes jobs until all permits are in use, or until a fetch returns fewer jobs than
 *   requested. Before, it looks behind the jobs of busy groups (`GroupTurns`). Leads to *full* or
 *   *drained*. A fetch that fails leads to *full*, so that the next event repeats it.
 * - **full**: all permits are in use. A job that ends or releases its permit leads to *cooling*.
 * - **drained**: the queue was empty. A NOTIFY or the poll for due jobs leads to *cooling*. A job
 *   that ends does not: it leaves a permit that no job waits for.
 * - **cooling**: waits until the cooldown since the last fetch is over, then *fetching*. Without a
 *   cooldown it waits for the end of the tick: jobs that end in the same tick free their permits
 *   for one fetch.
 * - **stopping** (from every state): takes no more jobs, waits for the jobs in work up to the grace
 *   time, aborts their signals, and waits until they have ended.
 *
 * A NOTIFY or a poll that comes while it is fetching is not lost: it leads to *cooling* at once.
 * Independent of these states, the jobs in work get a heartbeat every 3 s.
 */
export class Consumer<T extends object> {
  readonly #options: ConsumerOptions<T>;
  readonly #stop = new AbortController();
  readonly #interrupt = new AbortController();
  readonly #active = new Map<string, Entry<T>>();
  readonly #turns: GroupTurns<T>;
  /** Job permits in use. */
  #permits = 0;
  /** Jobs taken so far. */
  #taken = 0;
  /** The last fetch returned fewer jobs than requested. */
  #isDrained = false;
  #wake = new AbortController();
  #loop: Promise<void> | undefined;
  #heartbeat: NodeJS.Timeout | undefined;
  readonly #unlisten: (() => void)[] = [];

  constructor(options: ConsumerOptions<T>) {
    this.#options = options;
    this.#turns = new GroupTurns(options.kind);
  }

  get activeCount(): number {
    return this.#active.size;
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
   * Takes no more jobs, waits up to `graceMs` for those in work, then tells them to stop and waits
   * for that.
   */
  async stop(graceMs: number): Promise<void> {
    for (const unlisten of this.#unlisten) unlisten();
    this.#stop.abort();
    this.#wake.abort('woken');
    await this.#loop;
    const finished = Promise.all([...this.#active.values()].map((entry) => entry.done));
    await Promise.race([finished, sleep(graceMs)]);
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

  #cooldownMsAfter(taken: number): number {
    const { cooldownMs = 0, busyCooldown } = this.#options;
    return busyCooldown && taken >= busyCooldown.jobs ? busyCooldown.ms : cooldownMs;
  }

  /** Takes jobs for all free permits, and returns how many. */
  async #fill(): Promise<number> {
    this.#isDrained = false;
    const takenBefore = this.#taken;
    try {
      const ignoreGroups = this.#turns.busyGroups(this.#active.values());
      if (ignoreGroups) await this.#turns.measure(() => this.#take({ ignoreGroups }));
      this.#isDrained = await this.#take({});
    } catch (error) {
      this.#options.log.warn(
        { err: error, queue: this.#options.kind.queue },
        'could not fetch jobs',
      );
    }
    return this.#taken - takenBefore;
  }

  /** Takes jobs until the permits are in use. Returns whether no further job was due. */
  async #take(filter: FetchFilter): Promise<boolean> {
    const { queue, kind, capacity, range } = this.#options;
    for (let free = capacity - this.#permits; free > 0; ) {
      const asked = roundedDown(free);
      const jobs = await queue.fetch(kind, asked, { ...range, ...filter });
      for (const job of jobs) this.#begin(job);
      if (jobs.length < asked) return true;
      free -= asked;
    }
    return false;
  }

  /** Uses a freed permit. */
  #wakeForMore(): void {
    if (!this.#isDrained) this.#wake.abort('woken');
  }

  #begin(job: Job<T>): void {
    this.#permits += 1;
    this.#taken += 1;
    const takenAtMs = systemClock.monotonicMs();
    const entry: Entry<T> = { job, held: undefined, takenAtMs, done: Promise.resolve() };
    entry.done = this.#work(job, { release: (held) => this.#release(entry, held) }).finally(() => {
      this.#active.delete(job.id);
      this.#leave(entry);
      this.#wakeForMore();
    });
    this.#active.set(job.id, entry);
  }

  #release(entry: Entry<T>, held = this.#options.parkedJobs): void {
    // A job that has ended holds no permit any more.
    const isActive = this.#active.get(entry.job.id) === entry;
    if (!isActive || entry.held === held || !held?.tryAdd()) return;
    this.#leave(entry);
    entry.held = held;
    this.#wakeForMore();
  }

  #leave({ held }: Entry<T>): void {
    if (held) held.remove();
    else this.#permits -= 1;
  }

  async #work(job: Job<T>, permit: Permit): Promise<void> {
    const { queue, kind, log, handle } = this.#options;
    try {
      const end = await handle(job, { signal: this.#interrupt.signal, permit });
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
    const jobs = [...this.#active.values()]
      .filter(({ takenAtMs }) => takenAtMs <= takenBeforeMs)
      .map(({ job }) => job);
    await this.#options.queue.touch(this.#options.kind, jobs).catch((error: unknown) => {
      this.#options.log.warn({ err: error }, 'heartbeat failed');
    });
  }
}

/** Jobs in work from which on a group counts as busy. */
const busyFrom = 16;

/**
 * Shortest interval of fetches that skip busy groups, and its multiple of their duration: thousands
 * of skipped jobs take time.
 */
const groupFetchMs = 25;
const timesDuration = 10;

/**
 * Decides when a consumer looks behind the waiting jobs of groups that it is busy with: the queue
 * is ordered by time, and a group with thousands of waiting jobs would delay the others by all of
 * them.
 */
class GroupTurns<T extends object> {
  readonly #kind: JobKind<T>;
  #nextAtMs = 0;

  constructor(kind: JobKind<T>) {
    this.#kind = kind;
  }

  /** Returns the groups to skip in one fetch; undefined while it is too early, or none is busy. */
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
   * Runs such a fetch, which resolves whether no further job was due. After one that found none the
   * next has to wait for a multiple of its duration; where more may be due, only for the interval.
   */
  async measure(fetch: () => Promise<boolean>): Promise<void> {
    const beganAtMs = systemClock.monotonicMs();
    const isDrained = await fetch();
    const endedAtMs = systemClock.monotonicMs();
    const restMs = isDrained ? timesDuration * (endedAtMs - beganAtMs) : 0;
    this.#nextAtMs = endedAtMs + Math.max(groupFetchMs, restMs);
  }
}
