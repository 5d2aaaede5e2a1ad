import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { addTallies, formatTally, readVitestReport } from '../../../ops/check/step-runner.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'carillon-tally-'));
});
afterAll(() => rm(folder, { recursive: true }));

const longError = [
  `AssertionError: expected ${'long '.repeat(100)}`,
  '    at file:///home/me/carillon/node_modules/vitest/dist/index.js:1:1',
  ...Array.from({ length: 20 }, (_, i) => `    at step ${i}`),
].join('\n');

/** Returns a file of a report with the results of its tests. */
const fileOf = (
  name: string,
  statuses: string[],
  status = statuses.includes('failed') ? 'failed' : 'passed',
) => ({
  name: resolve(name),
  status,
  message: status === 'failed' ? 'Cannot find module' : '',
  assertionResults: statuses.map((each, i) => ({
    status: each,
    fullName: `a thing does ${i}`,
    failureMessages: each === 'failed' ? [longError] : [],
  })),
});

type ReportFile = ReturnType<typeof fileOf>;

async function tallyOf(exitCode: number, testResults: ReportFile[]) {
  const statuses = testResults.flatMap((file) => file.assertionResults.map(({ status }) => status));
  const count = (status: string) => statuses.filter((each) => each === status).length;
  const path = join(folder, 'report.json');
  const counts = {
    numPassedTests: count('passed'),
    numPendingTests: count('pending'),
    numTodoTests: 0,
  };
  await writeFile(path, JSON.stringify({ ...counts, testResults }));
  return readVitestReport(path, exitCode);
}

describe('the count of a test run', () => {
  test('names failed tests with the start of the error, and failed files', async () => {
    const files = [
      fileOf('test/a.test.ts', ['passed', 'failed', 'pending']),
      fileOf('test/b.test.ts', [], 'failed'),
    ];
    const { failures, ...counts } = await tallyOf(1, files);
    expect(counts).toEqual({ passed: 1, failed: 2, skipped: 1 });
    expect(failures).toHaveLength(2);
    const [name, message, ...steps] = failures[0]?.split('\n') ?? [];
    expect(name).toBe('test/a.test.ts: a thing does 1');
    expect(message).toMatch(/^ {4}AssertionError: expected (long ){10}/);
    expect(message?.length).toBe(304);
    expect(steps.map((line) => line.trim())).toEqual(
      Array.from({ length: 11 }, (_, i) => `at step ${i}`),
    );
    expect(failures[1]).toBe('test/b.test.ts, outside of its tests: Cannot find module');
  });

  test('has one failure for a run without tests or report, or with other errors', async () => {
    expect(await tallyOf(0, [])).toMatchObject({
      failed: 1,
      failures: ['the test run executed no test'],
    });
    expect(await readVitestReport(join(folder, 'none.json'), 137)).toMatchObject({
      passed: 0,
      failed: 1,
      failures: ['the test run ended with code 137 and left no report'],
    });
    const broken = await tallyOf(1, [fileOf('test/a.test.ts', ['passed', 'pending'])]);
    expect(broken).toMatchObject({ passed: 1, failed: 1, skipped: 1 });
    expect(broken.failures).toEqual([expect.stringContaining('though no test failed')]);
  });

  test('adds up, and is the line that scripts parse', async () => {
    const passed = await tallyOf(0, [fileOf('test/a.test.ts', ['passed', 'passed'])]);
    expect(formatTally(passed)).toBe('2 passed, 0 failed');
    const failed = await tallyOf(1, [fileOf('test/b.test.ts', ['failed', 'pending'])]);
    expect(formatTally(addTallies([passed, failed]))).toBe('2 passed, 1 failed, 1 skipped');
    expect(addTallies([passed, failed]).failures).toEqual(failed.failures);
  });
});
