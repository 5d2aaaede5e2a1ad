import { z } from 'zod';
import { readLocalConfig } from '../../../../shared/config/config.ts';
import type { PausedWork } from '../../../../shared/db/tables/restorations.ts';
import { moduleUrl } from '../../../../shared/process/module-url.ts';
import { readRunInfo } from '../../../local/data-files.ts';
import type { backUp as BackUp } from '../../../local/recovery/backup.ts';
import type {
  pauseRestored as PauseRestored,
  restore as Restore,
} from '../../../local/recovery/restore.ts';
import { argument, flag, optional, timeBefore } from '../../arguments.ts';
import { command } from '../../command.ts';
import { say } from '../../language.ts';
import { CommandFailure, type Report, UsageError } from '../../report.ts';

/** `carillon backup` and `restore`. */
export const recoveryCommands = [
  command(
    'backup',
    'copy the embedded database, while it runs, and the secrets into a new folder below this one',
    {
      example: 'backup ./backups',
      takes: {
        folder: argument('<folder>'),
        withoutSecrets: flag(
          '--without-secrets',
          'leave the secrets out: without them the copy cannot be read',
        ),
      },
      run: ({ folder, ...options }) => runBackup(folder, options),
    },
  ),
  command(
    'restore',
    'put a backup in the place of the embedded database and hold what may have been sent since; without a folder, hold it in a database that was restored with the tools of its server',
    {
      example: 'restore ./backups/monday --as-of 2025-01-31T12:00Z',
      takes: {
        folder: optional('[folder]'),
        asOf: timeBefore(
          '--as-of <time>',
          'time of the restored state, such as 2027-01-31T12:00Z (default: the newest backup)',
        ),
      },
      run: ({ folder, asOf }) =>
        runRestore(folder, asOf === undefined ? undefined : new Date(asOf)),
    },
  ),
];

const isFunction = (value: unknown) => typeof value === 'function';
const backupModule = z.object({ backUp: z.custom<typeof BackUp>(isFunction) });
const restoreModule = z.object({
  restore: z.custom<typeof Restore>(isFunction),
  pauseRestored: z.custom<typeof PauseRestored>(isFunction),
});

/** Loads a module that only these commands need, so that other commands start fast. */
async function load<T extends z.ZodType>(path: string, shape: T): Promise<z.infer<T>> {
  return shape.parse(await import(moduleUrl(path, import.meta.url).href));
}

async function runBackup(folder: string, options: { withoutSecrets?: boolean }): Promise<Report> {
  const { dataDir } = readLocalConfig();
  const { databaseUrl } = await readRunInfo(dataDir);
  if (databaseUrl === undefined)
    throw new CommandFailure(
      say(
        'No service with an embedded database runs in this data directory. Start it, or copy the directory while it is stopped; a database of your own is backed up with the tools of its server (docs/backup.md).',
      ),
    );
  const { backUp } = await load('../../../local/recovery/backup.ts', backupModule);
  const isWithoutSecrets = options.withoutSecrets === true;
  const backup = await asCommandFailure(() =>
    backUp({ databaseUrl, dataDir, folder, isWithoutSecrets }),
  );
  const megabytes = Math.ceil(backup.bytes / 1_000_000);
  const secrets = isWithoutSecrets
    ? say(
        'Keep the file `secret` of the data directory elsewhere: without it credentials, sessions and codes are lost.',
      )
    : say(
        'It holds the secret that encrypts credentials and codes: keep it as closed as the data directory.',
      );
  return { document: backup, text: `${backup.path} (${megabytes} MB)\n${secrets}` };
}

async function runRestore(folder: string | undefined, asOf: Date | undefined): Promise<Report> {
  const { restore, pauseRestored } = await load(
    '../../../local/recovery/restore.ts',
    restoreModule,
  );
  const { dataDir, databaseUrl } = readLocalConfig();
  if (folder !== undefined) {
    if (databaseUrl !== undefined)
      throw new UsageError(
        say('A folder is for the embedded database: unset DATABASE_URL, or leave the folder out'),
      );
    const restored = await asCommandFailure(() => restore(folder, dataDir, asOf));
    const previous =
      restored.previous === null
        ? []
        : [say('The database before is in {folder}.', { folder: restored.previous })];
    return {
      document: restored,
      text: [...describe(restored.asOf, restored.held), ...previous].join('\n'),
    };
  }
  if (asOf === undefined)
    throw new UsageError(say('Without a folder, --as-of tells the time of the restored state'));
  if (databaseUrl === undefined)
    throw new UsageError(
      say('DATABASE_URL names the database that was restored; the embedded one needs a folder'),
    );
  const held = await asCommandFailure(() => pauseRestored(databaseUrl, asOf));
  return { document: { asOf, held, previous: null }, text: describe(asOf, held).join('\n') };
}

function describe(
  asOf: Date,
  { pushes, scheduled, messages, channelMessages }: PausedWork,
): string[] {
  return [
    say('The database has the state of {time}. What may have been sent since then is held:', {
      time: asOf.toISOString(),
    }),
    ...[
      say('{n} pushes that were waiting or being sent are paused', { n: pushes }),
      say('{n} scheduled pushes whose time has passed are paused', { n: scheduled }),
      say('{n} mails and SMS older than ten minutes are not sent', { n: messages }),
      say(
        '{n} messages for devices of the device channel, older than ten minutes, are not delivered',
        {
          n: channelMessages,
        },
      ),
    ].map((line) => `  ${line}`),
    ...(pushes + scheduled === 0
      ? []
      : [
          say(
            'Look at each paused push: `carillon resume` sends what is open in this state, `carillon cancel` ends it.',
          ),
        ]),
  ];
}

async function asCommandFailure<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new CommandFailure(error instanceof Error ? error.message : String(error));
  }
}
