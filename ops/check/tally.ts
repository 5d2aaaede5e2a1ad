import { readFile } from 'node:fs/promises';
import { z } from 'zod';

/** Number of checks by result. */
export interface Tally {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

const reportSchema = z.object({
  numPassedTests: z.number(),
  numFailedTests: z.number(),
  numPendingTests: z.number(),
  numTodoTests: z.number(),
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      message: z.string().default(''),
      assertionResults: z.array(z.object({ status: z.string() })),
    }),
  ),
});

/**
 * Counts a Vitest run. A file that failed outside of its tests counts as one failure, and so do a run without tests and a
 * run that failed without a failed test (an uncaught error).
 *
 * @param exitCode exit code of the run
 */
export async function readVitestReport(path: string, exitCode: number): Promise<Tally> {
  const text = await readFile(path, 'utf8').catch(() => undefined);
  if (text === undefined) {
    console.log(`The test run ended with code ${exitCode} and left no report.`);
    return { passed: 0, failed: 1, skipped: 0 };
  }
  const report = reportSchema.parse(JSON.parse(text));
  const isBroken = (file: (typeof report.testResults)[number]) =>
    file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed');
  const brokenFiles = report.testResults.filter(isBroken);
  for (const file of brokenFiles) console.log(`${file.name} failed outside of its tests. ${file.message}`);
  const passed = report.numPassedTests;
  let failed = report.numFailedTests + brokenFiles.length;
  if (passed + failed === 0) {
    console.log('No test was executed.');
    failed = 1;
  }
  if (failed === 0 && exitCode !== 0) {
    console.log(`The test run ended with code ${exitCode}, though no test failed: see the errors above.`);
    failed = 1;
  }
  return { passed, failed, skipped: report.numPendingTests + report.numTodoTests };
}

/** Adds up several counts. */
export function addTallies(tallies: readonly Tally[]): Tally {
  const sum = (pick: (tally: Tally) => number) => tallies.reduce((total, tally) => total + pick(tally), 0);
  return {
    passed: sum((tally) => tally.passed),
    failed: sum((tally) => tally.failed),
    skipped: sum((tally) => tally.skipped),
  };
}

/** Formats a count as `12 passed, 0 failed`, with `, 1 skipped` only if checks were skipped. Scripts read this line. */
export function formatTally({ passed, failed, skipped }: Tally): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}
