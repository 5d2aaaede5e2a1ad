import { Sessions } from '../../api/services/accounts/sessions/sessions.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Vault } from '../../shared/crypto.ts';
import { type Database, type Handle, isConnectionFailure, isDeadlock } from '../../shared/db/pool.ts';
import {
  mergeInstallations,
  openInstallationStage,
  type StagedInstallation,
  tidyInstallations,
} from '../../shared/db/tables/import/installations.ts';
import {
  mergeMemberships,
  mergeRoles,
  openRoleStage,
  TooManyRoles,
} from '../../shared/db/tables/import/roles.ts';
import type { Merged, Unwritten } from '../../shared/db/tables/import/unwritten.ts';
import { mergeUsers, openUserStage } from '../../shared/db/tables/import/users.ts';
import type { JsonObject } from '../../shared/domain/json.ts';
import type { RelationName } from '../../shared/domain/roles/role.ts';
import { CommandFailure } from '../cli/report.ts';
import { batchesOf, type Row } from './batches.ts';
import { type ExportFile, openFile } from './files.ts';
import { readInstallation } from './installation-record.ts';
import { readMembership, readRole } from './role-record.ts';
import type { Tally } from './tally.ts';
import { readUser } from './user-record.ts';

export interface ImportJob {
  db: Database;
  clock: Clock;
  appId: string;
  files: ExportFile[];
  tally: Tally;
  /** Checks and compares everything, and writes nothing. */
  isDry: boolean;
  /** Installations last seen before this time (ISO 8601) are counted: they would be idle, were they not imported. */
  idleBefore: string;
  /** Roles that the app may have. */
  maxRoles: number;
  /** Keys of CARILLON_SECRET, for the sessions of users. */
  vault: Vault | undefined;
  /** Ends it after the batch that is being written. */
  stop: AbortSignal;
  /** Bytes read so far, of all files together. */
  onProgress: (bytes: number) => void;
}

/** From so many new installations on, the table is tidied up at the end. */
const manyRows = 10_000;
const tries = 3;
const goesOn = 'Run it again: it goes on where it was.';

/**
 * Imports files one after the other, batch by batch, each batch one transaction: it may be ended at any time, and goes
 * on when it is run again, since what is there is left as it is. Throws `CommandFailure` where it cannot go on; the
 * tally says how far it came.
 */
export async function importFiles(job: ImportJob): Promise<void> {
  let bytesBefore = 0;
  await job.db.withConnection(async (connection) => {
    await openInstallationStage(connection);
    await openUserStage(connection);
    await openRoleStage(connection);
    for (const file of job.files) {
      await importFile(job, { connection, file, bytesBefore });
      bytesBefore += file.bytes;
      job.onProgress(bytesBefore);
    }
  });
  const written = job.tally.classes.get('_Installation')?.imported ?? 0;
  if (!job.isDry && written >= manyRows) await tidyInstallations(job.db);
}

interface Part {
  connection: Handle;
  file: ExportFile;
  bytesBefore: number;
}

type Merge<R> = (tx: Handle, rows: R[]) => Promise<Merged>;

