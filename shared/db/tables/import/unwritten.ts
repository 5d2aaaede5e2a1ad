import type { Handle } from '../../pool.ts';

/** Staged row that was not written, and why: it exists, or it conflicts with another row. */
export interface Unwritten {
  line: number;
  objectId: string;
  isThere: boolean;
  /** The row exists, but the file has a later update of it. */
  isNewer: boolean;
  /** Public ids of the conflicting rows, by the name of the unique member; empty when the row exists. */
  holders: Record<string, string>;
  /** Another reason, for the report. */
  message?: string;
}

/** Result of a batch. */
export interface Merged {
  written: number;
  unwritten: Unwritten[];
}

/** Source and target of staged rows. All names are constants, never of a request. */
export interface Destination {
  stage: string;
  table: string;
  /** Unique columns, and the names of their members. */
  unique: Readonly<Record<string, string>>;
}

type UnwrittenRow = { line: number; object_id: string; is_there: boolean; is_newer: boolean } & Record<
  string,
  unknown
>;

/** Reads the staged rows in line order, with the rows of the table that they conflict with. */
export async function unwrittenRows(
  tx: Handle,
  appId: string,
  { stage, table, unique }: Destination,
): Promise<Unwritten[]> {
  // Existing rows need no search for conflicts.
  const holders = Object.keys(unique).map(
    (name) => `CASE WHEN i.object_id IS NULL THEN
      (SELECT object_id FROM ${table} t WHERE t.app_id = $1 AND t.${name} = s.${name}) END AS ${name}`,
  );
  // LIMIT 1 prevents a plan that reads all rows of the app for one batch.
  const { rows } = await tx.query<UnwrittenRow>(
    `SELECT s.line, s.object_id, i.object_id IS NOT NULL AS is_there,
            coalesce(i.updated_at < s.updated_at, false) AS is_newer, ${holders.join(', ')}
       FROM ${stage} s LEFT JOIN LATERAL (
         SELECT object_id, updated_at FROM ${table} t WHERE t.app_id = $1 AND t.object_id = s.object_id LIMIT 1) i ON true
      ORDER BY s.line`,
    [appId],
  );
  return rows.map((row) => ({
    line: Number(row.line),
    objectId: row.object_id,
    isThere: row.is_there,
    isNewer: row.is_newer,
    holders: holdersIn(row, unique),
  }));
}

function holdersIn(row: UnwrittenRow, unique: Destination['unique']): Record<string, string> {
  const found = Object.entries(unique).flatMap(([name, member]) => {
    const holder = row[name];
    return typeof holder === 'string' ? [[member, holder]] : [];
  });
  return Object.fromEntries(found);
}

/** Finds the staged rows that exist or conflict with another row. */
export async function keptOut(tx: Handle, appId: string, destination: Destination): Promise<Unwritten[]> {
  const rows = await unwrittenRows(tx, appId, destination);
  return rows.filter(({ isThere, holders }) => isThere || Object.keys(holders).length > 0);
}

/** Deletes reported rows from the stage. */
export async function unstage(tx: Handle, stage: string, rows: readonly Unwritten[]): Promise<void> {
  if (rows.length === 0) return;
  await tx.query(`DELETE FROM ${stage} WHERE line = ANY($1::bigint[])`, [rows.map(({ line }) => line)]);
}
