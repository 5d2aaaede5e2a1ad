import fc from 'fast-check';
import { expect } from 'vitest';
import { currentEnvironment } from '../../shared/config/config.ts';

const { FUZZ_ROUNDS = '1', FUZZ_SEED, FUZZ_PATH } = currentEnvironment();

/** How many times more cases than in `npm test`; `npm run fuzz` sets it. */
export const rounds = Number(FUZZ_ROUNDS);

/** Properties with fewer cases have dear ones. */
const dearBelow = 10;

/**
 * Checks a property over `cases` × `rounds` generated inputs. A failure shows the smallest input that was found, and the
 * command that runs it again. `npm run fuzz` takes another seed each time; FUZZ_SEED fixes it.
 */
export async function fuzz<T>(
  property: fc.IProperty<T> | fc.IAsyncProperty<T>,
  { cases }: { cases: number },
): Promise<void> {
  const details = await fc.check(property, {
    numRuns: Math.ceil(cases * rounds),
    // A case that starts a whole import is too dear to look for a smaller one: the command repeats it.
    endOnFailure: cases < dearBelow,
    ...(FUZZ_SEED === undefined ? {} : { seed: Number(FUZZ_SEED) }),
    ...(FUZZ_PATH === undefined ? {} : { path: FUZZ_PATH }),
  });
  if (details.failed) throw new Error(`${await report(details)}\n\n${commandFor(details)}`);
}

async function report<T>(details: fc.RunDetails<T>): Promise<string> {
  const { errorInstance: error } = details;
  return `${error instanceof Error ? error.message : String(error)}\n${await fc.asyncDefaultReportMessage(details)}`;
}

/** Without FUZZ_PATH the whole run is repeated: for failures that need what earlier cases left behind. */
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
