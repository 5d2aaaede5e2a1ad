import type { InstallationDraft } from '../../../domain/installations/installation.ts';
import { type CopyValue, copyIn } from '../../copy.ts';
import { type Handle, violatedConstraint } from '../../pool.ts';
import { draftColumns, draftValues } from '../installations/installations.ts';
import { keptOut, type Merged, unstage, unwrittenRows } from './unwritten.ts';

/** Validated installation of an import. Times are ISO 8601. */
export interface StagedInstallation {
  /** Line of its file. */
  line: number;
  objectId: string;
  draft: InstallationDraft;
  createdAt: string;
  updatedAt: string;
  importedAt: string;
}

const stage = 'import_installation';
/** Table that a dry run writes to, which finds duplicates within the file. */
const shadow = 'import_seen_installation';
const unique = { device_token: 'deviceToken', installation_id: 'installationId' };
const columns = ['object_id', 'created_at', 'updated_at', 'imported_at', ...draftColumns];

/** Creates the temporary tables of an import on this connection. */
export async function openInstallationStage(connection: Handle): Promise<void> {
  await connection.query(
    `CREATE TEMP TABLE ${stage} ON COMMIT DELETE ROWS AS
       SELECT 0::bigint AS line, ${columns.join(', ')} FROM installation WITH NO DATA`,
  );
  await connection.query(
    `CREATE TEMP TABLE ${shadow} (LIKE installation INCLUDING DEFAULTS INCLUDING IDENTITY)`,
  );
  for (const name of ['object_id', 'device_token', 'installation_id'])
    await connection.query(`CREATE UNIQUE INDEX ON ${shadow} (app_id, ${name})`);
}

export interface InstallationBatch {
  rows: StagedInstallation[];
  isDry: boolean;
  /** All rows are probably new: try a direct COPY first, at half the cost. */
  areNew: boolean;
}

/**
 * Writes the new rows of a batch in line order and returns the others; existing rows stay unchanged. The object ids of a
 * batch must be distinct. With `isDry`, only reads the table.
 */
export async function mergeInstallations(
  tx: Handle,
  appId: string,
  { rows, isDry, areNew }: InstallationBatch,
): Promise<Merged> {
  const isWritten = areNew && !isDry && (await writeAll(tx, appId, rows));
  return isWritten
    ? { written: rows.length, unwritten: [] }
    : mergeStaged(tx, appId, { rows, isDry, areNew });
}

const valuesOf = (row: StagedInstallation): CopyValue[] => [
  row.objectId,
  row.createdAt,
  row.updatedAt,
  row.importedAt,
  ...draftValues(row.draft),
];

/** Copies the rows directly into the table. Returns false, and writes nothing, on a conflict with a unique index. */
async function writeAll(tx: Handle, appId: string, rows: StagedInstallation[]): Promise<boolean> {
  const target = { table: 'installation', columns: ['app_id', ...columns] };
  const values = rows.map((row) => [appId, ...valuesOf(row)]);
  await tx.query('SAVEPOINT before_rows');
  try {
    await copyIn(tx, target, values);
    return true;
  } catch (error) {
    if (violatedConstraint(error) === undefined) throw error;
    await tx.query('ROLLBACK TO SAVEPOINT before_rows');
    return false;
  }
}

async function mergeStaged(
  tx: Handle,
  appId: string,
  { rows, isDry, areNew }: InstallationBatch,
): Promise<Merged> {
  await copyIn(
    tx,
    { table: stage, columns: ['line', ...columns] },
    rows.map((row) => [row.line, ...valuesOf(row)]),
  );
  // Looking up existing rows costs less than a failing insert.
  const isLookedUp = isDry || !areNew;
  const known = isLookedUp ? await keptOut(tx, appId, { stage, table: 'installation', unique }) : [];
  await unstage(tx, stage, known);
  if (known.length === rows.length) return { written: 0, unwritten: known };
  const target = isDry ? shadow : 'installation';
  const { rowCount } = await tx.query(
    `WITH written AS (
       INSERT INTO ${target} (app_id, ${columns.join(', ')})
       SELECT $1, ${columns.join(', ')} FROM ${stage} ORDER BY line
       ON CONFLICT DO NOTHING RETURNING object_id)
     DELETE FROM ${stage} s USING written w WHERE s.object_id = w.object_id`,
    [appId],
  );
  const written = rowCount ?? 0;
  if (known.length + written === rows.length) return { written, unwritten: known };
  const unwritten = await unwrittenRows(tx, appId, { stage, table: target, unique });
  return { written, unwritten: [...known, ...unwritten] };
}

/** Updates statistics and indexes after many new rows, so that the next push gets a good plan. */
export async function tidyInstallations(db: Handle): Promise<void> {
  await db.query('VACUUM (ANALYZE) installation');
}
