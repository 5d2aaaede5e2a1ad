import { realpath } from 'node:fs/promises';
import { dayMs, systemClock } from '../../shared/clock.ts';
import {
  currentEnvironment,
  type Environment,
  readLocalConfig,
  readSecretKeys,
} from '../../shared/config/config.ts';
import { SealError, Vault } from '../../shared/crypto.ts';
import { isConnectionFailure } from '../../shared/db/limits/database-errors.ts';
import { Database } from '../../shared/db/pool.ts';
import { pendingMigrations } from '../../shared/db/schema/migrate.ts';
import { findApp, findOpenOptions, listAppIds } from '../../shared/db/tables/apps.ts';
import { allowStrictQueries, recordImport } from '../../shared/db/tables/console.ts';
import { effectiveOptions, movedInOptions } from '../../shared/domain/apps/app.ts';
import { whenSupervisorExits } from '../../shared/process/lifecycle.ts';
import { say } from '../cli/language.ts';
import { CommandFailure, type Report, UsageError } from '../cli/report.ts';
import { readRunInfo, readSecrets } from '../local/data-files.ts';
import {
  type FoundFiles,
  findFiles,
  type ImportedClass,
  importedClasses,
  isImportedClass,
} from './files.ts';
import { connections, importFiles } from './import.ts';
import { type Outcome, openRefusalLog, reportOf, showProgress, Tally } from './report.ts';

export interface ImportOptions {
  app?: string;
  class?: string;
  dryRun?: boolean;
  refused?: string;
}

export interface ImportContext {
  isJson: boolean;
  env?: Environment;
  /**
   * True if the app will be created after this dry run. The records are then checked with default
   * options.
   */
  willCreateApp?: boolean;
}

/** Runs `carillon import` and returns its report. Throws the errors of `importPaths`. */
export async function runImport(
  paths: string[],
  options: ImportOptions,
  context: ImportContext,
): Promise<Report> {
  return reportOf(await importPaths(paths, options, context));
}

/** Files, database and keys that an import uses. */
interface ImportSources {
  found: FoundFiles;
  databaseUrl: string;
  vault: Vault | undefined;
}

/**
 * Finds the files, the database and, if users are imported, CARILLON_SECRET. Writes nothing. Throws
 * `UsageError` for invalid arguments, and `CommandFailure` if something is missing.
 */
export async function prepareImport(
  paths: string[],
  options: Pick<ImportOptions, 'class' | 'refused'>,
  env: Environment = currentEnvironment(),
): Promise<ImportSources> {
  const found = await findFiles(paths, classOf(options.class));
  if (found.files.length === 0)
    throw new CommandFailure(
      say('There is no file of {classes} in {paths}.', {
        classes: importedClasses.join(say(' or ')),
        paths: paths.join(', '),
      }),
    );
  await requireOther(options.refused, found);
  const config = readLocalConfig(env);
  const databaseUrl = config.databaseDirectUrl ?? (await readRunInfo(config.dataDir)).databaseUrl;
  if (databaseUrl === undefined)
    throw new CommandFailure(
      say(
        'There is no database: set DATABASE_URL, or run this in the folder where `npm start` runs.',
      ),
    );
  const { secret } = await readSecrets(config.dataDir, { secret: config.secret });
  if (secret === undefined && hasUsers(found))
    throw new CommandFailure(
      say('Users need CARILLON_SECRET, the one of the service: their sessions are made with it.'),
    );
  const vault = secret === undefined ? undefined : new Vault(readSecretKeys(secret));
  return { found, databaseUrl, vault };
}

/** Throws `UsageError` if the file for refusals is a file to import, because it would be emptied. */
async function requireOther(refused: string | undefined, { files }: FoundFiles): Promise<void> {
  const real = refused && (await realpath(refused).catch(() => undefined));
  for (const { path } of files)
    if (real && (await realpath(path)) === real)
      throw new UsageError(say('--refused names a file that is imported: {path}', { path }));
}

const hasUsers = ({ files }: FoundFiles): boolean =>
  files.some(({ className }) => className === '_User');

/**
 * Imports files. Needs only the database, and CARILLON_SECRET for users. Throws the errors of
 * `prepareImport`. A later failure becomes the `failure` of the outcome.
 */
export async function importPaths(
  paths: string[],
  options: ImportOptions,
  { isJson, env, willCreateApp = false }: ImportContext,
): Promise<Outcome> {
  const { found, databaseUrl, vault } = await prepareImport(paths, options, env);
  const db = new Database({
    url: databaseUrl,
    applicationName: 'carillon import',
    statementTimeoutMs: 0,
    maxConnections: connections + 1,
  });
  try {
    return await importInto(db, { found, options, vault, isJson, willCreateApp });
  } catch (error) {
    if (isConnectionFailure(error))
      throw new CommandFailure(say('The database cannot be reached.'));
    throw error;
  } finally {
    await db.close();
  }
}

function classOf(name: string | undefined): ImportedClass | undefined {
  if (name === undefined || isImportedClass(name)) return name;
  throw new UsageError(say('--class is one of {classes}', { classes: importedClasses.join(', ') }));
}

