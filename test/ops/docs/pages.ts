import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { bareEnvironment, launcher } from '../../support/cli.ts';

/** Returns the fenced blocks of a page of `docs/` in one language, in order. */
export async function blocksOf(page: string, language: string): Promise<string[]> {
  const content = await readFile(new URL(`../../../docs/${page}`, import.meta.url), 'utf8');
  const fences = content.matchAll(/```(\w*)\n([\s\S]*?)```/g);
  return [...fences].filter(([, tag]) => tag === language).map(([, , block = '']) => block);
}

/**
 * Returns a document as it holds now: the sections of earlier versions of the changelog are left
 * out.
 */
export const currentPart = (text: string): string => text.split(/^## \d+\.\d+\.\d+ - /m)[0] ?? '';

export interface ShellResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Shell that runs commands of a page, as in a terminal of the reader. */
export interface Terminal {
  /** What the shell printed, once all of its commands have ended. */
  ended: Promise<ShellResult>;
  /** Ends the command in the foreground, as Ctrl-C does. Does nothing after the end. */
  interrupt(): void;
}

/**
 * Starts the commands of a page in one shell that ends at the first failure. `npx carillon` is the
 * command line of this checkout.
 */
export function openTerminal(
  commands: string[],
  { cwd, env = {} }: { cwd: string; env?: Record<string, string> },
): Terminal {
  const npx = `npx() { shift; "${process.execPath}" "${launcher}" "$@"; }`;
  // The shell leads a process group, which Ctrl-C reaches as a whole.
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

/** Runs the commands of a page in one shell and waits for their end. */
export const runShell = (...args: Parameters<typeof openTerminal>): Promise<ShellResult> =>
  openTerminal(...args).ended;
