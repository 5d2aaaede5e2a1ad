import { basename } from 'node:path';
import { createInterface } from 'node:readline';
import { Worker } from 'node:worker_threads';
import { moduleUrl } from '../../shared/module-url.ts';
import type { CallMessage, CallOutcome, FromThread } from './messages.ts';

export type ThreadOutcome = CallOutcome | { gone: 'timeout' | 'memory' | 'ended' };

export interface ThreadLimits {
  /** JavaScript's own memory, and as much again for buffers. */
  memoryMb: number;
  /** A thread without calls ends after this. */
  idleMs: number;
}

export const defaultThreadLimits: ThreadLimits = { memoryMb: 128, idleMs: 60_000 };

/** A thread that does not answer so long is in a loop. */
const pongMs = 500;
/** Calls that were given up and may still run: beyond, a fresh thread takes over. */
const maxAbandoned = 10;
const memoryCheckMs = 500;

interface Pending {
  resolve: (outcome: ThreadOutcome) => void;
  timer: NodeJS.Timeout;
}

/** One thread that runs one file. It ends for itself: what it costs, it costs no other file. */
export class FunctionThread {
  readonly #worker: Worker;
  readonly #limits: ThreadLimits;
  readonly #pending = new Map<number, Pending>();
  readonly #memoryCheck: NodeJS.Timeout;
  #idle: NodeJS.Timeout | undefined;
  #pong: NodeJS.Timeout | undefined;
  #abandoned = 0;
  #isRetired = false;
  #end: 'memory' | 'ended' = 'ended';

  /** `say` is told what the file prints, line by line. */
  constructor(
    path: string,
    { limits, say, onEnd }: { limits: ThreadLimits; say: (line: string) => void; onEnd: () => void },
  ) {
    this.#limits = limits;
    const { memoryMb } = limits;
    this.#worker = new Worker(moduleUrl('./worker.ts', import.meta.url), {
      workerData: path,
      argv: [],
      stdout: true,
      stderr: true,
      resourceLimits: { maxOldGenerationSizeMb: memoryMb, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 },
    });
    for (const input of [this.#worker.stdout, this.#worker.stderr])
      createInterface({ input }).on('line', (line) => say(`${basename(path)}: ${line}`));
    this.#worker.on('message', (message: FromThread) => this.#hear(message));
    this.#worker.on('error', (error) => {
      if ('code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY') this.#end = 'memory';
    });
    this.#worker.once('exit', () => {
      this.#clear();
      onEnd();
    });
    this.#memoryCheck = setInterval(() => void this.#checkBuffers(), memoryCheckMs);
    this.#memoryCheck.unref();
  }

  get load(): number {
    return this.#pending.size;
  }

  /** Takes no new calls: it was replaced, has lost too many calls, or has ended. */
  get isRetired(): boolean {
    return this.#isRetired;
  }

  run(call: CallMessage, timeoutMs: number): Promise<ThreadOutcome> {
    clearTimeout(this.#idle);
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#giveUp(call.id), timeoutMs);
      this.#pending.set(call.id, { resolve, timer });
      this.#worker.postMessage(call);
    });
  }

  /** Ends when its calls have ended. */
  retire(): void {
    this.#isRetired = true;
    if (this.#pending.size === 0) void this.#worker.terminate();
  }

  async terminate(): Promise<void> {
    this.#isRetired = true;
    await this.#worker.terminate();
  }

  #hear(message: FromThread): void {
    if ('pong' in message) clearTimeout(this.#pong);
    else this.#settle(message.id, message.outcome);
  }

  #settle(id: number, outcome: ThreadOutcome): void {
    const pending = this.#pending.get(id);
    if (!pending) return;
    this.#pending.delete(id);
    clearTimeout(pending.timer);
    pending.resolve(outcome);
    if (this.#pending.size > 0) return;
    if (this.#isRetired) void this.#worker.terminate();
    else this.#idle = setTimeout(() => this.retire(), this.#limits.idleMs).unref();
  }

  /** The caller is answered; whether the thread waits for something or runs in circles is asked of it. */
  #giveUp(id: number): void {
    this.#abandoned += 1;
    clearTimeout(this.#pong);
    this.#pong = setTimeout(() => void this.terminate(), pongMs);
    this.#worker.postMessage({ ping: id });
    if (this.#abandoned > maxAbandoned) this.#isRetired = true;
    this.#settle(id, { gone: 'timeout' });
  }

  /** The limits of a thread are for JavaScript's heap; buffers lie beside it. */
  async #checkBuffers(): Promise<void> {
    if (this.#pending.size === 0) return;
    const { external_memory: bytes } = await this.#worker
      .getHeapStatistics()
      .catch(() => ({ external_memory: 0 }));
    if (bytes <= this.#limits.memoryMb * 1024 * 1024) return;
    this.#end = 'memory';
    await this.terminate();
  }

  #clear(): void {
    this.#isRetired = true;
    clearInterval(this.#memoryCheck);
    clearTimeout(this.#idle);
    clearTimeout(this.#pong);
    for (const id of this.#pending.keys()) this.#settle(id, { gone: this.#end });
  }
}