interface PreparedImport {
  found: FoundFiles;
  options: ImportOptions;
  vault: Vault | undefined;
  isJson: boolean;
  willCreateApp: boolean;
}

async function importInto(db: Database, context: PreparedImport): Promise<Outcome> {
  const { found, options, vault, isJson } = context;
  if ((await pendingMigrations(db.url)).length > 0)
    throw new CommandFailure(say('The database is not up to date: run `carillon migrate` first.'));
  const appId = await chooseAppId(db, options.app);
  const appOptions =
    (await findOpenOptions(db, appId)) ??
    (context.willCreateApp ? effectiveOptions('commercial', movedInOptions) : undefined);
  if (!appOptions)
    throw new CommandFailure(
      say('There is no such app in this database: is DATABASE_URL the one of the service?'),
    );
  if (vault && hasUsers(found)) await checkVault(db, vault, appId);
  const { installationValidityDays: validityDays, maxRoles } = appOptions;
  const log = options.refused === undefined ? undefined : await openLog(options.refused);
  const tally = new Tally(log);
  const startedAtMs = systemClock.monotonicMs();
  const progress = showProgress({
    files: found.files,
    tally,
    isShown: !isJson,
    clock: systemClock,
  });
  const isDry = options.dryRun === true;
  const { stop, removeListeners } = stopOnSignals();
  let failure: string | undefined;
  try {
    await importFiles({
      db,
      clock: systemClock,
      appId,
      files: found.files,
      tally,
      isDry,
      vault,
      stop,
      maxRoles,
      idleBefore: new Date(systemClock.now() - validityDays * dayMs).toISOString(),
      onProgress: progress.show,
    });
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error;
    failure = error.message;
  } finally {
    removeListeners();
    progress.stop();
    await log?.close();
  }
  const seconds = (systemClock.monotonicMs() - startedAtMs) / 1000;
  const report = {
    classes: Object.fromEntries(tally.classes),
    refused: tally.total('refused'),
    seconds,
  };
  const isFinished = failure === undefined;
  const hasImportedUsers = (tally.classes.get('_User')?.imported ?? 0) > 0;
  const record = async () => {
    if (hasImportedUsers) await db.transaction((tx) => allowStrictQueries(tx, appId));
    await recordImport(db, appId, { ...report, isFinished });
  };
  if (!isDry)
    await record().catch((error: unknown) => {
      if (!isConnectionFailure(error)) throw error;
      failure ??= say(
        'Everything is imported, but the connection to the database was lost before the audit had it.',
      );
    });
  return { appId, isDry, found, tally, seconds, refusedTo: options.refused, validityDays, failure };
}

/**
 * Ctrl-C in a terminal sends two signals: one from the terminal, one from the launcher
 * (carillon.mjs). Signals within this time count as one.
 */
const duplicateSignalMs = 1000;

/**
 * Handles signals. The first signal ends the import after the current batch, with a report. A later
 * signal ends it at once.
 */
function stopOnSignals(): { stop: AbortSignal; removeListeners(): void } {
  const controller = new AbortController();
  let firstAtMs: number | undefined;
  const stop = () => {
    const nowMs = systemClock.monotonicMs();
    firstAtMs ??= nowMs;
    if (nowMs - firstAtMs > duplicateSignalMs) process.exit(1);
    controller.abort();
  };
  const signals = ['SIGINT', 'SIGTERM'] as const;
  for (const signal of signals) process.on(signal, stop);
  // Also ends if the launcher (carillon.mjs) that started this process has exited.
  const ignoreLauncher = whenSupervisorExits(() => controller.abort());
  const removeListeners = () => {
    ignoreLauncher();
    const removeStop = () => {
      for (const signal of signals) process.off(signal, stop);
    };
    // The launcher forwards a signal that the terminal sent to both processes. It may arrive after
    // the report and must not kill the process then.
    if (firstAtMs === undefined) removeStop();
    else setTimeout(removeStop, duplicateSignalMs).unref();
  };
  return { stop: controller.signal, removeListeners };
}

async function chooseAppId(db: Database, requested: string | undefined): Promise<string> {
  if (requested !== undefined) return requested;
  const [only, ...others] = await listAppIds(db);
  if (only === undefined)
    throw new UsageError(say('there is no app yet: make one with `carillon app create <name>`'));
  if (others.length > 0)
    throw new UsageError(say('say which app: --app <appId> (`carillon app list` shows them)'));
  return only;
}

/**
 * Checks that the keys belong to the service. Sessions encrypted with other keys would end at the
 * next login.
 */
async function checkVault(db: Database, vault: Vault, appId: string): Promise<void> {
  try {
    await findApp(db, vault, appId);
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    throw new CommandFailure(say('CARILLON_SECRET is not the one of this service.'));
  }
}

async function openLog(path: string) {
  return openRefusalLog(path).catch((error: unknown) => {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    throw new CommandFailure(say('{path} cannot be written ({code}).', { path, code }));
  });
}
