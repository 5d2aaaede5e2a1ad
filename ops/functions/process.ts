import { type ChildProcess, execFile, fork } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { type Confinement, confinedStart } from './confinement.ts';
import { type CallMessage, type CallOutcome, fromProcess, type ToProcess } from './messages.ts';

export type ProcessOutcome = CallOutcome | { gone: 'timeout' | 'memory' | 'ended' };

export interface ProcessLimits {
  /** JavaScript's own memory; the whole process, buffers included, may take twice as much. */
  memoryMb: number;
  /** A process without calls ends after this. */
  idleMs: number;
}

export const defaultProcessLimits: ProcessLimits = { memoryMb: 128, idleMs: 60_000 };

/** A process that does not answer so long is in a loop. */
const pongMs = 500;
/** Calls that were given up and may still run: beyond, a fresh process takes over. */
const maxAbandoned = 10;
const memoryCheckMs = 500;

interface Pending {
  resolve: (outcome: ProcessOutcome) => void;
  timer: NodeJS.Timeout;
}

/** How V8 ends a process that has reached the limit of its heap. */
const memorySignals: readonly (string | null)[] = ['SIGABRT', 'SIGTRAP', 'SIGILL'];

export interface FunctionProcessOptions extends Confinement {
  limits: ProcessLimits;
  /** Is told what the file prints, line by line. */
  say: (line: string) => void;
  onEnd: () => void;
}

/**
 * One process that runs one file, confined to its folder (confinement.ts). Threads would cost less, but Node's
 * permission model does not hold in them.
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
    const { file, args, execArgv, env } = confinedStart(path, options);
    const memory = [`--max-old-space-size=${options.limits.memoryMb}`, '--max-semi-space-size=4'];
    this.#child = fork(file, args, {
      execArgv: [...execArgv, ...memory],
      env,
      cwd: '/',
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    for (const input of [this.#child.stdout, this.#child.stderr])
      if (input) createInterface({ input }).on('line', (line) => options.say(`${basename(path)}: ${line}`));
    this.#child.on('message', (message) => this.#hear(message));
    this.#ended = new Promise((resolve) => {
      const end = (signal: string | null) => {
        if (memorySignals.includes(signal)) this.#end = 'memory';
        this.#clear();
        options.onEnd();
        resolve();
      };
      this.#child.once('exit', (_code, signal) => end(signal));
      this.#child.once('error', (error) => {
        options.say(`${basename(path)}: no process can be started: ${error.message}`);
        if (this.#child.pid === undefined) end(null);
      });
    });
    this.#memoryCheck = setInterval(() => void this.#checkMemory(), memoryCheckMs);
    this.#memoryCheck.unref();
  }

  get load(): number {
    return this.#pending.size;
  }

  /** Takes no new calls: it was replaced, has lost too many calls, or has ended. */
  get isRetired(): boolean {
    return this.#isRetired;
  }

  run(call: CallMessage, timeoutMs: number): Promise<ProcessOutcome> {
    clearTimeout(this.#idle);
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#giveUp(call.id), timeoutMs);
      this.#pending.set(call.id, { resolve, timer });
      this.#tell(call);
    });
  }

  /** Ends when its calls have ended. */
  retire(): void {
    this.#isRetired = true;
    if (this.#pending.size === 0) this.#child.kill('SIGKILL');
  }

  async terminate(): Promise<void> {
    this.#isRetired = true;
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  #tell(message: ToProcess): void {
    // A process that has ended answers its calls by its end.
    this.#child.send(message, () => undefined);
  }

  #hear(message: unknown): void {
    const heard = fromProcess.safeParse(message);
    if (!heard.success) return;
    if ('pong' in heard.data) clearTimeout(this.#pong);
    else this.#settle(heard.data.id, heard.data.outcome);
  }

  #settle(id: number, outcome: ProcessOutcome): void {
    const pending = this.#pending.get(id);
    if (!pending) return;
    this.#pending.delete(id);
    clearTimeout(pending.timer);
    pending.resolve(outcome);
    if (this.#pending.size > 0) return;
    if (this.#isRetired) this.#child.kill('SIGKILL');
    else this.#idle = setTimeout(() => this.retire(), this.#options.limits.idleMs).unref();
  }

  /** The caller is answered; whether the process waits for something or runs in circles is asked of it. */
  #giveUp(id: number): void {
    this.#abandoned += 1;
    clearTimeout(this.#pong);
    this.#pong = setTimeout(() => void this.terminate(), pongMs);
    this.#tell({ ping: id });
    if (this.#abandoned > maxAbandoned) this.#isRetired = true;
    this.#settle(id, { gone: 'timeout' });
  }

  /** The limits of V8 are for JavaScript's heap; buffers lie beside it. */
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
    for (const id of this.#pending.keys()) this.#settle(id, { gone: this.#end });
  }
}

const run = promisify(execFile);

/** Memory of a process, as the system sees it: a process in a loop could not tell. */
async function residentBytes(pid: number): Promise<number> {
  if (process.platform === 'linux') {
    const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? [];
    return Number(kilobytes ?? 0) * 1024;
  }
  return Number((await run('ps', ['-o', 'rss=', '-p', String(pid)])).stdout) * 1024;
}
