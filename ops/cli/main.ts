import { readFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import { z } from 'zod';
import { addAppCommands } from './commands/app.ts';
import { addBreakerCommands } from './commands/breakers.ts';
import { addControlCommands } from './commands/control.ts';
import { addDoctorCommand } from './commands/doctor.ts';
import { addImportCommand, addMoveInCommand } from './commands/import.ts';
import { addOutboxCommand } from './commands/outbox.ts';
import { addProcessCommands } from './commands/processes.ts';
import { addProfileCommands } from './commands/profile.ts';
import { addPushCommand } from './commands/push.ts';
import { addSandboxCommand } from './commands/sandbox.ts';
import { addUsageCommand } from './commands/usage.ts';
import { addUserCommands } from './commands/user.ts';
import { addWhyCommand } from './commands/why.ts';
import { printDocument, printFailure, printReport, type Shell, UsageError } from './report.ts';

const program = new Command('carillon')
  .description('Self-hosted push delivery')
  .version(packageVersion(), '--version', 'print the version')
  .option('--json', 'print one JSON document on standard output and nothing else there')
  .showHelpAfterError('(add --help for what the command takes)')
  .exitOverride();

/** The version that `package.json` names; the compiled package has a copy of it beside its modules. */
function packageVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return z.object({ version: z.string() }).parse(JSON.parse(text)).version;
}

const isJson = () => program.opts().json === true;

const shell: Shell = {
  program,
  isJson,
  act:
    (work) =>
    async (...args) => {
      const report = await work(...args);
      if (!report) return;
      printReport(report, isJson());
      if (report.isBad) process.exitCode = 1;
    },
};

addProcessCommands(shell);
addAppCommands(shell);
addProfileCommands(shell);
addPushCommand(shell);
addWhyCommand(shell);
addControlCommands(shell);
addBreakerCommands(shell);
addUsageCommand(shell);
addUserCommands(shell);
addImportCommand(shell);
addMoveInCommand(shell);
addOutboxCommand(shell);
addDoctorCommand(shell);
addSandboxCommand(shell);

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
