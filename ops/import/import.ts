import { Sessions } from '../../api/services/accounts/sessions/sessions.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Vault } from '../../shared/crypto.ts';
import { againAfterDeadlock, isConnectionFailure } from '../../shared/db/limits/database-errors.ts';
import type { Database, Handle } from '../../shared/db/pool.ts';
import {
  mergeMemberships,
  mergeRoles,
  openRoleStage,
  TooManyRoles,
} from '../../shared/db/tables/import-roles.ts';
import { mergeUsers, openUserStage } from '../../shared/db/tables/import-users.ts';
import {
  analyzeBeforeImport,
  type ImportedInstallation,
  InstallationEncoder,
  type Merged,
  mergeInstallations,
  openInstallationStage,
  tidyAfterImport,
  type Unwritten,
  writeNewInstallations,
} from '../../shared/db/tables/imports.ts';
import { hastenRegistrationWalk } from '../../shared/db/tables/installation-walks.ts';
import type { ClassTable } from '../../shared/db/tables/selection.ts';
import type { JsonObject } from '../../shared/domain/json.ts';
import type { RelationName } from '../../shared/domain/roles/role.ts';
import { say, sentences } from '../cli/language.ts';
import { CommandFailure } from '../cli/report.ts';
import { batchesOf, type Row } from './batches.ts';
import { type ExportFile, type ImportedClass, openFile } from './files.ts';
import { readInstallation, readMembership, readRole, readUser } from './records.ts';
import type { Tally } from './report.ts';

export interface ImportJob {
  db: Database;
  clock: Clock;
  appId: string;
  files: ExportFile[];
  tally: Tally;
  /** True to check everything and write nothing. */
  isDry: boolean;
  /** Installations that were last seen before this time (ISO 8601) count as idle. */
  idleBefore: string;
  /** Limit on the number of the app's roles. */
  maxRoles: number;
  /** Keys of CARILLON_SECRET, needed for the sessions of users. */
  vault: Vault | undefined;
  /** Ends the import after the current batch. */
  stop: AbortSignal;
  /** Called with the number of bytes read so far from all files. */
  onProgress: (bytes: number) => void;
}

/** If the import adds at least this many rows to a table, it vacuums and analyzes it at the end. */
const manyRows = 10_000;
/** Tables of the classes whose rows are looked up by id. */
const tables: Readonly<Partial<Record<ImportedClass, ClassTable>>> = {
  _User: 'app_user',
  _Installation: 'installation',
  _Role: 'role',
};
/** Number of connections that write installations. The other classes use one connection. */
export const connections = 3;
const resumeHint = () => say('Run it again to continue.');

/**
 * Imports files one after the other. Each batch is one transaction. The import may be stopped at
 * any time. The next run continues, because existing rows stay unchanged. Throws `CommandFailure`
 * if the import cannot continue; the tally then contains the progress.
 */
export async function importFiles(job: ImportJob): Promise<void> {
  let bytesBefore = 0;
  for (const table of new Set(job.files.flatMap(({ className }) => tables[className] ?? [])))
    await analyzeBeforeImport(job.db, table);
  await withConnections(job.db, job.isDry ? 1 : connections, async (opened) => {
    for (const connection of opened) {
      await openInstallationStage(connection);
      await openUserStage(connection);
      await openRoleStage(connection);
    }
    for (const file of job.files) {
      await importFile(job, { connections: opened, file, bytesBefore });
      bytesBefore += file.bytes;
      job.onProgress(bytesBefore);
    }
  });
  if (job.isDry) return;
  for (const [className, { imported }] of job.tally.classes) {
    if (className === '_Installation' && imported > 0)
      await hastenRegistrationWalk(job.db, job.appId);
    const table = tables[className];
    if (table && imported >= manyRows) await tidyAfterImport(job.db, table);
  }
}

/** Reserves connections of the pool while `work` runs. */
function withConnections(
  db: Database,
  count: number,
  work: (opened: Handle[]) => Promise<void>,
  opened: Handle[] = [],
): Promise<void> {
  if (opened.length === count) return work(opened);
  return db.withConnection((connection) =>
    withConnections(db, count, work, [...opened, connection]),
  );
}

interface FilePart {
  connections: Handle[];
  file: ExportFile;
  bytesBefore: number;
}