function importFile(job: ImportJob, part: Part): Promise<void> {
  const now = new Date(job.clock.now());
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

function importInstallations(job: ImportJob, part: Part, now: Date): Promise<void> {
  const { appId, isDry } = job;
  // A batch is as the one before it: in an import that goes on, most rows are there already.
  let areNew = true;
  return importRows(job, part, {
    read: (record, line) => noteInstallation(job, readInstallation(record, { line, now })),
    merge: async (tx, rows) => {
      const merged = await mergeInstallations(tx, appId, { rows, isDry, areNew });
      areNew = merged.unwritten.length === 0;
      return merged;
    },
  });
}

async function importUsers(job: ImportJob, part: Part, now: Date): Promise<void> {
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

function importRoles(job: ImportJob, part: Part, now: Date): Promise<void> {
  const { appId, isDry, maxRoles } = job;
  return importRows(job, part, {
    read: (record, line) => readRole(record, { line, now }),
    merge: (tx, rows) => mergeRoles(tx, appId, { rows, isDry, maxRoles }),
  });
}

function importMemberships(job: ImportJob, part: Part, relation: RelationName): Promise<void> {
  const { appId, isDry } = job;
  return importRows(job, part, {
    read: (record, line) => readMembership(record, { line }),
    merge: (tx, rows) => mergeMemberships(tx, appId, { relation, rows, isDry }),
  });
}

/** Times in canonical form compare as texts do. */
function noteInstallation({ idleBefore, tally }: ImportJob, row: StagedInstallation): StagedInstallation {
  tally.needs.addInstallation(row.draft);
  if (row.updatedAt < idleBefore) tally.idleInstallations += 1;
  return row;
}

/** A batch is read while the one before it is written. */
async function importRows<R extends Row>(
  job: ImportJob,
  { connection, file, bytesBefore }: Part,
  { read, merge }: { read: (record: JsonObject, line: number) => R; merge: Merge<R> },
): Promise<void> {
  const opened = openFile(file);
  let writing = Promise.resolve();
  try {
    for await (const rows of batchesOf({ file, opened, tally: job.tally, read })) {
      await writing;
      if (job.stop.aborted) throw new CommandFailure(`It was stopped. ${goesOn}`);
      job.onProgress(bytesBefore + opened.bytesRead());
      writing = writeBatch(job, { connection, file, work: (tx) => merge(tx, rows) });
      // Whoever waits for it hears of its failure, which may be a moment later.
      writing.catch(() => undefined);
    }
    await writing;
  } catch (error) {
    await writing.catch(() => undefined);
    throw failureIn(file, error);
  } finally {
    await job.tally.flush();
  }
}

interface Batch {
  connection: Handle;
  file: ExportFile;
  work: (tx: Handle) => Promise<Merged>;
}

async function writeBatch(job: ImportJob, { connection, file, work }: Batch): Promise<void> {
  const { written, unwritten } = await inTransaction(connection, work, tries);
  const counts = job.tally.of(file.className);
  counts.imported += written;
  for (const row of unwritten) {
    if (row.isThere) {
      counts.alreadyThere += 1;
      if (row.isNewer) counts.newerInFile += 1;
    } else {
      const { line, objectId } = row;
      job.tally.refuse(file.className, { file: file.path, line, objectId, error: conflictSentence(row) });
    }
  }
}

/** Calls of clients go on meanwhile: of two that wait for each other, this one begins anew. */
async function inTransaction<T>(
  connection: Handle,
  work: (tx: Handle) => Promise<T>,
  triesLeft: number,
): Promise<T> {
  try {
    await connection.query('BEGIN');
    const value = await work(connection);
    await connection.query('COMMIT');
    return value;
  } catch (error) {
    await connection.query('ROLLBACK').catch(() => undefined);
    if (isDeadlock(error) && triesLeft > 1) return inTransaction(connection, work, triesLeft - 1);
    throw error;
  }
}

function conflictSentence({ holders, problem }: Unwritten): string {
  if (problem !== undefined) return problem;
  const taken = Object.entries(holders).map(([member, holder]) => `${member} belongs to ${holder}`);
  if (taken.length > 0) return `${taken.join(', ')} already.`;
  return 'Another object had one of its unique members for a moment: import it again.';
}

function failureIn(file: ExportFile, error: unknown): unknown {
  if (isConnectionFailure(error))
    return new CommandFailure(`The connection to the database was lost. ${goesOn}`);
  if (error instanceof TooManyRoles)
    return new CommandFailure(`The app may have no ${error.message}: raise its option maxRoles. ${goesOn}`);
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code.startsWith('Z_'))
    return new CommandFailure(`${file.path} is damaged (${code}): it was read up to there.`);
  if (/^E[A-Z]+$/.test(code)) return new CommandFailure(`${file.path} cannot be read (${code}).`);
  return error;
}
