import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { currentEnvironment, type Environment } from '../../shared/config/config.ts';
import { moduleUrl } from '../../shared/process/module-url.ts';
import { say } from '../cli/language.ts';

const firstRestartMs = 200;
const maxRestartMs = 5000;
/** If a process has run for this long, the delay before its next restart is reset. */
const stableMs = 30_000;

interface SupervisedOptions {
  /** Name in log lines: `api`, `dispatcher`, … */
  name: string;
  /** Path of the source file, relative to the root of the project. */
  file: string;
  /** Folder of the bundle from which the process starts. By default, it starts from its source. */
  bundle?: URL | undefined;
  /** Command-line flags of Node. */
  flags?: readonly string[];
  env: Environment;
  log: (line: string) => void;
  /** Called with every message. The first message of each run means that the process is ready. */
  onMessage?: (message: Record<string, unknown>) => Promise<void> | void;
}

/**
 * Child process that is restarted when it exits. It also stops if this process is killed, because
 * its IPC channel closes (shared/process/lifecycle.ts). It has its own process group, so that
 * Ctrl-C reaches only this process, which decides the order of stopping.
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

  /** Resolves when the process reports that it is ready. Rejects if it exits before that. */
  start(): Promise<void> {
    return new Promise((resolve, reject) => {
      const child = this.#spawn();
      child.once('error', reject);
      child.once('exit', (code, signal) => {
        if (!this.#isUp)
          reject(
            new Error(
              say('{name} did not start ({reason})', {
                name: this.#options.name,
                reason: ending(code, signal),
              }),
            ),
          );
      });
      child.once('message', () => resolve());
    });
  }

  /** Sends a message to the process over its IPC channel. Drops it if the process has exited. */
  send(message: object): void {
    this.#child?.send(message, () => undefined);
  }

  /** Sends SIGTERM, then SIGKILL after `graceMs`. Resolves when the process has exited. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#timer);
    const child = this.#child;
    if (!child?.pid || child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    const killer = setTimeout(() => child.kill('SIGKILL'), graceMs);
    await exited;
    clearTimeout(killer);
  }

  #spawn(): ChildProcess {
    const { file, bundle, env, flags = [] } = this.#options;
    const source = moduleUrl(`../../${file}`, import.meta.url);
    const path = fileURLToPath(bundle ? new URL(file.replace(/\.ts$/, '.js'), bundle) : source);
    // Logs go to standard error, because standard output is for the text of `npm start`.
    const stdio: StdioOptions = ['ignore', 2, 2, 'ipc'];
    // Disabled, because SIGUSR1 would open a debugger in a process with secrets.
    const child = spawn(process.execPath, ['--disable-sigusr1', ...flags, path], {
      env,
      detached: true,
      stdio,
    });
    this.#child = child;
    const startedAtMs = performance.now();
    child.on('message', (message) => void this.#receive(message));
    child.on('exit', (code, signal) => {
      endGroup(child);
      if (performance.now() - startedAtMs > stableMs) this.#restartMs = firstRestartMs;
      if (this.#isUp && !this.#isStopping) this.#restart(ending(code, signal));
    });
    // A process that cannot be started has no exit. Without a listener, its error would end this
    // process.
    child.on('error', ({ message }) => {
      if (child.pid === undefined && this.#isUp && !this.#isStopping) this.#restart(message);
    });
    return child;
  }

  async #receive(message: unknown): Promise<void> {
    this.#isUp = true;
    const { onMessage, log, name } = this.#options;
    try {
      if (typeof message === 'object' && message !== null) await onMessage?.({ ...message });
    } catch (error) {
      log(`${name}: ${error instanceof Error ? error.message : error}`);
    }
  }

  #restart(reason: string): void {
    this.#options.log(
      say('{name} ended ({reason}); starting it again', { name: this.#options.name, reason }),
    );
    this.#timer = setTimeout(() => {
      if (!this.#isStopping) this.#spawn();
    }, this.#restartMs);
    this.#restartMs = Math.min(this.#restartMs * 2, maxRestartMs);
  }
}

const ending = (code: number | null, signal: string | null): string =>
  signal ?? say('exit code {code}', { code: code ?? '-' });

/**
 * Kills the processes that a child started. A function in an endless loop does not notice that its
 * host has exited.
 */
function endGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // The process group is empty.
  }
}

/** Interval for checking that the npm process that started this process still runs. */
const parentCheckMs = 1000;

/**
 * Resolves on a stop signal, when the npm process that started this process exits, or when the
 * terminal or the reader of our output is gone.
 */
export function stopOnSignals(): Promise<void> {
  return new Promise((resolveStop) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
      process.on(signal, () => resolveStop());
    // Replaces the error listener of the other commands, which exits at once. The stop takes some
    // seconds and prints lines.
    for (const output of [process.stdout, process.stderr])
      output.removeAllListeners('error').on('error', () => resolveStop());
    if (currentEnvironment().npm_lifecycle_event === undefined) return;
    const parent = process.ppid;
    const timer = setInterval(() => {
      if (process.ppid !== parent) resolveStop();
    }, parentCheckMs);
    timer.unref();
  });
}
