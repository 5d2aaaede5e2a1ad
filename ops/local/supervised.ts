import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Environment } from '../../shared/config.ts';
import { moduleUrl } from '../../shared/module-url.ts';

const firstRestartMs = 200;
const maxRestartMs = 5000;
/** What a process that ran this long is forgiven: its next restart is quick again. */
const stableMs = 30_000;

export interface SupervisedOptions {
  /** Shown in messages: `api`, `dispatcher`, … */
  name: string;
  /** Source file, relative to the project's root. */
  file: string;
  /** Node's own flags. */
  flags?: readonly string[];
  env: Environment;
  log: (line: string) => void;
  /** Called with every message; the first of each run says that the process is ready. */
  onMessage?: (message: Record<string, unknown>) => Promise<void> | void;
}

/**
 * A process of ours that is started again when it dies. It holds an IPC channel to us: should we be
 * killed, the channel ends and it stops by itself (shared/lifecycle.ts). It has a process group of its
 * own, so that Ctrl-C reaches only us and we decide the order of stopping.
 */
export class Supervised {
  readonly #options: SupervisedOptions;
  #child: ChildProcess | undefined;
  #isStopping = false;
  #isUp = false;
  #restartMs = firstRestartMs;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: SupervisedOptions) {
    this.#options = options;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Resolves when the process said that it is ready; rejects when it ended before that. */
  start(): Promise<void> {
    return new Promise((resolve, reject) => {
      const child = this.#spawn();
      child.once('error', reject);
      child.once('exit', (code, signal) => {
        if (!this.#isUp)
          reject(new Error(`${this.#options.name} did not start (${signal ?? `exit code ${code}`})`));
      });
      child.once('message', () => resolve());
    });
  }

  /** Says something to the process over its IPC channel. */
  send(message: object): void {
    this.#child?.send(message);
  }

  /** SIGTERM, then SIGKILL after `graceMs`. Resolves when it is gone. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#timer);
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    const killer = setTimeout(() => child.kill('SIGKILL'), graceMs);
    await gone;
    clearTimeout(killer);
  }

  #spawn(): ChildProcess {
    const { file, env, flags = [] } = this.#options;
    const path = fileURLToPath(moduleUrl(`../../${file}`, import.meta.url));
    // Logs go to standard error: standard output is for what `npm start` tells its user.
    const stdio: StdioOptions = ['ignore', 2, 2, 'ipc'];
    // A signal of another process of the same user must not open a debugger in one that holds secrets.
    const child = spawn(process.execPath, ['--disable-sigusr1', ...flags, path], {
      env,
      detached: true,
      stdio,
    });
    this.#child = child;
    const startedAtMs = performance.now();
    child.on('message', (message) => void this.#hear(message));
    child.on('exit', (code, signal) => {
      endGroup(child);
      if (performance.now() - startedAtMs > stableMs) this.#restartMs = firstRestartMs;
      if (this.#isUp && !this.#isStopping) this.#restart(signal ?? `exit code ${code}`);
    });
    return child;
  }

  async #hear(message: unknown): Promise<void> {
    this.#isUp = true;
    const { onMessage, log, name } = this.#options;
    try {
      if (typeof message === 'object' && message !== null) await onMessage?.({ ...message });
    } catch (error) {
      log(`${name}: ${error instanceof Error ? error.message : error}`);
    }
  }

  #restart(reason: string): void {
    this.#options.log(`${this.#options.name} ended (${reason}); starting it again`);
    this.#timer = setTimeout(() => {
      if (!this.#isStopping) this.#spawn();
    }, this.#restartMs);
    this.#restartMs = Math.min(this.#restartMs * 2, maxRestartMs);
  }
}

/** What a process started itself ends with it: a function in a loop does not see that its host is gone. */
function endGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // It was alone.
  }
}
