import { type ChildProcess, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { delimiter, relative, resolve } from 'node:path';
import { z } from 'zod';
import { currentEnvironment } from '../../shared/config/config.ts';

const projectDir = resolve(import.meta.dirname, '../..');
const STOP_TIMEOUT_MS = 15_000;

/**
 * Runs one command at a time. Each command gets its own process group, so that `stop` also ends its
 * child processes.
 */
export class StepRunner {
  #child: ChildProcess | undefined;
  #isStopped = false;

  /** True after `stop` was called. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /**
   * Runs a command and passes its output through. Prefers programs in `node_modules/.bin`. Returns
   * the exit code, or 1 if a signal ended the command.
   */
  run(command: readonly string[]): Promise<number> {
    const [file = '', ...args] = command;
    const path = [resolve(projectDir, 'node_modules/.bin'), currentEnvironment().PATH ?? ''].join(
      delimiter,
    );
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

  /**
   * Sends SIGINT to the running command and its child processes, and SIGKILL if they do not exit in
   * time.
   */
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
    // The process group has already exited.
  }
}

/**
 * Number of checks by result. `failures` has the name of each failed check and the start of its
 * error.
 */
export interface Tally {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly failures: readonly string[];
}

const reportSchema = z.object({
  numPassedTests: z.number(),
  numPendingTests: z.number(),
  numTodoTests: z.number(),
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      message: z.string().default(''),
      assertionResults: z.array(
        z.object({
          status: z.string(),
          fullName: z.string(),
          failureMessages: z.array(z.string()).default([]),
        }),
      ),
    }),
  ),
});

type FileReport = z.infer<typeof reportSchema>['testResults'][number];

/**
 * Counts the results of a Vitest run. These count as one failure each: a file that fails outside
 * its tests, a run without tests, and a run that fails without a failed test (an uncaught error).
 *
 * @param exitCode exit code of the run
 */
export async function readVitestReport(path: string, exitCode: number): Promise<Tally> {
  const text = await readFile(path, 'utf8').catch(() => undefined);
  if (text === undefined) return failedRun(`ended with code ${exitCode} and left no report`);
  const report = reportSchema.parse(JSON.parse(text));
  const passed = report.numPassedTests;
  const skipped = report.numPendingTests + report.numTodoTests;
  const failures = report.testResults.flatMap(failuresOf);
  const failed = failures.length;
  if (passed + failed === 0) return failedRun('executed no test');
  if (failed > 0 || exitCode === 0) return { passed, failed, skipped, failures };
  return {
    ...failedRun(`ended with code ${exitCode}, though no test failed: see the errors above`),
    passed,
    skipped,
  };
}

/**
 * Limits on the part of an error that the summary repeats. The full error is above in the output,
 * but a CI log often keeps only the end.
 */
const excerptLimits = { lines: 12, characters: 300 };

/** Returns the failed tests of a file, or the file itself if it failed outside its tests. */
function failuresOf({ name, status, message, assertionResults }: FileReport): string[] {
  const path = relative(process.cwd(), name);
  const failed = assertionResults.filter((test) => test.status === 'failed');
  if (failed.length === 0 && status === 'failed')
    return [`${path}, outside of its tests: ${message}`];
  return failed.map(
    ({ fullName, failureMessages }) => `${path}: ${fullName}${beginOf(failureMessages.join('\n'))}`,
  );
}

function beginOf(error: string): string {
  const lines = error
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.includes('node_modules'));
  const begin = lines
    .slice(0, excerptLimits.lines)
    .map((line) => `\n    ${line.slice(0, excerptLimits.characters)}`);
  return begin.join('');
}

const failedRun = (reason: string): Tally => oneFailure(`the test run ${reason}`);

/** Returns a tally of one failed check. */
export const oneFailure = (name: string): Tally => ({
  passed: 0,
  failed: 1,
  skipped: 0,
  failures: [name],
});

/** Adds tallies. */
export function addTallies(tallies: readonly Tally[]): Tally {
  const sum = (pick: (tally: Tally) => number) =>
    tallies.reduce((total, tally) => total + pick(tally), 0);
  return {
    passed: sum((tally) => tally.passed),
    failed: sum((tally) => tally.failed),
    skipped: sum((tally) => tally.skipped),
    failures: tallies.flatMap(({ failures }) => failures),
  };
}

/**
 * Formats a tally as `12 passed, 0 failed`, followed by `, 1 skipped` if checks were skipped.
 * Scripts parse this line.
 */
export function formatTally({ passed, failed, skipped }: Tally): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}
