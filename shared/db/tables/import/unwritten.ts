import type { Handle } from '../../pool.ts';

/** A staged row that was not written, and why: it is there already, or another row has what must be its own. */
export interface Unwritten {
  line: number;
  objectId: string;
  isThere: boolean;
  /** It is there, but was changed in the file later than here. */
  isNewer: boolean;
  /** Public ids of the rows that have a member of this one, by the member's name; none where it is there. */
  holders: Record<string, string>;
  /** What else keeps it out, as a sentence. */
  message?: string;
}

/** What became of a batch. */
export interface Merged {
  written: number;
  unwritten: Unwritten[];
}

/** Where staged rows go. All names are ours, never of a request. */
export interface Destination {
  stage: string;
  table: string;
  /** Columns that no two rows of an app may have alike, and the members' names. */
  unique: Readonly<Record<string, string>>;
}

type UnwrittenRow = { line: number; object_id: string; is_there: boolean; is_newer: boolean } & Record<
  string,
  unknown
>;

/** What is on the stage, in the order of its lines, with what the table has of it. */
export async function unwrittenRows(
  tx: Handle,
  appId: string,
  { stage, table, unique }: Destination,
): Promise<Unwritten[]> {
  // Of a row that is there nobody asks who has its members.
  const holders = Object.keys(unique).map(
    (name) => `CASE WHEN i.object_id IS NULL THEN
      (SELECT object_id FROM ${table} t WHERE t.app_id = $1 AND t.${name} = s.${name}) END AS ${name}`,
  );
  // LIMIT 1 keeps a plan from reading all of the app for one batch.
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

/** Of the staged rows those that the table keeps out: they are there, or others have what must be their own. */
export async function keptOut(tx: Handle, appId: string, destination: Destination): Promise<Unwritten[]> {
  const rows = await unwrittenRows(tx, appId, destination);
  return rows.filter(({ isThere, holders }) => isThere || Object.keys(holders).length > 0);
}

/** Takes rows off the stage: they are told of already. */
export async function unstage(tx: Handle, stage: string, rows: readonly Unwritten[]): Promise<void> {
  if (rows.length === 0) return;
  await tx.query(`DELETE FROM ${stage} WHERE line = ANY($1::bigint[])`, [rows.map(({ line }) => line)]);
}
