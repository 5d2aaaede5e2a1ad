import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { chown, mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { sleep } from '../../shared/clock.ts';

const execute = promisify(execFile);
const untilMs = 60_000;
const pollMs = 200;

/**
 * Processes of an unprivileged user. Each process has a log file in one folder. They end with the
 * calling process.
 */
export class Processes {
  readonly #folder: string;
  readonly #ids = ordinaryUser();
  readonly #running = new Map<string, ChildProcess>();
  readonly #closers: (() => Promise<void>)[] = [];

  constructor(folder: string) {
    this.#folder = folder;
  }

  async makeFolder(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o755 });
    if (this.#ids) await chown(this.#folder, this.#ids.uid, this.#ids.gid);
  }

  /**
   * Starts a command in the folder, optionally in a network namespace. Resolves when the command
   * runs.
   */
  async run(
    name: string,
    command: readonly string[],
    {
      variables = {},
      namespace,
    }: { variables?: Record<string, string | undefined>; namespace?: string } = {},
  ): Promise<void> {
    const log = await open(join(this.#folder, `${name}.log`), 'a', 0o644);
    this.#closers.push(() => log.close());
    const env = { ...this.#environment, ...variables };
    const stdio: ('ignore' | number)[] = ['ignore', log.fd, log.fd];
    const ids = this.#ids;
    const user = ids ? [`--reuid=${ids.uid}`, `--regid=${ids.gid}`, '--clear-groups'] : [];
    // The kernel ends the process when the calling process exits.
    const [file = '', ...args] = [
      ...(namespace === undefined ? [] : ['ip', 'netns', 'exec', namespace]),
      ...['setpriv', ...user, '--pdeathsig', 'TERM', '--', ...command],
    ];
    const child = spawn(file, args, { env, cwd: this.#folder, stdio });
    this.#running.set(name, child);
    await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject));
  }

  /**
   * Runs a command in the folder and returns its output. If it fails, throws an error with its
   * error output.
   */
  async execute(
    command: readonly string[],
    variables: Record<string, string> = {},
  ): Promise<string> {
    const [file = '', ...args] = command;
    const env = { ...this.#environment, ...variables };
    return (await execute(file, args, { ...this.#ids, env, cwd: this.#folder })).stdout;
  }

  /** Ends a process with a signal. Resolves when the process has exited. */
  async stop(name: string, signal: NodeJS.Signals): Promise<void> {
    const child = this.#running.get(name);
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise((resolve) => child.once('exit', resolve));
    child.kill(signal);
    await exited;
  }

  get #environment(): Record<string, string> {
    return {
      PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
      HOME: this.#folder,
      LC_ALL: 'C.UTF-8',
      TZ: 'UTC',
    };
  }

  kill(name: string): void {
    this.#running.get(name)?.kill('SIGKILL');
  }

  /** Kills all processes. Resolves when they have exited. */
  async close(): Promise<void> {
    await Promise.all([...this.#running.keys()].map((name) => this.stop(name, 'SIGKILL')));
    await Promise.all(this.#closers.map((close) => close()));
  }
}

/** Returns the folder with the programs of the newest installed Debian PostgreSQL. */
export function newestPostgres(): string {
  const home = '/usr/lib/postgresql';
  const versions = existsSync(home) ? readdirSync(home).map(Number) : [];
  return join(home, String(Math.max(...versions, 15)), 'bin');
}

/**
 * Returns the user that runs PostgreSQL, because PostgreSQL refuses root: `postgres` of the Debian
 * package. Returns undefined for the current user.
 */
function ordinaryUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const id = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

/** Kills a process. Ignores a process that has already exited. */
export function killProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // Already exited.
  }
}

/** Waits until a condition is true. After one minute, throws the last error. */
export async function until(what: string, condition: () => Promise<boolean>): Promise<void> {
  const endsAtMs = performance.now() + untilMs;
  let last: unknown;
  while (performance.now() < endsAtMs) {
    try {
      if (await condition()) return;
    } catch (error) {
      last = error;
    }
    await sleep(pollMs);
  }
  throw new Error(`no ${what} within ${untilMs / 1000} s`, { cause: last });
}
