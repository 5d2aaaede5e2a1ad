import { z } from 'zod';
import { readLocalConfig } from '../../../../shared/config/config.ts';
import { moduleUrl } from '../../../../shared/process/module-url.ts';
import { readRunInfo } from '../../../local/run-info.ts';
import { CommandFailure, type Report, type Shell } from '../../report.ts';

/** Commands that start processes. Each is loaded only when it is asked for, so that the others stay quick. */
export function addProcessCommands({ program, act, isJson }: Shell): void {
  program
    .command('up')
    .description('start the whole service on this machine (what `npm start` runs)')
    .action(act(() => startUp(isJson())));
  program
    .command('api')
    .description('start one api process')
    .action(act(() => startProcess('api', isJson())));
  program
    .command('dispatcher')
    .description('start one dispatcher process')
    .action(act(() => startProcess('dispatcher', isJson())));
  program
    .command('migrate')
    .description('bring the database to the newest version')
    .action(act(runMigrations));
  program
    .command('bench [name] [args...]')
    .description('run the benchmark of this name; without one, list them')
    .allowUnknownOption()
    .action(act((name: string | undefined, args: string[]) => runBench(name, args, isJson())));
}

/** Modules that are named by their place, not imported: a command that needs none of them loads none. */
async function load<T extends z.ZodType>(path: string, shape: T): Promise<z.infer<T>> {
  return shape.parse(await import(moduleUrl(path, import.meta.url).href));
}

const isFunction = (value: unknown) => typeof value === 'function';
const upModule = z.object({ up: z.custom<(options: { isJson: boolean }) => Promise<void>>(isFunction) });
const benchModule = z.object({
  bench: z.custom<(name: string | undefined, args: string[]) => Promise<void>>(isFunction),
});

async function startUp(isJson: boolean): Promise<undefined> {
  const { up } = await load('../../../local/up.ts', upModule);
  await up({ isJson });
}

async function runBench(name: string | undefined, args: string[], isJson: boolean): Promise<undefined> {
  const { bench } = await load('../../../bench/main.ts', benchModule);
  await bench(name, isJson ? [...args, '--json'] : args);
}

/** Needs the database only: DATABASE_URL, or the embedded one while it runs. */
async function runMigrations(): Promise<Report> {
  const config = readLocalConfig();
  const databaseUrl = config.databaseUrl ?? (await readRunInfo(config.dataDir)).databaseUrl;
  if (databaseUrl === undefined)
    throw new CommandFailure(
      'There is no database: set DATABASE_URL (`npm start` brings a database of its own and migrates it).',
    );
  const { migrate } = await import('../../../../shared/queue/migrate.ts');
  const ran = await migrate(databaseUrl);
  return { document: { ran }, text: ran.length > 0 ? ran.join('\n') : 'The database is up to date.' };
}

/** A process runs inside this one, so that its command line says which it is. */
async function startProcess(name: 'api' | 'dispatcher', isJson: boolean): Promise<undefined> {
  if (isJson) await (await import('../../announced-process.ts')).startAnnounced(name);
  else await (name === 'api' ? import('../../../../api/main.ts') : import('../../../../dispatcher/main.ts'));
}
