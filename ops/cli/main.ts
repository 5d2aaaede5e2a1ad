import { CommanderError } from 'commander';
import { isJson, program } from './program.ts';
import { printDocument, printFailure, UsageError } from './report.ts';

// A reader that has seen enough (`| head`) is no failure.
process.stdout.on('error', () => process.exit());

try {
  await program.parseAsync();
} catch (error) {
  process.exit(conclude(error));
}

/** Exit code of what ended a command: 0 done (help was asked for), 1 refused or failed, 2 wrong usage. */
function conclude(error: unknown): number {
  if (error instanceof CommanderError) {
    // Commander said on standard error what is wrong; a program that parses our output is told as well.
    const isHelp = error.exitCode === 0;
    if (!isHelp && process.argv.includes('--json'))
      printDocument({ error: error.message.replace(/^error: /, '') });
    return isHelp ? 0 : 2;
  }
  printFailure(error, isJson());
  return error instanceof UsageError ? 2 : 1;
}
