import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import { readLocalConfig } from '../../../../shared/config/config.ts';
import { returnMemoryWhenIdle } from '../../../../shared/process/memory.ts';
import { moduleUrl } from '../../../../shared/process/module-url.ts';
import type {
  buildConsoleInBackground as BuildInBackground,
  buildConsoleSomewhere as BuildSomewhere,
} from '../../../console/build.ts';
import { readRunInfo } from '../../../local/data-files.ts';
import { flag, optional, rest } from '../../arguments.ts';
import { command, group } from '../../command.ts';
import { recognised, say } from '../../language.ts';
import { type AddCommand, CommandFailure, type Report } from '../../report.ts';

const benchPath = '../../../bench/main.ts';

/**
 * Commands that start processes. Each command loads its modules when it runs, so that other
 * commands start fast.
 */
export const processCommands = [
  command('up', 'start the whole service on this machine (what `npm start` runs)', {
    takes: {},
    run: (_values, { isJson }) => startUp(isJson),
  }),
  command('api', 'start one api process', {
    takes: {},
    run: (_values, { isJson }) => startProcess('api', isJson),
  }),
  command('dispatcher', 'start one dispatcher process', {
    takes: {},
    run: (_values, { isJson }) => startProcess('dispatcher', isJson),
  }),
  command('migrate', 'migrate the database to the current version', {
    example: 'migrate --plan',
    takes: {
      plan: flag(
        '--plan',
        'run nothing; print what would run, the locks that it takes, and the size of the tables',
      ),
      distribute: flag(
        '--distribute',
        'spread the tables over the servers of Citus by app_id; cannot be undone, see --plan',
      ),
    },
    run: runMigrations,
  }),
  group('console', 'the web console'),
  command(
    'console build',
    'build the files of the console, for images and read-only disks; otherwise the first start does it',
    {
      takes: {},
      run: runConsoleBuild,
    },
  ),
  bench(),
];

/**
 * `bench`. The package and the image contain no benchmarks. There the help does not list the
 * command, and the command says where to find them.
 */
function bench(): AddCommand {
  const isExcluded = !existsSync(moduleUrl(benchPath, import.meta.url));
  return command('bench', 'run a benchmark; without a name, list them', {
    example: 'bench size',
    isHidden: isExcluded,
    takes: { name: optional('[name]'), args: rest('[args...]') },
    setUp: (added) => void added.allowUnknownOption().helpOption(!isExcluded),
    run: ({ name, args }, { isJson }) =>
      isExcluded ? refuseBench() : runBench(name, args, isJson),
  });
}

/** Imports a module by its path when a command needs it. */
async function load<T extends z.ZodType>(path: string, shape: T): Promise<z.infer<T>> {
  return shape.parse(await import(moduleUrl(path, import.meta.url).href));
}

const isFunction = (value: unknown) => typeof value === 'function';
const upModule = z.object({
  up: z.custom<(options: { isJson: boolean }) => Promise<void>>(isFunction),
});
const benchModule = z.object({
  bench: z.custom<(name: string | undefined, args: string[]) => Promise<void>>(isFunction),
});

const consoleModule = z.object({
  buildConsoleInBackground: z.custom<typeof BuildInBackground>(isFunction),
  buildConsoleSomewhere: z.custom<typeof BuildSomewhere>(isFunction),
});

async function startUp(isJson: boolean): Promise<undefined> {
  returnMemoryWhenIdle();
  const { up } = await load('../../../local/up.ts', upModule);
  await up({ isJson });
}

async function refuseBench(): Promise<undefined> {
  throw new CommandFailure(
    say('Benchmarks are in the repository: run `npm run bench` in a clone of it.'),
  );
}

async function runBench(
  name: string | undefined,
  args: string[],
  isJson: boolean,
): Promise<undefined> {
  const { bench } = await load(benchPath, benchModule);
  await bench(name, isJson ? [...args, '--json'] : args);
}

/**
 * Runs or plans the migrations. Needs only the database: DATABASE_URL, or the embedded database
 * while it runs.
 */
async function runMigrations(options: { plan?: boolean; distribute?: boolean }): Promise<Report> {
  const config = readLocalConfig();
  const databaseUrl = config.databaseDirectUrl ?? (await readRunInfo(config.dataDir)).databaseUrl;
  if (databaseUrl === undefined)
    throw new CommandFailure(
      say(
        'There is no database: set DATABASE_URL (`npm start` brings a database of its own and migrates it).',
      ),
    );
  if (options.distribute === true)
    return (await import('./distribution.ts')).distribute(databaseUrl, {
      isPlan: options.plan === true,
    });
  if (options.plan === true) return (await import('./migration-plan.ts')).reportPlan(databaseUrl);
  const { migrate } = await import('../../../../shared/queue/migrate.ts');
  const onWait = (reason: string) =>
    void process.stderr.write(
      `carillon: ${say('waiting: {reason}', { reason: recognised(reason) })}\n`,
    );
  const ran = await migrate(databaseUrl, { onWait });
  return {
    document: { ran },
    text: ran.length > 0 ? ran.join('\n') : say('The database is up to date.'),
  };
}

/** Starts an api or a dispatcher in this process. */
async function startProcess(name: 'api' | 'dispatcher', isJson: boolean): Promise<undefined> {
  if (name === 'api') await startConsoleBuild();
  if (isJson) await (await import('../../json-process.ts')).startJsonProcess(name);
  else
    await (name === 'api'
      ? import('../../../../api/main.ts')
      : import('../../../../dispatcher/main.ts'));
}

/**
 * Starts a build of the console in parallel with the api. The console's page returns 503 until the
 * build is finished.
 */
async function startConsoleBuild(): Promise<void> {
  const { buildConsoleInBackground } = await load('../../../console/build.ts', consoleModule);
  const log = (line: string) => void process.stderr.write(`carillon: ${line}\n`);
  buildConsoleInBackground(resolve(readLocalConfig().dataDir), log);
}

async function runConsoleBuild(): Promise<Report> {
  const { buildConsoleSomewhere } = await load('../../../console/build.ts', consoleModule);
  const built = await buildConsoleSomewhere(resolve(readLocalConfig().dataDir)).catch(
    (error: unknown) => {
      throw new CommandFailure(error instanceof Error ? error.message : String(error));
    },
  );
  const text = built.isNew
    ? say('The console is built: {folder}', { folder: built.folder })
    : say('The console is up to date.');
  return { document: built, text };
}
