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

export interface ShellResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

/**
 * Runs the commands of a page in one shell that ends at the first failure; `npx carillon` is the command line of this
 * checkout. `npx carillon api` and `dispatcher` run in the background until the shell ends.
 */
export async function runShell(
  commands: string[],
  { cwd, env = {} }: { cwd: string; env?: Record<string, string> },
): Promise<ShellResult> {
  const npx = `
    npx() {
      shift
      case "$1" in
        api | dispatcher) (exec "${process.execPath}" "${launcher}" "$@") & ;;
        *) "${process.execPath}" "${launcher}" "$@" ;;
      esac
    }
    trap 'kill $(jobs -p) 2>/dev/null && wait || true' EXIT`;
  const child = spawn('bash', ['-e', '-c', [npx, ...commands].join('\n')], {
    cwd,
    env: { ...bareEnvironment(), ...env },
  });
  child.stdin.end();
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { code, stdout, stderr };
}
