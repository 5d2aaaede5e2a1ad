import { type ChildProcess, fork, spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type { CommandCall, CommandEnd } from './cli-host.ts';

export const launcher = fileURLToPath(new URL('../../ops/cli/carillon.mjs', import.meta.url));

export interface CliResult {
  code: number | null;
  stdout: string;
  stderr: string;
  /** Parses standard output as one JSON document. */
  // biome-ignore lint/suspicious/noExplicitAny: tests say what they expect of it
  json(): any;
}

export interface CliOptions {
  env?: Record<string, string>;
  cwd?: string;
  stdin?: string;
}

/**
 * Returns the minimal environment of a program, so that variables of the machine do not affect the
 * tests.
 */
export const bareEnvironment = (): Record<string, string> => ({ PATH: process.env.PATH ?? '' });

const host = new URL('cli-host.ts', import.meta.url);
/** Idle processes that can run a command. */
const idle: ChildProcess[] = [];
/** Maximum number of processes per test worker. Concurrent commands share them. */
const maxHosts = 3;
let hosts = 0;
/** Commands that wait for a process. */
const waiting: ((child: ChildProcess) => void)[] = [];

/** Returns a process for one command. The caller returns it with `release`. */
async function acquire(): Promise<ChildProcess> {
  const child = idle.pop();
  if (child) return child;
  if (hosts < maxHosts) return startHost();
  return new Promise((resolve) => waiting.push(resolve));
}

function release(child: ChildProcess): void {
  const next = waiting.shift();
  if (next) next(child);
  else idle.push(child);
}

/**
 * Runs a CLI command and waits until it ends. Commands share a process, because loading the modules
 * takes a quarter of a second. Use `carillonProcess` in tests of the process itself.
 */
export async function carillon(args: string[], options: CliOptions = {}): Promise<CliResult> {
  const child = await acquire();
  const { env, cwd = process.cwd(), stdin = '' } = options;
  const call: CommandCall = { args, env: { ...bareEnvironment(), ...env }, cwd, stdin };
  const end = await new Promise<CommandEnd>((resolve, reject) => {
    const died = (code: number | null) => {
      hosts -= 1;
      // A waiting command gets a new process.
      if (waiting.length > 0) release(startHost());
      reject(new Error(`carillon ${args[0]} ended the process (${code})`));
    };
    child.once('exit', died);
    child.once('message', (message) => {
      child.off('exit', died);
      resolve(message as CommandEnd);
    });
    child.send(call);
  });
  release(child);
  return { ...end, json: () => JSON.parse(end.stdout) };
}

function startHost(): ChildProcess {
  hosts += 1;
  const child = fork(host, { env: bareEnvironment(), stdio: 'inherit' });
  // The child exits with this process, and delays the exit of this process only while a command
  // runs.
  child.unref();
  child.channel?.unref();
  return child;
}

/** Runs a CLI command in a new process and waits until it exits. */
export async function carillonProcess(
  args: string[],
  options: CliOptions & { nodeArgs?: string[] } = {},
): Promise<CliResult> {
  const child = spawn(process.execPath, [...(options.nodeArgs ?? []), launcher, ...args], {
    env: { ...bareEnvironment(), ...options.env },
    cwd: options.cwd,
  });
  child.stdin.end(options.stdin ?? '');
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { code, stdout, stderr, json: () => JSON.parse(stdout) };
}
