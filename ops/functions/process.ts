import { type ChildProcess, execFile, fork } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { type Confinement, startOptions } from './confinement.ts';
import { type CallMessage, type CallOutcome, fromProcess, type ToProcess } from './messages.ts';

export type ProcessOutcome = CallOutcome | { failure: 'timeout' | 'memory' | 'ended' };

export interface ProcessLimits {
  /**
   * Limit of the JavaScript heap. The resident memory of the process, including buffers, may be
   * twice this value.
   */
  memoryMb: number;
  /** A process ends after it was idle for this long. */
  idleMs: number;
}

export const defaultProcessLimits: ProcessLimits = { memoryMb: 128, idleMs: 60_000 };

/** Maximum wait for a pong. A process without a pong counts as blocked by an endless loop. */
const pongMs = 500;
/**
 * Limit on calls that timed out but may still run in a process. Above this limit, a new process
 * replaces it.
 */
const maxAbandoned = 10;
const memoryCheckMs = 500;

/** Maximum length of a logged line. The rest of a longer line is dropped to save memory. */
const maxLineBytes = 64 * 1024;

/** Calls `onLine` with each line of a stream. */
function readLines(stream: Readable, onLine: (line: string) => void): void {
  let parts: Buffer[] = [];
  let bytes = 0;
  const add = (part: Buffer) => {
    const kept = part.subarray(0, Math.max(0, maxLineBytes - bytes));
    if (kept.length > 0) parts.push(kept);
    bytes += part.length;
  };
  const end = () => {
    const text = Buffer.concat(parts).toString('utf8').replace(/\r$/, '');
    onLine(bytes > maxLineBytes ? `${text} … (${bytes} bytes)` : text);
    parts = [];
    bytes = 0;
  };
  stream.on('data', (chunk: Buffer) => {
    let start = 0;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, start)) {
      add(chunk.subarray(start, at));
      end();
      start = at + 1;
    }
    add(chunk.subarray(start));
  });
  stream.on('end', () => bytes > 0 && end());
}

interface Pending {
  resolve: (outcome: ProcessOutcome) => void;
  timer: NodeJS.Timeout;
}

/** Signals with which V8 aborts a process at its heap limit. */
const memorySignals: readonly (string | null)[] = ['SIGABRT', 'SIGTRAP', 'SIGILL'];

export interface FunctionProcessOptions extends Confinement {
  limits: ProcessLimits;
  /** Receives each line of output of the file. */
  log: (line: string) => void;
  onEnd: () => void;
}

/**
 * Process that runs one file and can read only its folder (confinement.ts). Threads would use less
 * memory, but Node's permission model does not apply to threads.
 */
export class FunctionProcess {
  readonly #child: ChildProcess;
  readonly #options: FunctionProcessOptions;
  readonly #pending = new Map<number, Pending>();
  readonly #memoryCheck: NodeJS.Timeout;
  #idle: NodeJS.Timeout | undefined;
  #pong: NodeJS.Timeout | undefined;
  #abandoned = 0;
  #isRetired = false;
  #end: 'memory' | 'ended' = 'ended';
  readonly #ended: Promise<void>;

  constructor(path: string, options: FunctionProcessOptions) {
    this.#options = options;
    const { file, args, execArgv, env } = startOptions(path, options);
    const memory = [`--max-old-space-size=${options.limits.memoryMb}`, '--max-semi-space-size=4'];
    this.#child = fork(file, args, {
      execArgv: [...execArgv, ...memory],
      env,
      cwd: '/',
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    for (const output of [this.#child.stdout, this.#child.stderr])
      if (output) readLines(output, (line) => options.log(`${basename(path)}: ${line}`));
    this.#child.on('message', (message) => this.#receive(message));
    this.#ended = new Promise((resolve) => {
      const end = (signal: string | null) => {
        if (memorySignals.includes(signal)) this.#end = 'memory';
        this.#clear();
        options.onEnd();
        resolve();
      };
      this.#child.once('exit', (_code, signal) => end(signal));
      this.#child.once('error', (error) => {
        options.log(`${basename(path)}: the process cannot be started: ${error.message}`);
        if (this.#child.pid === undefined) end(null);
      });
    });
    this.#memoryCheck = setInterval(() => void this.#checkMemory(), memoryCheckMs);
    this.#memoryCheck.unref();
  }

  get load(): number {
    return this.#pending.size;
  }

  /**
   * True if the process accepts no new calls: it was replaced, has too many timed-out calls, or has
   * exited.
   */
  get isRetired(): boolean {
    return this.#isRetired;
  }

  run(call: CallMessage, timeoutMs: number): Promise<ProcessOutcome> {
    clearTimeout(this.#idle);
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#abandon(call.id), timeoutMs);
      this.#pending.set(call.id, { resolve, timer });
      this.#send(call);
    });
  }

  /** Ends the process after its running calls have finished. Resolves when it has ended. */
  retire(): Promise<void> {
    this.#isRetired = true;
    if (this.#pending.size === 0) this.#child.kill('SIGKILL');
    return this.#ended;
  }

  async terminate(): Promise<void> {
    this.#isRetired = true;
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  #send(message: ToProcess): void {
    // Send errors are ignored: the exit of the process settles its calls.
    this.#child.send(message, () => undefined);
  }

  #receive(message: unknown): void {
    const parsed = fromProcess.safeParse(message);
    if (!parsed.success) return;
    if ('pong' in parsed.data) clearTimeout(this.#pong);
    else this.#settle(parsed.data.id, parsed.data.outcome);
  }

  #settle(id: number, outcome: ProcessOutcome): void {
    const pending = this.#pending.get(id);
    if (!pending) return;
    this.#pending.delete(id);
    clearTimeout(pending.timer);
    pending.resolve(outcome);
    if (this.#pending.size > 0) return;
    if (this.#isRetired) this.#child.kill('SIGKILL');
    else this.#idle = setTimeout(() => void this.retire(), this.#options.limits.idleMs).unref();
  }

  /**
   * Settles a call that timed out. Pings the process to find out whether it waits or is in an
   * endless loop.
   */
  #abandon(id: number): void {
    this.#abandoned += 1;
    clearTimeout(this.#pong);
    this.#pong = setTimeout(() => void this.terminate(), pongMs);
    this.#send({ ping: id });
    if (this.#abandoned > maxAbandoned) this.#isRetired = true;
    this.#settle(id, { failure: 'timeout' });
  }

  /**
   * Ends a process that uses too much memory. V8 limits only the JavaScript heap, which does not
   * include buffers.
   */
  async #checkMemory(): Promise<void> {
    const { pid } = this.#child;
    if (this.#pending.size === 0 || pid === undefined) return;
    const bytes = await residentBytes(pid).catch(() => 0);
    if (bytes <= 2 * this.#options.limits.memoryMb * 1024 * 1024) return;
    this.#end = 'memory';
    await this.terminate();
  }

  #clear(): void {
    this.#isRetired = true;
    clearInterval(this.#memoryCheck);
    clearTimeout(this.#idle);
    clearTimeout(this.#pong);
    for (const id of this.#pending.keys()) this.#settle(id, { failure: this.#end });
  }
}

const run = promisify(execFile);

/**
 * Reads the memory of a process from the operating system, because a process in an endless loop
 * cannot report it.
 */
async function residentBytes(pid: number): Promise<number> {
  if (process.platform === 'linux') {
    const [, kilobytes] =
      /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? [];
    return Number(kilobytes ?? 0) * 1024;
  }
  return Number((await run('ps', ['-o', 'rss=', '-p', String(pid)])).stdout) * 1024;
}
