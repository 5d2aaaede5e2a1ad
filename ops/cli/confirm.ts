import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { say } from './language.ts';
import { CommandFailure } from './report.ts';

/**
 * Asks for confirmation before a deletion and reads the answer from standard input. Throws `CommandFailure` unless it is
 * `y` or `yes`; the end of the input counts as no.
 */
export async function confirm(question: string): Promise<void> {
  process.stderr.write(`${question} [y/N] `);
  const lines = createInterface({ input: process.stdin });
  const answer = await Promise.race([
    once(lines, 'line').then(([line]) => String(line)),
    once(lines, 'close').then(() => ''),
  ]);
  lines.close();
  if (!/^y(es)?$/i.test(answer.trim()))
    throw new CommandFailure(say('Nothing was deleted: answer y, or give --yes.'));
}
