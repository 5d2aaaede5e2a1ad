import { constants } from 'node:fs';
import {
  access,
  chmod,
  chown,
  copyFile,
  lstat,
  mkdir,
  open,
  readdir,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Client } from 'pg';
import { systemClock } from '../../../shared/clock.ts';
import { say } from '../../cli/language.ts';
import { hasCode } from '../postgres/binaries.ts';

/**
 * Copies a folder with modes and owners. Resolves with the number of bytes when the copy is flushed
 * to disk. Skips paths (relative to the folder) for which `isWanted` returns false. Skips files
 * that vanish during the copy, because a running PostgreSQL may delete files at any time.
 */
export async function copyTree(
  from: string,
  to: string,
  isWanted: (path: string) => boolean = () => true,
): Promise<number> {
  const copy = async (path: string): Promise<number> => {
    const [source, target] = [join(from, path), join(to, path)];
    const found = await lstat(source);
    if (!found.isDirectory()) {
      await copyFile(source, target, constants.COPYFILE_FICLONE);
    } else {
      await mkdir(target, { recursive: true });
      let bytes = 0;
      for (const name of await readdir(source)) {
        const below = join(path, name);
        if (isWanted(below)) bytes += await copy(below).catch(zeroIfMissing);
      }
      await copyAttributes(target, found);
      return bytes;
    }
    await copyAttributes(target, found);
    return found.size;
  };
  return copy('.');
}

function zeroIfMissing(error: unknown): number {
  if (hasCode(error, 'ENOENT')) return 0;
  throw error;
}

/**
 * Sets the mode and, if permitted, the owner of a copy to the mode and owner of its source. Flushes
 * the copy to disk.
 */
async function copyAttributes(
  path: string,
  { mode, uid, gid }: { mode: number; uid: number; gid: number },
): Promise<void> {
  await flush(path);
  if (process.getuid?.() === 0) await chown(path, uid, gid);
  await chmod(path, mode & 0o7777);
}

async function flush(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/**
 * Parts of a data directory that a copy must not contain or does not need. PostgreSQL creates them
 * again.
 */
const leftOut =
  /^(postmaster\.(pid|opts)|(pg_wal|pg_replslot|pg_dynshmem|pg_notify|pg_serial|pg_snapshots|pg_stat_tmp|pg_subtrans)\/.+)$|(^|\/)pgsql_tmp/;

const segmentName = /^[0-9A-F]{24}$/;

/** Files of the service outside the database. The database cannot be read without `secret`. */
export const secretFiles = ['secret', 'admin-token'];

interface BackupOptions {
  /** URL of the running embedded server. */
  databaseUrl: string;
  /** Data folder of the service (`CARILLON_DATA_DIR`). */
  dataDir: string;
  /** Folder in which each backup creates a new folder. */
  folder: string;
  /** True to leave out `secret` and `admin-token`. */
  isWithoutSecrets: boolean;
}

/** Backup on the disk. */
interface Backup {
  path: string;
  /** End of the backup. The backup contains all changes that were committed before. */
  at: Date;
  bytes: number;
}

/**
 * Copies the embedded database while it runs, with the part of the write-ahead log that makes the
 * copy consistent. Copies the secrets too. The folder `backup-<time>` appears when the backup is
 * complete.
 *
 * @throws Error if the database is not the embedded database of `dataDir`
 */
export async function backUp(options: BackupOptions): Promise<Backup> {
  const source = join(resolve(options.dataDir), 'postgres');
  const folder = resolve(options.folder);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const draft = join(folder, `.backup-${process.pid}`);
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { mode: 0o755 });
  const client = new Client({ connectionString: options.databaseUrl });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await refuseOtherServer(client, source);
    const bytes = await copyDatabase(client, source, join(draft, 'postgres'));
    const at = new Date(systemClock.now());
    if (!options.isWithoutSecrets) await copySecrets(options.dataDir, draft);
    await writeFile(
      join(draft, 'backup.json'),
      `${JSON.stringify({ at: at.toISOString(), bytes })}\n`,
      { flush: true },
    );
    await flush(draft);
    const path = join(folder, `backup-${at.toISOString().replace(/[:.]/g, '-')}`);
    await rename(draft, path);
    await flush(folder);
    return { path, at, bytes };
  } finally {
    await client.end().catch(() => undefined);
    await rm(draft, { recursive: true, force: true });
  }
}

async function refuseOtherServer(client: Client, source: string): Promise<void> {
  const { rows } = await client.query<{ dir: string }>(
    "SELECT current_setting('data_directory') AS dir",
  );
  const [own, served] = await Promise.all(
    [source, rows[0]?.dir ?? ''].map((path) => inodeOf(path)),
  );
  if (own === undefined || own !== served)
    throw new Error(
      say(
        'This database is not the one that `npm start` runs in this data directory. Back it up with the tools of its server (docs/backup.md).',
      ),
    );
}

const inodeOf = (path: string): Promise<string | undefined> =>
  stat(path).then(
    ({ dev, ino }) => `${dev} ${ino}`,
    () => undefined,
  );

/**
 * Copies the files between the start and the end of a PostgreSQL backup, and then the log segments
 * written in between.
 */
async function copyDatabase(client: Client, source: string, target: string): Promise<number> {
  // The replication slot keeps the log until the connection ends.
  await client.query(
    "SELECT pg_create_physical_replication_slot('backup_' || pg_backend_pid(), true, true)",
  );
  const { rows: begun } = await client.query<{ segment: string }>(
    "SELECT pg_walfile_name(pg_backup_start('carillon', fast => true)) AS segment",
  );
  const bytes = await copyTree(source, target, (path) => !leftOut.test(path));
  const { rows: ended } = await client.query<{ segment: string; label: string }>(
    // Names the segment of the last byte before the end position. The end position itself may be in
    // a segment that does not exist yet.
    'SELECT pg_walfile_name(lsn - 1) AS segment, labelfile AS label FROM pg_backup_stop(wait_for_archive => false)',
  );
  const [first, last] = [begun[0]?.segment, ended[0]];
  if (first === undefined || !last) throw new Error('PostgreSQL did not end the backup');
  await ownedFile(target, 'backup_label', last.label);
  const names = (await readdir(join(source, 'pg_wal'))).filter(
    (name) => segmentName.test(name) && name >= first && name <= last.segment,
  );
  const neededFiles = new Set([...names.map((name) => join('pg_wal', name)), 'pg_wal']);
  return bytes + (await copyTree(source, target, (path) => neededFiles.has(path)));
}

/** Writes a file that belongs to the owner of the data, who runs the server. */
async function ownedFile(folder: string, name: string, content: string): Promise<void> {
  const path = join(folder, name);
  await writeFile(path, content, { mode: 0o600, flush: true });
  const { uid, gid } = await stat(folder);
  if (process.getuid?.() === 0) await chown(path, uid, gid);
}

async function copySecrets(dataDir: string, to: string): Promise<void> {
  for (const name of secretFiles) {
    const source = join(resolve(dataDir), name);
    // If the secret comes from the environment, there is no file.
    if (
      !(await access(source).then(
        () => true,
        () => false,
      ))
    )
      continue;
    await copyFile(source, join(to, name));
    await chmod(join(to, name), 0o600);
    await flush(join(to, name));
  }
}
