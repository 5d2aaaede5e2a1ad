import type { InstallationDraft } from '../../domain/installation.ts';
import { copyIn } from '../copy.ts';
import type { Handle } from '../pool.ts';
import { draftColumns, draftValues } from './installations.ts';

/** An installation of an import, checked. Times are ISO 8601. */
export interface StagedInstallation {
  /** Where it stands in its file. */
  line: number;
  objectId: string;
  draft: InstallationDraft;
  createdAt: string;
  updatedAt: string;
}

/** A staged row that was not written, and why: it is there already, or another row has what must be its own. */
export interface Unwritten {
  line: number;
  objectId: string;
  isThere: boolean;
  /** It is there, but was changed in the file later than here. */
  isNewer: boolean;
  /** Public ids of the rows that have a member of this one, by the member's name. */
  holders: Record<string, string>;
}

const stage = 'import_installation';
/** What a dry run writes instead: it remembers what the file itself holds twice. */
const shadow = 'import_seen_installation';
const columns = ['object_id', 'created_at', 'updated_at', ...draftColumns];

/** Makes the tables of an import; they are this connection's own and end with it. */
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

/**
 * Writes what is new of a batch, in the order of its lines, and gives what is not; nothing that is there is changed.
 * No two rows of a batch may have the same object id. With `isDry` the table is only looked at.
 */
export async function mergeInstallations(
  tx: Handle,
  appId: string,
  { rows, isDry }: { rows: StagedInstallation[]; isDry: boolean },
): Promise<{ written: number; unwritten: Unwritten[] }> {
  await copyIn(
    tx,
    { table: stage, columns: ['line', ...columns] },
    rows.map((row) => [row.line, row.objectId, row.createdAt, row.updatedAt, ...draftValues(row.draft)]),
  );
  const known = isDry ? await takeUnwritten(tx, appId, 'installation') : [];
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
  return { written, unwritten: [...known, ...(await unwrittenRows(tx, appId, target))] };
}

interface UnwrittenRow {
  line: number;
  object_id: string;
  is_there: boolean;
  is_newer: boolean;
  token_holder: string | null;
  id_holder: string | null;
}

// LIMIT 1 keeps a plan from reading all of the app for one batch.
async function unwrittenRows(tx: Handle, appId: string, target: string): Promise<Unwritten[]> {
  const { rows } = await tx.query<UnwrittenRow>(
    `SELECT s.line, s.object_id, i.object_id IS NOT NULL AS is_there,
            coalesce(i.updated_at < s.updated_at, false) AS is_newer,
            (SELECT object_id FROM ${target} t WHERE t.app_id = $1 AND t.device_token = s.device_token) AS token_holder,
            (SELECT object_id FROM ${target} t WHERE t.app_id = $1 AND t.installation_id = s.installation_id) AS id_holder
       FROM ${stage} s LEFT JOIN LATERAL (
         SELECT object_id, updated_at FROM ${target} t WHERE t.app_id = $1 AND t.object_id = s.object_id LIMIT 1) i ON true
      ORDER BY s.line`,
    [appId],
  );
  return rows.map((row) => ({
    line: Number(row.line),
    objectId: row.object_id,
    isThere: row.is_there,
    isNewer: row.is_newer,
    holders: {
      ...(row.token_holder === null ? {} : { deviceToken: row.token_holder }),
      ...(row.id_holder === null ? {} : { installationId: row.id_holder }),
    },
  }));
}

/** Those that a table keeps out, taken off the stage. */
async function takeUnwritten(tx: Handle, appId: string, target: string): Promise<Unwritten[]> {
  const found = await unwrittenRows(tx, appId, target);
  const kept = found.filter(({ isThere, holders }) => isThere || Object.keys(holders).length > 0);
  await tx.query(`DELETE FROM ${stage} WHERE line = ANY($1::bigint[])`, [kept.map(({ line }) => line)]);
  return kept;
}

/** Brings statistics and indexes up to date after many new rows, so that the next push is planned well. */
export async function tidyInstallations(db: Handle): Promise<void> {
  await db.query('VACUUM (ANALYZE) installation');
}
