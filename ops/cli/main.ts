import { CommanderError } from 'commander';
import { isJson, program } from './program.ts';
import { printDocument, printFailure, UsageError } from './report.ts';

// A reader that closes the pipe early (`| head`) is not a failure.
process.stdout.on('error', () => process.exit());

try {
  await program.parseAsync();
} catch (error) {
  process.exit(exitCodeOf(error));
}

/** Returns the exit code for an error: 0 for help, 1 for a refusal or failure, 2 for wrong usage. */
function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) {
    // Commander has printed the error on standard error; `--json` also needs it on standard output.
    const isHelp = error.exitCode === 0;
    if (!isHelp && process.argv.includes('--json'))
      printDocument({ error: error.message.replace(/^error: /, '') });
    return isHelp ? 0 : 2;
  }
  printFailure(error, isJson());
  return error instanceof UsageError ? 2 : 1;
}
