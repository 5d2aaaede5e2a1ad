import { readFile } from 'node:fs/promises';
import { z } from 'zod';

/** How many checks ended how. */
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
 * Counts a Vitest run. A file that broke outside of its tests counts as one failure, and so do a run that executed
 * nothing, and one that failed without a failed test (an error nobody caught).
 *
 * @param exitCode what the run ended with
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

/** The sum of several counts. */
export function addTallies(tallies: readonly Tally[]): Tally {
  const sum = (pick: (tally: Tally) => number) => tallies.reduce((total, tally) => total + pick(tally), 0);
  return {
    passed: sum((tally) => tally.passed),
    failed: sum((tally) => tally.failed),
    skipped: sum((tally) => tally.skipped),
  };
}

/** `12 passed, 0 failed`, and `, 1 skipped` only where something was skipped: scripts read this line. */
export function formatTally({ passed, failed, skipped }: Tally): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}
