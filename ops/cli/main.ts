import { runCommandLine } from './program.ts';

// A reader that closes the pipe early (`| head`) is not a failure.
process.stdout.on('error', () => process.exit());

const exitCode = await runCommandLine(process.argv.slice(2));
if (exitCode !== 0) process.exit(exitCode);
