import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { delimiter, resolve } from 'node:path';
import { currentEnvironment } from '../../shared/config/config.ts';

const projectDir = resolve(import.meta.dirname, '../..');
const STOP_TIMEOUT_MS = 15_000;

/** Runs commands one at a time, each in its own process group, so that it can end all their processes. */
export class StepRunner {
  #child: ChildProcess | undefined;
  #isStopped = false;

  /** Whether `stop` was called. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Runs a command (from `node_modules/.bin` first) with our output. Returns its exit code, 1 for a signal. */
  run(command: readonly string[]): Promise<number> {
    const [file = '', ...args] = command;
    const path = [resolve(projectDir, 'node_modules/.bin'), currentEnvironment().PATH ?? ''].join(delimiter);
    const child = spawn(file, args, {
      cwd: projectDir,
      env: { ...currentEnvironment(), PATH: path },
      stdio: ['ignore', 'inherit', 'inherit'],
      detached: true,
    });
    this.#child = child;
    return new Promise((settle) => {
      child.once('error', (error) => {
        console.log(`${file} could not be started: ${error.message}`);
        settle(1);
      });
      child.once('exit', (code) => {
        // Ends processes that the command left running.
        signalGroup(child, 'SIGKILL');
        settle(code ?? 1);
      });
    });
  }

  /** Interrupts the running command and its processes, and kills them when they do not exit in time. */
  stop(): void {
    this.#isStopped = true;
    const child = this.#child;
    if (child === undefined) return;
    signalGroup(child, 'SIGINT');
    setTimeout(() => signalGroup(child, 'SIGKILL'), STOP_TIMEOUT_MS).unref();
  }
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, signal);
  } catch {
    // The group has exited.
  }
}
