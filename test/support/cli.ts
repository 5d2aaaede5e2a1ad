import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

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
  /** Arguments of Node itself, before the launcher. */
  nodeArgs?: string[];
}

/** Returns the minimal environment of a program, so that variables of the machine do not influence the tests. */
export const bareEnvironment = (): Record<string, string> => ({ PATH: process.env.PATH ?? '' });

/** Runs the command line and waits until it exits. */
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
