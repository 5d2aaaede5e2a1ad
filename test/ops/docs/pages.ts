import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { testConfig } from '../../support/api.ts';
import { bareEnvironment, launcher } from '../../support/cli.ts';

/** Returns the fenced blocks in one language on a page of `docs/`, in order. */
export async function blocksOf(page: string, language: string): Promise<string[]> {
  const content = await readFile(new URL(`../../../docs/${page}`, import.meta.url), 'utf8');
  const fences = content.matchAll(/```(\w*)\n([\s\S]*?)```/g);
  return [...fences].filter(([, tag]) => tag === language).map(([, , block = '']) => block);
}

/**
 * Returns the current part of a document. The sections of earlier versions in the changelog are
 * left out.
 */
export const currentPart = (text: string): string => text.split(/^## \d+\.\d+\.\d+ - /m)[0] ?? '';

export interface ShellResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Shell that runs commands of a page, like a reader's terminal. */
export interface Terminal {
  /** Resolves with the output of the shell when all of its commands have ended. */
  ended: Promise<ShellResult>;
  /** Ends the command in the foreground, like Ctrl-C. Does nothing after the end. */
  interrupt(): void;
}

/**
 * Starts the commands of a page in one shell that ends at the first failure. `npx carillon` is the
 * CLI of this checkout.
 */
export function openTerminal(
  commands: string[],
  { cwd, env = {} }: { cwd: string; env?: Record<string, string> },
): Terminal {
  const npx = `npx() { shift; "${process.execPath}" "${launcher}" "$@"; }`;
  // The shell leads a process group, so that Ctrl-C reaches the whole group.
  const child = spawn('bash', ['-e', '-c', [npx, ...commands].join('\n')], {
    cwd,
    env: { ...bareEnvironment(), ...env },
    detached: true,
  });
  child.stdin.end();
  const code = new Promise<number | null>((resolve) => child.once('close', resolve));
  const ended = Promise.all([text(child.stdout), text(child.stderr), code]).then(
    ([stdout, stderr, code]) => ({ code, stdout, stderr }),
  );
  const interrupt = () => {
    if (child.exitCode === null && child.signalCode === null && child.pid)
      process.kill(-child.pid, 'SIGINT');
  };
  return { ended, interrupt };
}

/** Returns the variables with which the CLI reaches the service of a test. */
export const serviceEnvironment = (service: { api: { url: string }; databaseUrl: string }) => ({
  PUBLIC_URL: service.api.url,
  CARILLON_ADMIN_TOKEN: testConfig(service.databaseUrl).adminToken,
});

/** Runs the commands of a page in one shell and waits for their end. */
export const runShell = (...args: Parameters<typeof openTerminal>): Promise<ShellResult> =>
  openTerminal(...args).ended;
