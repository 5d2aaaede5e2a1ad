import { Command, CommanderError, Option } from 'commander';
import { currentEnvironment } from '../../shared/config/config.ts';
import { packageVersion } from '../../shared/process/version.ts';
import { addAppCommands } from './commands/apps/app.ts';
import { addImportCommand, addMoveInCommand } from './commands/apps/import.ts';
import { addProfileCommands } from './commands/apps/profile.ts';
import { addUsageCommand } from './commands/apps/usage.ts';
import { addUserCommands } from './commands/apps/user.ts';
import { addAccessCommands } from './commands/console/access.ts';
import { addDeviceCommands } from './commands/console/devices.ts';
import { addRecordCommand } from './commands/console/record.ts';
import { addReportCommands } from './commands/console/reports.ts';
import { addStateCommands } from './commands/console/state.ts';
import { addControlCommands } from './commands/pushes/control.ts';
import { addPushCommand } from './commands/pushes/push.ts';
import { addReceiptCommands } from './commands/pushes/receipts.ts';
import { addRedriveCommands } from './commands/pushes/redrive.ts';
import { addWhyCommand } from './commands/pushes/why.ts';
import { addRecurringCommands } from './commands/sending/recurring.ts';
import { addSendingCommands } from './commands/sending/sending.ts';
import { addSmsTextCommands } from './commands/sending/sms-texts.ts';
import { addBreakerCommands } from './commands/service/breakers.ts';
import { addDoctorCommand } from './commands/service/doctor.ts';
import { addFreezeCommands } from './commands/service/freeze.ts';
import { addOutboxCommand } from './commands/service/outbox.ts';
import { addProcessCommands } from './commands/service/processes.ts';
import { addRecoveryCommands } from './commands/service/recovery.ts';
import { addSandboxCommand } from './commands/service/sandbox.ts';
import { addSecretCommands } from './commands/service/secret.ts';
import { chooseLanguage, languageOf } from './language.ts';
import { printDocument, printFailure, printReport, type Shell, UsageError } from './report.ts';

/** Command line with all commands and options; nothing runs until it parses arguments. */
export const program = new Command('carillon')
  .description('Self-hosted push delivery')
  .version(packageVersion(), '--version', 'print the version')
  .option('--json', 'print one JSON document on standard output and nothing else there')
  .addOption(
    new Option(
      '--lang <language>',
      'print reasons, remedies, findings, forecasts and refusals in English or Chinese',
    ).choices(['en', 'zh']),
  )
  .showHelpAfterError('(add --help for what the command takes)')
  .exitOverride()
  .hook('preAction', () => {
    const { lang } = program.opts();
    const asked = lang === 'en' || lang === 'zh' ? lang : languageOf(currentEnvironment());
    chooseLanguage(isJson() ? 'en' : asked);
  });

/** Checks whether the option `--json` is set. */
export const isJson = () => program.opts().json === true;

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
addRecoveryCommands(shell);
addAppCommands(shell);
addProfileCommands(shell);
addPushCommand(shell);
addWhyCommand(shell);
addControlCommands(shell);
addRedriveCommands(shell);
addReceiptCommands(shell);
addBreakerCommands(shell);
addFreezeCommands(shell);
addUsageCommand(shell);
addUserCommands(shell);
addImportCommand(shell);
addMoveInCommand(shell);
addAccessCommands(shell);
addStateCommands(shell);
addReportCommands(shell);
addRecordCommand(shell);
addSendingCommands(shell);
addRecurringCommands(shell);
addSmsTextCommands(shell);
addDeviceCommands(shell);
addOutboxCommand(shell);
addDoctorCommand(shell);
addSecretCommands(shell);
addSandboxCommand(shell);

/**
 * Runs a command and prints its report. Returns the exit code: 0 for success and help, 1 for a
 * refusal or failure, 2 for wrong usage (protocol/operation.md#command-line). A command whose
 * outcome is bad sets `process.exitCode` to 1 itself.
 */
export async function runCommandLine(args: string[]): Promise<number> {
  try {
    await program.parseAsync(args, { from: 'user' });
    return 0;
  } catch (error) {
    if (!(error instanceof CommanderError)) {
      printFailure(error, isJson());
      return error instanceof UsageError ? 2 : 1;
    }
    // Commander has printed the error on standard error; `--json` also needs it on standard output.
    const isHelp = error.exitCode === 0;
    if (!isHelp && args.includes('--json')) printDocument({ error: error.message.replace(/^error: /, '') });
    return isHelp ? 0 : 2;
  }
}
