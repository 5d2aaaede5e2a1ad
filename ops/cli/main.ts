import { runCommandLine } from './program.ts';

// Exits without an error if the reader closes the pipe early (`| head`).
process.stdout.on('error', () => process.exit());

const exitCode = await runCommandLine(process.argv.slice(2));
if (exitCode !== 0) process.exit(exitCode);
