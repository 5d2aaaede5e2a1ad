import { sleep } from '../clock.ts';
import type { Listener } from '../db/listener.ts';
import type { Logger } from '../process/logging.ts';
import type { JobKind } from './jobs.ts';
import { type Job, type JobQueue, type PriorityRange, wakeTopic } from './queue.ts';

export interface ConsumerOptions<T extends object> {
  queue: JobQueue;
  listener: Listener;
  log: Logger;
  kind: JobKind<T>;
  /** Jobs in work at the same time, not counting those that have left their places. */
  capacity: number;
  /** Where jobs go that leave their places; absent: they keep them. */
  parkedJobs?: ParkedJobs;
  /** Only jobs of these priorities; the others are some other consumer's. */
  range?: PriorityRange;
  /** Safety net beside NOTIFY, and what finds jobs whose start time has come. */
  pollMs: number;
  /**
   * Does the work and completes the job in its own transaction. When it throws, or when the signal told
   * it to stop and it gives false, the job is put back.
   */
  handle(job: Job<T>, shift: JobContext): Promise<boolean>;
}

/** What a job in work has of its consumer. */
export interface JobContext {
  /** Tells it to stop. */
  signal: AbortSignal;
  permit: Permit;
}

/** The place of a job in work. */
export interface Permit {
  /** The job needs nothing but patience from now on: another may be taken. Does nothing when too many wait so. */
  release(): void;
}

/** How many jobs may be in work without a place, over all consumers that share it: what bounds the memory. */
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
  hasPlace: boolean;
  done: Promise<void>;
}

const heartbeatMs = 3000;

/** Takes jobs of one kind as long as there are any and there is room: woken by NOTIFY. */
export class Consumer<T extends object> {
  readonly #options: ConsumerOptions<T>;
  readonly #stop = new AbortController();
  readonly #cut = new AbortController();
  readonly #active = new Map<string, Entry<T>>();
  /** Jobs in work that have a place. */
  #taken = 0;
  #wake = new AbortController();
  #loop: Promise<void> | undefined;
  #heartbeat: NodeJS.Timeout | undefined;
  #unlisten: (() => void) | undefined;

  constructor(options: ConsumerOptions<T>) {
    this.#options = options;
  }

  get activeCount(): number {
    return this.#active.size;
  }

  async start(): Promise<void> {
    this.#unlisten = await this.#options.listener.listen(wakeTopic, (queue) => {
      if (queue === '' || queue === this.#options.kind.queue) this.#wake.abort();
    });
    this.#heartbeat = setInterval(() => void this.#touch(), heartbeatMs);
    this.#loop = this.#run();
  }

  /** Takes no more, lets what is in work finish for up to `graceMs`, then tells it to stop and waits for that. */
  async stop(graceMs: number): Promise<void> {
    this.#unlisten?.();
    this.#stop.abort();
    this.#wake.abort();
    await this.#loop;
    const finished = Promise.all([...this.#active.values()].map((entry) => entry.done));
    await Promise.race([finished, sleep(graceMs)]);
    this.#cut.abort();
    await finished;
    clearInterval(this.#heartbeat);
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      this.#wake = new AbortController();
      await this.#fill();
      await sleep(this.#options.pollMs, this.#wake.signal);
    }
  }

  /** Takes as many as there is room for. A job that ends wakes the loop, so a full house never waits for the poll. */
  async #fill(): Promise<void> {
    const room = this.#options.capacity - this.#taken;
    if (room <= 0) return;
    try {
      const jobs = await this.#options.queue.fetch(this.#options.kind, room, this.#options.range);
      for (const job of jobs) this.#begin(job);
    } catch (error) {
      this.#options.log.warn({ err: error, queue: this.#options.kind.queue }, 'could not take jobs');
    }
  }

  #begin(job: Job<T>): void {
    this.#taken += 1;
    const entry: Entry<T> = { job, hasPlace: true, done: Promise.resolve() };
    entry.done = this.#work(job, { release: () => this.#leave(entry) }).finally(() => {
      this.#active.delete(job.id);
      if (entry.hasPlace) this.#taken -= 1;
      else this.#options.parkedJobs?.remove();
      this.#wake.abort();
    });
    this.#active.set(job.id, entry);
  }

  #leave(entry: Entry<T>): void {
    // A job that is through has nothing to leave, and what it left would never be given back.
    const isActive = this.#active.get(entry.job.id) === entry;
    if (!isActive || !entry.hasPlace || !this.#options.parkedJobs?.tryAdd()) return;
    entry.hasPlace = false;
    this.#taken -= 1;
    this.#wake.abort();
  }

  async #work(job: Job<T>, place: Permit): Promise<void> {
    const { queue, kind, log, handle } = this.#options;
    try {
      if (await handle(job, { signal: this.#cut.signal, permit: place })) return;
      await queue.putBack(kind, job, 'stopped');
    } catch (error) {
      log.error({ err: error, queue: kind.queue, job: job.data }, 'job failed, will be tried again');
      await queue.putBack(kind, job, 'error').catch(() => undefined);
    }
  }

  async #touch(): Promise<void> {
    const jobs = [...this.#active.values()].map((entry) => entry.job);
    await this.#options.queue.touch(this.#options.kind, jobs).catch((error: unknown) => {
      this.#options.log.warn({ err: error }, 'no sign of life could be given');
    });
  }
}
