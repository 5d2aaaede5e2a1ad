import fc from 'fast-check';
import { expect } from 'vitest';
import { currentEnvironment } from '../../shared/config/config.ts';

const { FUZZ_ROUNDS = '1', FUZZ_SEED, FUZZ_PATH } = currentEnvironment();

/** Factor for the number of cases. `npm run fuzz` sets it. In `npm test` it is 1. */
export const rounds = Number(FUZZ_ROUNDS);

/** Seed of the run, if one is set. */
export const seed = FUZZ_SEED === undefined ? undefined : Number(FUZZ_SEED);

/** Properties with fewer cases than this have expensive cases. */
const expensiveBelow = 10;

/**
 * Checks a property with `cases` × `rounds` generated inputs. A failure shows the smallest failing
 * input and the command that repeats it. Each run has a new seed unless FUZZ_SEED is set.
 */
export async function fuzz<T>(
  property: fc.IProperty<T> | fc.IAsyncProperty<T>,
  { cases }: { cases: number },
): Promise<void> {
  const details = await fc.check(property, {
    numRuns: Math.ceil(cases * rounds),
    // Shrinking is too expensive for cases such as a whole import.
    endOnFailure: cases < expensiveBelow,
    ...(seed === undefined ? {} : { seed }),
    ...(FUZZ_PATH === undefined ? {} : { path: FUZZ_PATH }),
  });
  if (details.failed) throw new Error(`${await report(details)}\n\n${commandFor(details)}`);
}

async function report<T>(details: fc.RunDetails<T>): Promise<string> {
  const { errorInstance: error } = details;
  return `${error instanceof Error ? error.message : String(error)}\n${await fc.asyncDefaultReportMessage(details)}`;
}

/**
 * Returns the commands that repeat a failure. The command without FUZZ_PATH repeats the whole run,
 * for failures that depend on earlier cases.
 */
function commandFor<T>({ seed, counterexamplePath }: fc.RunDetails<T>): string {
  const { testPath = '', currentTestName = '' } = expect.getState();
  const file = testPath.slice(testPath.lastIndexOf('test/fuzz/'));
  const name = (currentTestName.split(' > ').at(-1) ?? '').replace(/[^\w\s,-]/g, '.');
  const again = `npx vitest run ${file} -t "${name}"`;
  return [
    'To repeat this case, or the whole run where the case alone does not fail:',
    `  FUZZ_SEED=${seed} FUZZ_PATH=${counterexamplePath} ${again}`,
    `  FUZZ_SEED=${seed} FUZZ_ROUNDS=${rounds} ${again}`,
  ].join('\n');
}
