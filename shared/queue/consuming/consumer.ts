import { setImmediate } from 'node:timers/promises';
import { sleep, systemClock } from '../../clock.ts';
import type { Listener } from '../../db/listener.ts';
import type { Logger } from '../../process/logging.ts';
import type { JobKind } from '../jobs.ts';
import type { FetchFilter, Job, JobQueue, PriorityRange } from '../queue.ts';
import { wakeTopic } from '../wake.ts';
import type { DuePoll } from './due-poll.ts';
import { GroupTurns } from './group-turns.ts';

/** What tells consumers that jobs are due. */
export interface Waking {
  listener: Listener;
  /** Reports jobs whose start time has come, and jobs whose NOTIFY was lost. */
  duePoll: Pick<DuePoll, 'add'>;
}

export interface ConsumerOptions<T extends object> extends Waking {
  queue: JobQueue;
  log: Logger;
  kind: JobKind<T>;
  /** Job permits: jobs in work at the same time, not counting those that have released their permit. */
  capacity: number;
  /** Bound of the jobs that have released their permit; absent: they keep it. */
  parkedJobs?: ParkedJobs;
  /** Priorities that this consumer takes; another consumer takes the others. */
  range?: PriorityRange;
  /** Name that NOTIFY wakes it by (`SendOptions`); by default that of the queue. */
  wakeName?: string;
  /**
   * Shortest time between two fetches, default 0: jobs that arrive in it are taken by one statement, and work that shares
   * statements starts together. A job that arrives later than this after the last fetch is taken at once.
   */
  restMs?: number;
  /** The same after `jobs` or more were taken since the last rest: under load, fewer and larger groups cost less. */
  busyRest?: { jobs: number; ms: number } | undefined;
  /** Does the work and completes the job in its own transaction. The job is put back when it throws or returns false. */
  handle(job: Job<T>, shift: JobContext): Promise<boolean>;
}

/** Context that a consumer passes to a job. */
export interface JobContext {
  /** Aborts when the job has to stop. */
  signal: AbortSignal;
  permit: Permit;
}

/** Right of one job to be in work. */
export interface Permit {
  /**
   * Lets another job be taken while this one only waits, and counts it among `held`; by default among the jobs that wait of
   * all consumers. Does nothing when these are too many already. A job may move on from there in the same way.
   */
  release(held?: ParkedJobs): void;
}

/** Bound of the jobs in work without a permit, over all consumers that share it; this bounds the memory. */
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

/** Longest time until a consumer looks at its queue that nothing has woken. */
const longestRestMs = 60_000;
const heartbeatMs = 3000;
/** Age from which a job gets a heartbeat: the fetch wrote the first one, and most jobs end before the second. */
const freshMs = 1500;

/**
 * Returns the highest power of two that is not above `count`: the library has the number of jobs in its text, and PostgreSQL
 * plans each text several times in each connection.
 */
const roundedDown = (count: number): number => 2 ** Math.floor(Math.log2(count));

/** Takes jobs of one kind while it has permits; NOTIFY wakes it. */
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
  /**
   * The last fetch took all jobs that were due: NOTIFY or the poll reports others, so a job that ends need not look for
   * them.
   */
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

  /** Takes no more jobs, waits up to `graceMs` for those in work, then tells them to stop and waits for that. */
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
      const restMs = this.#restMsAfter(await this.#fill());
      await sleep(longestRestMs, this.#wake.signal);
      const leftMs = beganAtMs + restMs - systemClock.monotonicMs();
      // Jobs that end in the same turn of the event loop free their permits for the same fetch.
      await (leftMs > 0 ? sleep(leftMs, this.#stop.signal) : setImmediate());
    }
  }

  #restMsAfter(taken: number): number {
    const { restMs = 0, busyRest } = this.#options;
    return busyRest && taken >= busyRest.jobs ? busyRest.ms : restMs;
  }

  /**
   * Takes jobs for all free permits, and returns how many. A job that ends wakes the loop, so freed capacity is used without waiting for the
   * poll.
   */
  async #fill(): Promise<number> {
    this.#isDrained = false;
    const takenBefore = this.#taken;
    try {
      const ignoreGroups = this.#turns.busyGroups(this.#active.values());
      if (ignoreGroups) await this.#turns.measure(() => this.#take({ ignoreGroups }));
      this.#isDrained = await this.#take({});
    } catch (error) {
      this.#options.log.warn({ err: error, queue: this.#options.kind.queue }, 'could not fetch jobs');
    }
    return this.#taken - takenBefore;
  }

  /** Returns whether no further job was due. */
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
      if (await handle(job, { signal: this.#interrupt.signal, permit })) return;
      await queue.putBack(kind, job, 'stopped');
    } catch (error) {
      log.error({ err: error, queue: kind.queue, job: job.data }, 'job failed, will be tried again');
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
