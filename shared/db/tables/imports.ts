import { comparedToken } from '../../domain/installations/identity.ts';
import type { InstallationDraft } from '../../domain/installations/installation.ts';
import { type CopyRow, copyIn, RowEncoder } from '../copy.ts';
import { isFailedCopyToWorker, violatedConstraint } from '../limits/database-errors.ts';
import type { Handle } from '../pool.ts';
import { query } from '../query.ts';
import { draftColumns, draftValues } from './installations.ts';
import type { ClassTable } from './selection.ts';

/**
 * A staged row that was not written, and the reason: it exists, or it conflicts with another row.
 */
export interface Unwritten {
  line: number;
  objectId: string;
  isThere: boolean;
  /** True if the row exists, but the file contains a later update of it. */
  isNewer: boolean;
  /** Public ids of the conflicting rows by member. Empty if the row exists. */
  holders: Record<string, string>;
  /** Another reason, for the report. */
  message?: string;
}

/** Result of a batch. */
export interface Merged {
  written: number;
  unwritten: Unwritten[];
}

/**
 * Temporary table of staged rows, and the table to which they are written. All names are constants,
 * never text of a request.
 */
export interface Stage {
  name: string;
  table: string;
  /** Table to which a dry run writes. It finds duplicates within the file. */
  shadow: string;
  columns: readonly string[];
  /** Unique columns in addition to `object_id`, with the names of their members. */
  unique: Readonly<Record<string, string>>;
}

/**
 * Creates the temporary tables of a stage on this connection. `extra`: additional columns of the
 * stage.
 */
export async function openStage(
  connection: Handle,
  stage: Stage,
  extra: readonly string[] = [],
): Promise<void> {
  const { name, table, shadow, columns, unique } = stage;
  const selected = ['0::bigint AS line', ...extra, ...columns];
  await connection.query(
    `CREATE TEMP TABLE ${name} ON COMMIT DELETE ROWS AS SELECT ${selected.join(', ')}
      FROM ${table} WITH NO DATA`,
  );
  await connection.query(
    `CREATE TEMP TABLE ${shadow} (LIKE ${table} INCLUDING DEFAULTS INCLUDING IDENTITY)`,
  );
  for (const column of ['object_id', ...Object.keys(unique)])
    await connection.query(`CREATE UNIQUE INDEX ON ${shadow} (app_id, ${column})`);
}

/**
 * Writes the staged rows without a conflict to a table in line order, and deletes them from the
 * stage. Returns their number.
 */
const insertStaged = (tx: Handle, appId: string, { name, columns }: Stage, table: string) =>
  query(tx).rowCount(
    `WITH written AS (
       INSERT INTO ${table} (app_id, ${columns.join(', ')})
       SELECT $1, ${columns.join(', ')} FROM ${name} ORDER BY line
       ON CONFLICT DO NOTHING RETURNING object_id)
     DELETE FROM ${name} s USING written w WHERE s.object_id = w.object_id`,
    [appId],
  );

/** Reads the staged rows in line order, with the rows of a table that conflict with them. */
export function unwrittenRows(tx: Handle, appId: string, { name, unique }: Stage, table: string) {
  const holders = Object.entries(unique).map(
    ([column, member]) =>
      `'${member}', (SELECT object_id FROM ${table} t WHERE t.app_id = $1
        AND t.${column} = s.${column})`,
  );
  // Existing rows need no search for conflicts. LIMIT 1 prevents a plan that reads all rows of the
  // app.
  return query(tx).rows<Unwritten>(
    `SELECT s.line, s.object_id AS "objectId", i.object_id IS NOT NULL AS "isThere",
            coalesce(i.updated_at < s.updated_at, false) AS "isNewer",
            CASE WHEN i.object_id IS NULL
            THEN jsonb_strip_nulls(jsonb_build_object(${holders.join(', ')}))
                 ELSE '{}' END AS holders
       FROM ${name} s LEFT JOIN LATERAL (
         SELECT object_id, updated_at FROM ${table} t WHERE t.app_id = $1
           AND t.object_id = s.object_id LIMIT 1) i ON true
      ORDER BY s.line`,
    [appId],
  );
}

/**
 * Finds the staged rows that exist or conflict with another row, and deletes them from the stage.
 */
export async function takeUnwritten(tx: Handle, appId: string, stage: Stage): Promise<Unwritten[]> {
  const rows = await unwrittenRows(tx, appId, stage, stage.table);
  const kept = rows.filter(({ isThere, holders }) => isThere || Object.keys(holders).length > 0);
  await unstage(tx, stage, kept);
  return kept;
}

/**
 * Writes the new rows of a batch in line order, and returns the other rows. `rows` contain `line`
 * and the columns of the stage. Existing rows stay unchanged. The object ids of a batch must be
 * distinct. With `isDry`, only reads the table. `areKnown`: most rows probably exist, so that
 * searching them costs less than a failing insert.
 */
