import { comparedToken } from '../../../domain/installations/identity.ts';
import type { InstallationDraft } from '../../../domain/installations/installation.ts';
import { type CopyRow, copyIn, RowEncoder } from '../../copy.ts';
import { isFailedCopyToWorker, violatedConstraint } from '../../limits/database-errors.ts';
import type { Handle } from '../../pool.ts';
import { draftColumns, draftValues } from '../installations/installations.ts';
import { keptOut, type Merged, unstage, unwrittenRows } from './unwritten.ts';

/** Validated installation of an export. Times are ISO 8601. */
export interface ImportedInstallation {
  objectId: string;
  draft: InstallationDraft;
  createdAt: string;
  updatedAt: string;
  importedAt: string;
}

/** Installation of an import, ready to be written. */
export interface StagedInstallation {
  /** Line of its file. */
  line: number;
  objectId: string;
  /** Hashes of its values of unique columns. */
  keyHashes: number[];
  /** Its app and the values of `columns`. */
  row: CopyRow;
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

/** Encoder of the installations of an app, while the batch before is written. */
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

/** Returns a hash of 32 bits, of all characters: it needs no memory of its own, as a long text does. */
function hashOf(text: string): number {
  let hash = 0;
  for (let i = 0; i < text.length; i += 1) hash = (Math.imul(hash, hashFactor) + text.charCodeAt(i)) | 0;
  return hash;
}

/**
 * Writes a batch of new installations with one statement, which is its own transaction. Returns false, and writes nothing,
 * when another row has a unique value of one of them, or a sharded database does not tell why it refused them.
 */
export async function writeNewInstallations(
  connection: Handle,
  rows: readonly StagedInstallation[],
): Promise<boolean> {
  const target = { table: 'installation', columns: ['app_id', ...columns] };
  try {
    await copyIn(
      connection,
      target,
      rows.map(({ row }) => row),
    );
    return true;
  } catch (error) {
    // The caller then merges the rows, which fails by any other reason again.
    if (violatedConstraint(error) === undefined && !isFailedCopyToWorker(error)) throw error;
    return false;
  }
}

export interface InstallationBatch {
  rows: StagedInstallation[];
  isDry: boolean;
  /** Most rows probably exist: looking them up costs less than a failing insert. */
  areKnown: boolean;
}

/**
 * Writes the new rows of a batch in line order and returns the others; existing rows stay unchanged. The object ids of a
 * batch must be distinct. With `isDry`, only reads the table.
 */
export async function mergeInstallations(
  tx: Handle,
  appId: string,
  { rows, isDry, areKnown }: InstallationBatch,
): Promise<Merged> {
  const encoder = new RowEncoder();
  await copyIn(
    tx,
    { table: stage, columns: ['line', ...columns] },
    rows.map(({ line, row }) => encoder.withFirst(line, row)),
  );
  const known = isDry || areKnown ? await keptOut(tx, appId, { stage, table: 'installation', unique }) : [];
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