function importFile(job: ImportJob, part: FilePart): Promise<void> {
  const now = new Date(job.clock.now()).toISOString();
  switch (part.file.className) {
    case '_User':
      return importUsers(job, part, now);
    case '_Installation':
      return importInstallations(job, part, now);
    case '_Role':
      return importRoles(job, part, now);
    case '_Join:users:_Role':
      return importMemberships(job, part, 'users');
    case '_Join:roles:_Role':
      return importMemberships(job, part, 'roles');
  }
}

function importInstallations(job: ImportJob, part: FilePart, now: string): Promise<void> {
  const { appId, isDry } = job;
  // Expects that a batch is like the previous batch. In a repeated import most rows exist already.
  let areExisting = false;
  const encoder = new InstallationEncoder(appId);
  return importRows(job, part, {
    isConcurrent: true,
    read: (record, line) => {
      const installation = readInstallation(record, now);
      countInstallation(job, installation);
      return encoder.encode(installation, line);
    },
    writeNew: async (connection, rows) =>
      !areExisting && !isDry && (await writeNewInstallations(connection, rows)),
    merge: async (tx, rows) => {
      const merged = await mergeInstallations(tx, appId, { rows, isDry, areKnown: areExisting });
      areExisting = merged.unwritten.length > 0;
      return merged;
    },
  });
}

async function importUsers(job: ImportJob, part: FilePart, now: string): Promise<void> {
  const { appId, isDry, vault } = job;
  if (!vault) throw new Error('users need keys');
  const sessions = new Sessions({ db: job.db, vault });
  return importRows(job, part, {
    read: (record, line) => {
      const user = readUser(record, { line, now, appId, sessions, sealer: vault });
      job.tally.needs.addUser(user.draft);
      return user;
    },
    merge: (tx, rows) => mergeUsers(tx, appId, { rows, isDry }),
  });
}

function importRoles(job: ImportJob, part: FilePart, now: string): Promise<void> {
  const { appId, isDry, maxRoles } = job;
  return importRows(job, part, {
    read: (record, line) => readRole(record, { line, now }),
    merge: (tx, rows) => mergeRoles(tx, appId, { rows, isDry, maxRoles }),
  });
}

function importMemberships(job: ImportJob, part: FilePart, relation: RelationName): Promise<void> {
  const { appId, isDry } = job;
  return importRows(job, part, {
    read: (record, line) => readMembership(record, { line }),
    merge: (tx, rows) => mergeMemberships(tx, appId, { relation, rows, isDry }),
  });
}

/** Adds an installation to the counts. Times in canonical form can be compared as strings. */
function countInstallation(
  { idleBefore, tally }: ImportJob,
  installation: ImportedInstallation,
): void {
  tally.needs.addInstallation(installation.draft);
  if (installation.updatedAt < idleBefore) tally.idleInstallations += 1;
}

/** Imports the rows of a file. Reads the next batch while previous batches are written. */
async function importRows<R extends Row>(
  job: ImportJob,
  { connections, file, bytesBefore }: FilePart,
  rowImport: RowImport<R>,
): Promise<void> {
  const opened = openFile(file, job.stop);
  const writers = new BatchWriters<R>(
    rowImport.isConcurrent ? connections : connections.slice(0, 1),
    (connection, rows) => writeBatch(job, file, () => writeRows(connection, rows, rowImport)),
  );
  try {
    for await (const rows of batchesOf({ file, opened, tally: job.tally, read: rowImport.read })) {
      job.stop.throwIfAborted();
      await writers.add(rows);
      job.onProgress(bytesBefore + opened.bytesRead());
    }
    await writers.end();
  } catch (error) {
    await writers.end().catch(() => undefined);
    throw failureIn(file, error);
  } finally {
    await job.tally.flush();
  }
}

async function writeBatch(
  job: ImportJob,
  file: ExportFile,
  write: () => Promise<Merged>,
): Promise<void> {
  const { written, unwritten } = await write();
  const counts = job.tally.of(file.className);
  counts.imported += written;
  for (const row of unwritten) {
    if (row.isThere) {
      counts.alreadyThere += 1;
      if (row.isNewer) counts.newerInFile += 1;
    } else {
      const { line, objectId } = row;
      job.tally.refuse(file.className, {
        file: file.path,
        line,
        objectId,
        error: conflictMessage(row),
      });
    }
  }
}

function conflictMessage({ holders, message }: Unwritten): string {
  if (message !== undefined) return message;
  const taken = Object.entries(holders).map(([member, holder]) =>
    say('{member} belongs to {holder}', { member, holder }),
  );
  if (taken.length > 0) return say('{taken} already.', { taken: taken.join(', ') });
  return say('Another object had one of its unique members for a moment: import it again.');
}