export async function mergeRows(
  tx: Handle,
  appId: string,
  stage: Stage,
  { rows, isDry, areKnown }: { rows: readonly CopyRow[]; isDry: boolean; areKnown: boolean },
): Promise<Merged> {
  await copyIn(tx, { table: stage.name, columns: ['line', ...stage.columns] }, rows);
  const known = isDry || areKnown ? await takeUnwritten(tx, appId, stage) : [];
  if (known.length === rows.length) return { written: 0, unwritten: known };
  const table = isDry ? stage.shadow : stage.table;
  const written = await insertStaged(tx, appId, stage, table);
  if (known.length + written === rows.length) return { written, unwritten: known };
  const unwritten = await unwrittenRows(tx, appId, stage, table);
  return { written, unwritten: [...known, ...unwritten] };
}

/** Deletes reported rows from the stage. */
export async function unstage(
  tx: Handle,
  { name }: Stage,
  rows: readonly Unwritten[],
): Promise<void> {
  if (rows.length === 0) return;
  await tx.query(`DELETE FROM ${name} WHERE line = ANY($1::bigint[])`, [
    rows.map(({ line }) => line),
  ]);
}

/** A validated installation of an export. Times are ISO 8601. */
export interface ImportedInstallation {
  objectId: string;
  draft: InstallationDraft;
  createdAt: string;
  updatedAt: string;
  importedAt: string;
}

/** An installation of an import that is ready to be written. */
interface StagedInstallation {
  line: number;
  objectId: string;
  /** Hashes of the values in its unique columns. */
  keyHashes: number[];
  /** Its app, and the values of `columns`. */
  row: CopyRow;
}

const installations: Stage = {
  name: 'import_installation',
  table: 'installation',
  shadow: 'import_seen_installation',
  columns: ['object_id', 'created_at', 'updated_at', 'imported_at', ...draftColumns],
  unique: { device_token: 'deviceToken', installation_id: 'installationId' },
};

/** Creates the temporary tables of an import on this connection. */
export const openInstallationStage = (connection: Handle) => openStage(connection, installations);

/** Encodes the installations of an app while the previous batch is written. */
export class InstallationEncoder {
  readonly #appId: string;
  readonly #rows = new RowEncoder();

  constructor(appId: string) {
    this.#appId = appId;
  }

  encode(installation: ImportedInstallation, line: number): StagedInstallation {
    const { objectId, createdAt, updatedAt, importedAt, draft } = installation;
    const row = this.#rows.encode([
      ...[this.#appId, objectId, createdAt, updatedAt, importedAt],
      ...draftValues(draft),
    ]);
    const keyHashes = [hashOf(objectId)];
    if (draft.deviceToken !== null) keyHashes.push(hashOf(comparedToken(draft.deviceToken)));
    if (draft.installationId !== null) keyHashes.push(hashOf(draft.installationId));
    return { line, objectId, keyHashes, row };
  }
}

const hashFactor = 31;

/** Returns a 32-bit hash, which takes less memory than a long text. */
function hashOf(text: string): number {
  let hash = 0;
  for (let i = 0; i < text.length; i += 1)
    hash = (Math.imul(hash, hashFactor) + text.charCodeAt(i)) | 0;
  return hash;
}

/**
 * Writes a batch of new installations with one statement, which is its own transaction. Returns
 * false, and writes nothing, if another row has one of their unique values. On a sharded database
 * it also returns false if the reason of the failure is unknown.
 */
export async function writeNewInstallations(
  connection: Handle,
  rows: readonly StagedInstallation[],
): Promise<boolean> {
  const target = { table: 'installation', columns: ['app_id', ...installations.columns] };
  const copied = rows.map(({ row }) => row);
  try {
    await copyIn(connection, target, copied);
    return true;
  } catch (error) {
    // The caller then merges the rows. If the reason is another one, merging fails with it too.
    if (violatedConstraint(error) === undefined && !isFailedCopyToWorker(error)) throw error;
    return false;
  }
}

/** Writes a batch of installations like `mergeRows`. */
export function mergeInstallations(
  tx: Handle,
  appId: string,
  { rows, ...options }: { rows: StagedInstallation[]; isDry: boolean; areKnown: boolean },
): Promise<Merged> {
  const encoder = new RowEncoder();
  const staged = rows.map(({ line, row }) => encoder.withFirst(line, row));
  return mergeRows(tx, appId, installations, { rows: staged, ...options });
}

/**
 * Updates the statistics of a table before an import. If an app has grown since the last ANALYZE,
 * PostgreSQL expects one row of it and may look up each id by reading all rows of the app.
 */
export const analyzeBeforeImport = (db: Handle, table: ClassTable) =>
  query(db).run(`ANALYZE (SKIP_LOCKED) ${table}`);

/** Updates statistics and indexes after an import, so that the next call gets a good plan. */
export const tidyAfterImport = (db: Handle, table: ClassTable) =>
  query(db).run(`VACUUM (ANALYZE) ${table}`);
