import { access, copyFile, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { systemClock } from '../../../shared/clock.ts';
import { Database } from '../../../shared/db/pool.ts';
import { type PausedWork, pauseRestoredWork } from '../../../shared/db/tables/restorations.ts';
import { migrate } from '../../../shared/queue/migrate.ts';
import { say } from '../../cli/language.ts';
import { refuseLiveServer, resolveDataDir } from '../postgres/data-directory.ts';
import { startEmbeddedPostgres } from '../postgres/server.ts';
import { copyTree, secretFiles } from './backup.ts';

const backupFile = z.object({ at: z.iso.datetime().transform((text) => new Date(text)) });

/** Result of a restore. */
export interface Restored {
  asOf: Date;
  held: PausedWork;
  /** New path of the previous database, or null if there was none. */
  previous: string | null;
}

/**
 * Pauses the open pushes of a database that the tools of its server restored to an earlier time
 * (`holdRestoredWork`).
 */
export async function pauseRestored(databaseUrl: string, asOf: Date): Promise<PausedWork> {
  await migrate(databaseUrl);
  const db = new Database({
    url: databaseUrl,
    applicationName: 'carillon restore',
    maxConnections: 1,
  });
  try {
    return await db.transaction((tx) => pauseRestoredWork(tx, asOf));
  } finally {
    await db.close();
  }
}

/**
 * Replaces the embedded database with a backup of `backUp`, and pauses its open pushes. Uses the
 * newest backup that is not newer than `asOf`. The service must not run. The previous database is
 * moved aside.
 *
 * @throws Error if the service runs, the folder has no matching backup, or the data directory has a
 *   different secret
 */
export async function restore(
  folder: string,
  dataDir: string,
  asOf: Date | undefined,
): Promise<Restored> {
  const backup = await chooseBackup(resolve(folder), asOf);
  const home = resolve(dataDir);
  const target = await resolveDataDir(join(home, 'postgres'));
  await refuseLiveServer(target);
  await refuseOtherSecret(backup.path, home);
  const draft = `${target}.restoring`;
  await rm(draft, { recursive: true, force: true });
  await copyTree(join(backup.path, 'postgres'), draft);
  const held = await pauseInServer(draft, backup.at);
  const previous = await moveAside(target);
  await rename(draft, target);
  await copySecrets(backup.path, home);
  return { asOf: backup.at, held, previous };
}

interface ReadBackup {
  path: string;
  at: Date;
}

async function chooseBackup(folder: string, asOf: Date | undefined): Promise<ReadBackup> {
  const own = await readBackup(folder);
  const names = await readdir(folder).catch(() => []);
  const found = own
    ? [own]
    : (await Promise.all(names.map((name) => readBackup(join(folder, name))))).filter(
        (one) => one !== undefined,
      );
  const fitting = found
    .filter(({ at }) => !asOf || at <= asOf)
    .sort((one, other) => other.at.getTime() - one.at.getTime());
  if (fitting[0]) return fitting[0];
  throw new Error(
    found.length === 0
      ? say('{folder} holds no backup of `carillon backup`.', { folder })
      : say('{folder} holds no backup that is as old as {time}; the oldest is of {oldest}.', {
          folder,
          time: asOf?.toISOString(),
          oldest: oldest(found),
        }),
  );
}

const oldest = (found: ReadBackup[]): string =>
  new Date(Math.min(...found.map(({ at }) => at.getTime()))).toISOString();

/** Reads the time of a backup. Returns undefined for other folders and interrupted backups. */
async function readBackup(path: string): Promise<ReadBackup | undefined> {
  try {
    const text = await readFile(join(path, 'backup.json'), 'utf8');
    return { path, at: backupFile.parse(JSON.parse(text)).at };
  } catch {
    return undefined;
  }
}

/** Throws if the secret of the data directory cannot decrypt the backup. */
async function refuseOtherSecret(backup: string, home: string): Promise<void> {
  const [old, own] = await Promise.all(
    [backup, home].map((folder) => readText(join(folder, 'secret'))),
  );
  if (old !== undefined && own !== undefined && old !== own)
    throw new Error(
      say(
        '{file} is not the secret of this backup, which cannot be read with it. Move the file away to take the one of the backup.',
        { file: join(home, 'secret') },
      ),
    );
}

const readText = (path: string): Promise<string | undefined> =>
  readFile(path, 'utf8').catch(() => undefined);

/**
 * Starts the restored server, which recovers from its log. Pauses the open pushes and stops the
 * server.
 */
async function pauseInServer(dataDir: string, asOf: Date): Promise<PausedWork> {
  const server = await startEmbeddedPostgres({ dataDir });
  try {
    return await pauseRestored(server.databaseUrl, asOf);
  } finally {
    await server.stop('fast');
    await rm(`${dataDir}.socket-dir`, { force: true });
  }
}

async function moveAside(target: string): Promise<string | null> {
  const isThere = await access(target).then(
    () => true,
    () => false,
  );
  if (!isThere) return null;
  const previous = `${target}.before-${new Date(systemClock.now()).toISOString().replace(/[:.]/g, '-')}`;
  await rename(target, previous);
  return previous;
}

async function copySecrets(backup: string, home: string): Promise<void> {
  await mkdir(home, { recursive: true });
  for (const name of secretFiles)
    if ((await readText(join(home, name))) === undefined)
      await copyFile(join(backup, name), join(home, name)).catch(() => undefined);
}
