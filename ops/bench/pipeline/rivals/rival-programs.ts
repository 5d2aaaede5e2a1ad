import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { currentEnvironment } from '../../../../shared/config/config.ts';
import {
  hasPrograms,
  installOnce,
  mavenPackages,
  npmPackages,
  run,
  versionIn,
} from '../../../check/toolchains.ts';
import { AskedProcess } from '../../harness/asked-process.ts';
import { type RivalAnswer, type RivalOrder, rivalAnswer } from './rival-process.ts';

/** A running process that pushes by orders, one at a time. */
export interface RivalRun {
  readonly pid: number | undefined;
  /** Resolves when it can take an order. */
  start(order: RivalOrder): Promise<unknown>;
  push(order: RivalOrder): Promise<RivalAnswer>;
  stop(): Promise<unknown>;
}

/** A server or client that others wrote, and a loop of ours around it. */
export interface Rival {
  readonly name: string;
  readonly version: string;
  /** Whether PostgreSQL works for it, so that its CPU time counts. */
  readonly isStoring: boolean;
  /** Programs that it needs. */
  readonly programs: readonly string[];
  /** Installs what it needs; returns how its process is started. */
  prepare(log: (line: string) => void): Promise<() => RivalRun>;
}

const folder = new URL('./', import.meta.url);
const npmLock = new URL('npm/package-lock.json', folder);
const npmVersion = (name: string) =>
  versionIn(npmLock, new RegExp(`"node_modules/${name}": \\{\\s+"version": "([^"]+)"`));

/** Runs a file of this folder in Node. */
function nodeRun(name: string, file: string, packages: string, log: (line: string) => void): RivalRun {
  const child = new AskedProcess({
    name,
    file: `ops/bench/pipeline/rivals/${file}`,
    // Parse Server writes its logs into files of the working directory otherwise.
    env: { ...currentEnvironment(), NODE_ENV: 'production', PARSE_SERVER_LOGS_FOLDER: 'null' },
    log,
  });
  return {
    get pid() {
      return child.pid;
    },
    start: () => child.start(),
    push: (order) => child.ask({ ...order, packages }, rivalAnswer),
    stop: () => child.stop(),
  };
}

/**
 * Runs a program with the gateway's URL, the file of its authority and the topic as arguments. It
 * prints a line when it is ready, reads numbers of devices, and answers each with a line of JSON.
 */
class ProgramRun implements RivalRun {
  readonly #command: readonly [program: string, ...args: string[]];
  readonly #workFolder: string;
  #child: ChildProcess | undefined;
  #lines: AsyncIterator<string> | undefined;

  constructor(command: readonly [program: string, ...args: string[]], workFolder: string) {
    this.#command = command;
    this.#workFolder = workFolder;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  async push({ devices }: RivalOrder): Promise<RivalAnswer> {
    this.#child?.stdin?.write(`${devices}\n`);
    return rivalAnswer.parse(JSON.parse(await this.#nextLine()));
  }

  async stop(): Promise<void> {
    if (!this.#child) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }

  async start({ url, ca, topic }: RivalOrder): Promise<void> {
    const [program, ...args] = this.#command;
    await mkdir(this.#workFolder, { recursive: true });
    const caFile = join(this.#workFolder, 'gateway-ca.pem');
    await writeFile(caFile, ca);
    const child = spawn(program, [...args, url, caFile, topic], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child = child;
    this.#lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    await this.#nextLine();
  }

  async #nextLine(): Promise<string> {
    const { value, done } = (await this.#lines?.next()) ?? { done: true };
    if (done) throw new Error(`${this.#command[0]} ended without an answer`);
    return String(value);
  }
}

const goModule = new URL('go/go.mod', folder);
const goSum = new URL('go/go.sum', folder);
const java = new URL('java/', folder);

/** A rival whose package comes from npm, with a loop of ours in Node. */
const ofNpm = (
  name: string,
  packageName: string,
  { file, isStoring }: { file: string; isStoring: boolean },
): Rival => ({
  name,
  version: npmVersion(packageName),
  isStoring,
  programs: ['npm'],
  prepare: async (log) => {
    const packages = await npmPackages(npmLock);
    return () => nodeRun(name, file, packages, log);
  },
});

/** Those that send to the gateway of the benchmark, beside this service. */
export const rivals: readonly Rival[] = [
  {
    name: 'bare loop over node:http2',
    version: process.version,
    isStoring: false,
    programs: [],
    prepare: async (log) => () => nodeRun('bare loop', 'bare-loop-process.ts', '', log),
  },
  ofNpm('@parse/node-apn', '@parse/node-apn', { file: 'apns-client-process.ts', isStoring: false }),
  ofNpm('Parse Server with its push adapter', 'parse-server', {
    file: 'parse-server-process.ts',
    isStoring: true,
  }),
  {
    name: 'loop over apns2 (Go)',
    version: versionIn(goModule, /apns2 v(\S+)/),
    isStoring: false,
    programs: ['go'],
    prepare: async () => {
      const built = await installOnce([goModule, goSum, new URL('go/main.go', folder)], async (out) => {
        await mkdir(out, { recursive: true });
        await run('go', ['build', '-o', out, '.'], { cwd: fileURLToPath(new URL('go', folder)) });
      });
      return () => new ProgramRun([join(built, 'rivals')], built);
    },
  },
  {
    name: 'loop over pushy (Java)',
    version: versionIn(new URL('pom.xml', java), /pushy<\/artifactId>\s*<version>([^<]+)/),
    isStoring: false,
    programs: ['java', 'javac', 'mvn'],
    prepare: async () => {
      const classPath = await mavenPackages(java);
      const source = new URL('PushyLoop.java', java);
      const built = await installOnce([source], async (out) => {
        await run('javac', ['-cp', classPath, '-d', out, fileURLToPath(source)]);
      });
      return () => new ProgramRun(['java', '-cp', `${built}:${classPath}`, 'PushyLoop'], built);
    },
  },
];

/** Returns those whose programs are here; names the others. */
export const availableRivals = (): Rival[] =>
  rivals.filter(({ name, programs }) => hasPrograms(programs, name));
