import {
  maxValueChars,
  shownColumns,
  type VariableCounts,
  type Variables,
} from '../../../domain/pushes/variables.ts';
import type { Handle } from '../../pool.ts';
import { PreparedStatements } from '../../prepared.ts';
import type { SqlCondition } from './audience.ts';

/** Blanks at the ends of a value do not count. */
const trimmed = (text: string): string =>
  String.raw`nullif(btrim(left(btrim(${text}, E' \t\r\n'), ${maxValueChars}), E' \t\r\n'), '')`;

/** Returns the value of a field as a text; NULL for none, an empty one, and one that is a list or an object. */
function valueSql(field: string, paths: (path: string[]) => string): string {
  const column = shownColumns.get(field);
  if (column !== undefined) return trimmed(`${column}::text`);
  const path = `${paths(field.split('.'))}::text[]`;
  return `CASE WHEN jsonb_typeof(fields #> ${path}) IN ('string', 'number', 'boolean')
               THEN ${trimmed(`fields #>> ${path}`)} END`;
}

/** Builds the expressions of all variables; appends their paths to the values of the statement. */
function expressionsOf(variables: Variables, values: unknown[]): string[] {
  const paths = (path: string[]) => `$${values.push(path)}`;
  return Object.values(variables).map(({ field }) => valueSql(field, paths));
}

/** Values of the variables of one installation, in their order; null for a missing one. */
export type FieldValues = (string | null)[];

/** Prepared: the texts differ by the number of variables and the columns among them only. */
const statements = new PreparedStatements();

/** Reads the values of variables of installations, by id; those that were deleted are missing. */
export async function readFieldValues(
  db: Handle,
  { appId, ids }: { appId: string; ids: readonly number[] },
  variables: Variables,
): Promise<Map<number, FieldValues>> {
  const values: unknown[] = [appId, `{${ids.join()}}`];
  const sql = `SELECT id, json_build_array(${expressionsOf(variables, values).join(', ')}) AS found
                 FROM installation WHERE app_id = $1 AND id = ANY($2::bigint[])`;
  const { rows } = await db.query<{ id: number; found: FieldValues }>(statements.of(sql), values);
  return new Map(rows.map(({ id, found }) => [id, found]));
}

/** Counts the devices that meet a condition, and those of them that get the default of each variable. */
export async function countFallbacks(
  db: Handle,
  condition: SqlCondition,
  variables: Variables,
): Promise<VariableCounts> {
  const values = [...condition.values];
  const counts = expressionsOf(variables, values).map((sql) => `count(*) FILTER (WHERE (${sql}) IS NULL)`);
  const { rows } = await db.query<{ devices: number; fallbacks: number[] }>(
    `SELECT count(*) AS devices, json_build_array(${counts.join(', ')}) AS fallbacks
       FROM installation WHERE ${condition.text}`,
    values,
  );
  const { devices, fallbacks } = rows[0] ?? { devices: 0, fallbacks: [] };
  return Object.fromEntries(
    Object.keys(variables).map((name, i) => [name, { devices, fallback: fallbacks[i] ?? 0 }]),
  );
}

/** As `countFallbacks`, for the installations of a page. */
export const countFallbacksOf = (
  tx: Handle,
  { appId, ids }: { appId: string; ids: readonly number[] },
  variables: Variables,
): Promise<VariableCounts> =>
  countFallbacks(
    tx,
    { text: 'app_id = $1 AND id = ANY($2::bigint[])', values: [appId, `{${ids.join()}}`] },
    variables,
  );
