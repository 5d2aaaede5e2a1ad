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
 * Copies a folder with modes and owners, and waits until it is on the disk. Skips what `isWanted`
 * refuses (paths relative to the folder), and files that vanish during the copy, which a running
 * PostgreSQL deletes at any time. Returns the bytes.
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
        if (isWanted(below)) bytes += await copy(below).catch(zeroIfGone);
      }
      await settle(target, found);
      return bytes;
    }
    await settle(target, found);
    return found.size;
  };
  return copy('.');
}

function zeroIfGone(error: unknown): number {
  if (hasCode(error, 'ENOENT')) return 0;
  throw error;
}

/** Gives a copy the mode and, where we may, the owner of its source, and writes it to the disk. */
async function settle(
  path: string,
  { mode, uid, gid }: { mode: number; uid: number; gid: number },
): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
  if (process.getuid?.() === 0) await chown(path, uid, gid);
  await chmod(path, mode & 0o7777);
}

/**
 * Parts of a data directory that a copy does not need, or must not have: PostgreSQL makes them
 * again.
 */
const leftOut =
  /^(postmaster\.(pid|opts)|(pg_wal|pg_replslot|pg_dynshmem|pg_notify|pg_serial|pg_snapshots|pg_stat_tmp|pg_subtrans)\/.+)$|(^|\/)pgsql_tmp/;

const segmentName = /^[0-9A-F]{24}$/;

/** Files of the service beside the database; the database cannot be read without `secret`. */
export const secretFiles = ['secret', 'admin-token'];

interface BackupOptions {
  /** The running embedded server. */
  databaseUrl: string;
  /** Folder of the service (`CARILLON_DATA_DIR`). */
  dataDir: string;
  /** Folder that gets a new folder per backup. */
  folder: string;
  /** Leave `secret` and `admin-token` out. */
  isWithoutSecrets: boolean;
}

/** Backup on the disk. */
interface Backup {
  path: string;
  /** When it ended: it has all that was committed before. */
  at: Date;
  bytes: number;
}

/**
 * Copies the embedded database while it runs, with the part of its log that makes the copy
 * consistent, and the secrets. The folder `backup-<time>` appears when it is complete.
 *
 * @throws Error when the database is not the embedded one of `dataDir`
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
    );
    const path = join(folder, `backup-${at.toISOString().replace(/[:.]/g, '-')}`);
    await rename(draft, path);
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
 * Copies the files between PostgreSQL's marks of a backup, then the log that was written in
 * between.
 */
async function copyDatabase(client: Client, source: string, target: string): Promise<number> {
  // Keeps the log until the connection ends.
  await client.query(
    "SELECT pg_create_physical_replication_slot('backup_' || pg_backend_pid(), true, true)",
  );
  const { rows: begun } = await client.query<{ segment: string }>(
    "SELECT pg_walfile_name(pg_backup_start('carillon', fast => true)) AS segment",
  );
  const bytes = await copyTree(source, target, (path) => !leftOut.test(path));
  const { rows: ended } = await client.query<{ segment: string; label: string }>(
    // The last byte before the position: the position itself may begin a segment that does not
    // exist yet.
    'SELECT pg_walfile_name(lsn - 1) AS segment, labelfile AS label FROM pg_backup_stop(wait_for_archive => false)',
  );
  const [first, last] = [begun[0]?.segment, ended[0]];
  if (first === undefined || !last) throw new Error('PostgreSQL did not end the backup');
  await ownedFile(target, 'backup_label', last.label);
  const names = (await readdir(join(source, 'pg_wal'))).filter(
    (name) => segmentName.test(name) && name >= first && name <= last.segment,
  );
  const wanted = new Set([...names.map((name) => join('pg_wal', name)), 'pg_wal']);
  return bytes + (await copyTree(source, target, (path) => wanted.has(path)));
}

/** Writes a file of the owner of the data, who runs the server. */
async function ownedFile(folder: string, name: string, content: string): Promise<void> {
  const path = join(folder, name);
  await writeFile(path, content, { mode: 0o600 });
  const { uid, gid } = await stat(folder);
  if (process.getuid?.() === 0) await chown(path, uid, gid);
}

async function copySecrets(dataDir: string, to: string): Promise<void> {
  for (const name of secretFiles) {
    const source = join(resolve(dataDir), name);
    // A secret from the environment has no file.
    if (
      !(await access(source).then(
        () => true,
        () => false,
      ))
    )
      continue;
    await copyFile(source, join(to, name));
    await chmod(join(to, name), 0o600);
  }
}
