import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

export const launcher = fileURLToPath(new URL('../../ops/cli/carillon.mjs', import.meta.url));

export interface CliResult {
  code: number | null;
  stdout: string;
  stderr: string;
  /** Standard output as the one JSON document it should be. */
  // biome-ignore lint/suspicious/noExplicitAny: tests say what they expect of it
  json(): any;
}

export interface CliOptions {
  env?: Record<string, string>;
  cwd?: string;
  stdin?: string;
  /** Arguments of Node itself, before the launcher. */
  nodeArgs?: string[];
}

/** Only what a program needs to start: the variables of the machine must not reach the tests. */
export const bareEnvironment = (): Record<string, string> => ({ PATH: process.env.PATH ?? '' });

/** Runs the real command line to its end. */
export async function carillon(args: string[], options: CliOptions = {}): Promise<CliResult> {
  const child = spawn(process.execPath, [...(options.nodeArgs ?? []), launcher, ...args], {
    env: { ...bareEnvironment(), ...options.env },
    cwd: options.cwd,
  });
  child.stdin.end(options.stdin ?? '');
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { code, stdout, stderr, json: () => JSON.parse(stdout) };
}
