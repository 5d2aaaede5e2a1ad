import { Command, CommanderError, Option } from 'commander';
import { currentEnvironment, packageVersion } from '../../shared/config/config.ts';
import type { Language } from '../../shared/domain/texts/catalogue.ts';
import { WrongPathPart } from '../client/client.ts';
import { helpFormat, removedNames } from './command.ts';
import { breakerCommands, freezeCommands } from './commands/control/freezes.ts';
import { controlCommands } from './commands/control/pushes.ts';
import { recallCommand } from './commands/control/recall.ts';
import { redriveCommand } from './commands/control/redrive.ts';
import { accessCommands, auditCommand } from './commands/people/access.ts';
import { deviceCommands, userCommands } from './commands/people/users.ts';
import { liveActivityCommands } from './commands/send/live-activities.ts';
import { audienceCommands, pushCommand } from './commands/send/push.ts';
import { recurringCommands } from './commands/send/recurring.ts';
import { savedCommands, scheduledCommands } from './commands/send/saved.ts';
import { processCommands } from './commands/service/processes.ts';
import { recoveryCommands } from './commands/service/recovery.ts';
import { secretCommands } from './commands/service/secret.ts';
import { doctorCommand, sandboxCommand, stateCommands } from './commands/service/state.ts';
import { appCommands } from './commands/setup/apps.ts';
import { importCommands } from './commands/setup/import.ts';
import { profileCommands } from './commands/setup/profiles.ts';
import { smsTextCommands } from './commands/setup/sms-texts.ts';
import { webhookCommands } from './commands/setup/webhooks.ts';
import { deviceReports } from './commands/show/devices.ts';
import { outboxCommands } from './commands/show/outbox.ts';
import { overviewCommand, usageCommands } from './commands/show/overview.ts';
import { pushReports } from './commands/show/pushes.ts';
import { receiptCommands, recordCommand } from './commands/show/record.ts';
import { chooseLanguage, type English, languageOf, recognised, say } from './language.ts';
import {
  type AddCommand,
  printDocument,
  printFailure,
  printReport,
  type Shell,
  UsageError,
} from './report.ts';

/** The command line with all commands and options. Nothing runs until it parses arguments. */
export const program = new Command('carillon')
  .description('Self-hosted push delivery' satisfies English)
  .version(packageVersion(), '--version', 'print the version' satisfies English)
  .option(
    '--json',
    'print one JSON document on standard output and nothing else there' satisfies English,
  )
  .addOption(
    new Option(
      '--lang <language>',
      'print everything in English or Chinese; without it, in the language of LANG' satisfies English,
    ).choices(['en', 'zh']),
  )
  .helpCommand('help [command]', 'show what a command takes' satisfies English)
  .configureHelp(helpFormat)
  .configureOutput({
    outputError: (message, write) => {
      const lines = message.trimEnd().split('\n').map(recognised);
      write(`${[...lines, say('(add --help for what the command takes)')].join('\n')}\n`);
    },
  })
  .exitOverride()
  // Commander reads these options before the options of the command. JSON output is always English.
  .on('option:json', () => chooseLanguage('en'))
  .on('option:lang', (requested: Language) => {
    if (!isJson()) chooseLanguage(requested);
  });

/** True if the option `--json` is set. */
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

/** Commands by task, in the order of the help. */
const tasks: Readonly<Partial<Record<English, readonly AddCommand[]>>> = {
  'Send:': [
    pushCommand,
    ...audienceCommands,
    ...scheduledCommands,
    ...recurringCommands,
    ...savedCommands,
    ...liveActivityCommands,
  ],
  'Look:': [
    overviewCommand,
    ...pushReports,
    recordCommand,
    ...deviceReports,
    ...usageCommands,
    ...outboxCommands,
    ...receiptCommands,
  ],
  'Control:': [
    ...controlCommands,
    recallCommand,
    redriveCommand,
    ...freezeCommands,
    ...breakerCommands,
  ],
  'People:': [...userCommands, ...deviceCommands, ...accessCommands, auditCommand],
  'Set up:': [
    ...appCommands,
    ...profileCommands,
    ...webhookCommands,
    ...smsTextCommands,
    ...importCommands,
  ],
  'Operate:': [
    ...processCommands,
    doctorCommand,
    ...stateCommands,
    ...secretCommands,
    ...recoveryCommands,
    sandboxCommand,
  ],
};

for (const [task, commands] of Object.entries(tasks)) {
  program.commandsGroup(task);
  for (const add of commands) add(shell);
}
for (const add of removedNames) add(shell);

/**
 * Runs a command and prints its report. Returns the exit code: 0 for success and help, 1 for a
 * refusal or failure, 2 for wrong usage (protocol/operation.md#command-line). If the outcome of a
 * command is bad, the command sets `process.exitCode` to 1 itself.
 */
export async function runCommandLine(args: string[]): Promise<number> {
  chooseLanguage(languageOf(currentEnvironment()));
  try {
    await program.parseAsync(args, { from: 'user' });
    return 0;
  } catch (error) {
    if (!(error instanceof CommanderError)) {
      // The client of the admin API is not translated.
      printFailure(error instanceof WrongPathPart ? recognised(error.message) : error, isJson());
      return error instanceof UsageError || error instanceof WrongPathPart ? 2 : 1;
    }
    // Commander has printed the error on standard error. `--json` also needs it on standard output.
    const isHelp = error.exitCode === 0;
    if (!isHelp && args.includes('--json'))
      printDocument({ error: error.message.replace(/^error: /, '') });
    return isHelp ? 0 : 2;
  }
}