/** Code of PostgreSQL. */
const diskFull = '53100';

function failureIn(file: ExportFile, error: unknown): unknown {
  if (error instanceof Error && error.name === 'AbortError')
    return new CommandFailure(sentences(say('It was stopped.'), resumeHint()));
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === diskFull)
    return new CommandFailure(sentences(say('The disk of the database is full.'), resumeHint()));
  const isOfFile = error instanceof Error && 'path' in error && error.path === file.path;
  if (!isOfFile && isConnectionFailure(error))
    return new CommandFailure(
      sentences(say('The connection to the database was lost.'), resumeHint()),
    );
  if (error instanceof TooManyRoles)
    return new CommandFailure(
      sentences(
        say('The app may have no {roles}: raise its option maxRoles.', { roles: error.message }),
        resumeHint(),
      ),
    );
  if (code.startsWith('Z_'))
    return new CommandFailure(
      say('{path} is damaged ({code}): it was read up to there.', { path: file.path, code }),
    );
  if (/^E[A-Z]+$/.test(code))
    return new CommandFailure(say('{path} cannot be read ({code}).', { path: file.path, code }));
  return error;
}

/** Functions that read and write the rows of a class. */
interface RowImport<R> {
  /** True if batches without a common key may be written concurrently. */
  isConcurrent?: boolean;
  read(record: JsonObject, line: number): R;
  /**
   * Writes a batch of new rows in one statement outside a transaction. Resolves to false if it
   * wrote nothing.
   */
  writeNew?: (connection: Handle, rows: R[]) => Promise<boolean>;
  /** Writes only the new rows of a batch, in a transaction. */
  merge(tx: Handle, rows: R[]): Promise<Merged>;
}

type Writer<R> = Pick<RowImport<R>, 'writeNew' | 'merge'>;

const maxAttempts = 3;

/** Writes a batch completely or not at all. Retries after a deadlock with a concurrent API call. */
export const writeRows = <R>(connection: Handle, rows: R[], writer: Writer<R>): Promise<Merged> =>
  againAfterDeadlock(async () => {
    if (await writer.writeNew?.(connection, rows)) return { written: rows.length, unwritten: [] };
    return await inTransaction(connection, (tx) => writer.merge(tx, rows));
  }, maxAttempts);

async function inTransaction<T>(connection: Handle, work: (tx: Handle) => Promise<T>): Promise<T> {
  try {
    await connection.query('BEGIN');
    const value = await work(connection);
    await connection.query('COMMIT');
    return value;
  } catch (error) {
    await connection.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

/**
 * Writes batches concurrently, each over its own connection. Batches with a common key are written
 * one after the other, in file order. So the first of two conflicting records counts, and no batch
 * waits for a lock of another batch.
 */
export class BatchWriters<R extends Row> {
  readonly #free: Handle[];
  readonly #write: (connection: Handle, rows: R[]) => Promise<void>;
  /** Batches that are being written, with the hashes of their keys. */
  readonly #inWork = new Map<Promise<void>, Set<number>>();
  #failures: unknown[] = [];

  constructor(
    connections: readonly Handle[],
    write: (connection: Handle, rows: R[]) => Promise<void>,
  ) {
    this.#free = [...connections];
    this.#write = write;
  }

  /**
   * Resolves when the writing of the batch has started. This may have to wait for other batches.
   * Throws the failure of an earlier batch.
   */
  async add(rows: R[]): Promise<void> {
    const hashes = new Set<number>();
    for (const { keyHashes = [] } of rows) for (const hash of keyHashes) hashes.add(hash);
    let connection = this.#free.pop();
    while (connection === undefined) {
      await Promise.race(this.#inWork.keys());
      connection = this.#free.pop();
    }
    for (const [batch, others] of this.#inWork) if (!hashes.isDisjointFrom(others)) await batch;
    this.#throwFailure();
    this.#start(connection, { rows, hashes });
  }

  /** Resolves when all batches are written. Throws the first failure. */
  async end(): Promise<void> {
    await Promise.all(this.#inWork.keys());
    this.#throwFailure();
  }

  #start(connection: Handle, { rows, hashes }: { rows: R[]; hashes: Set<number> }): void {
    const batch = this.#write(connection, rows)
      .catch((error: unknown) => void this.#failures.push(error))
      .then(() => {
        this.#inWork.delete(batch);
        this.#free.push(connection);
      });
    this.#inWork.set(batch, hashes);
  }

  #throwFailure(): void {
    if (this.#failures.length > 0) throw this.#failures[0];
  }
}
