import type { Json } from '../../domain/json.ts';
import {
  maxValueChars,
  type VariableCounts,
  type Variables,
  variableColumns,
} from '../../domain/pushes/variables.ts';
import type { Handle } from '../pool.ts';
import { PreparedStatements } from '../prepared.ts';
import { query } from '../query.ts';
import type { SqlCondition } from './audience.ts';

/** Spaces at the start and end of a value are ignored. */
const trimmed = (text: string): string =>
  String.raw`nullif(btrim(left(btrim(${text}, E' \t\r\n'), ${maxValueChars}), E' \t\r\n'), '')`;

/** Returns SQL of a field's value as text. NULL if it is missing, empty, a list or an object. */
function valueSql(field: string, paths: (path: string[]) => string): string {
  const column = variableColumns.get(field);
  if (column !== undefined) return trimmed(`${column}::text`);
  const path = `${paths(field.split('.'))}::text[]`;
  return `CASE WHEN jsonb_typeof(fields #> ${path}) IN ('string', 'number', 'boolean')
               THEN ${trimmed(`fields #>> ${path}`)} END`;
}

/** Builds the SQL of all variables, and appends their paths to the values of the statement. */
function expressionsOf(variables: Variables, values: unknown[]): string[] {
  const paths = (path: string[]) => `$${values.push(path)}`;
  return Object.values(variables).map(({ field }) => valueSql(field, paths));
}

/** Values of the variables of one installation, in order; null for a missing value. */
export type FieldValues = (string | null)[];

/**
 * Prepared statements. Their texts differ only in the number of variables and the columns that they
 * use.
 */
const fieldValueStatements = new PreparedStatements();

/**
 * Reads the values of variables by installation id. Deleted installations are missing in the
 * result.
 */
export async function readFieldValues(
  db: Handle,
  { appId, ids }: { appId: string; ids: readonly number[] },
  variables: Variables,
): Promise<Map<number, FieldValues>> {
  const values: unknown[] = [appId, `{${ids.join()}}`];
  const sql = `SELECT id, json_build_array(${expressionsOf(variables, values).join(', ')}) AS found
                 FROM installation WHERE app_id = $1 AND id = ANY($2::bigint[])`;
  const statement = fieldValueStatements.of(sql);
  const rows = await query(db).rows<{ id: number; found: FieldValues }>(statement, values);
  return new Map(rows.map(({ id, found }) => [id, found]));
}

/**
 * Counts the devices that meet a condition, and the devices that get the default value of each
 * variable.
 */
export async function countFallbacks(
  db: Handle,
  condition: SqlCondition,
  variables: Variables,
): Promise<VariableCounts> {
  const values = [...condition.values];
  const counts = expressionsOf(variables, values).map(
    (sql) => `count(*) FILTER (WHERE (${sql}) IS NULL)`,
  );
  const { devices, fallbacks } = await query(db).one<{ devices: number; fallbacks: number[] }>(
    `SELECT count(*) AS devices, json_build_array(${counts.join(', ')}) AS fallbacks
       FROM installation WHERE ${condition.text}`,
    values,
  );
  return Object.fromEntries(
    Object.keys(variables).map((name, i) => [name, { devices, fallback: fallbacks[i] ?? 0 }]),
  );
}

/** Like `countFallbacks`, for the installations of a page. */
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

/** Number of devices in a sample: the newest of an app. */
const maxSampled = 2000;
/** Maximum members, and values of a member, in a response. Longer values are omitted. */
const maxNames = 200;
const maxValues = 20;
const maxValueLength = 100;

/** A member of installations in a sample. */
export interface SampledField {
  name: string;
  /** JSON types of its values, or `__type` of typed values. */
  types: string[];
  /** Its most frequent values, with their share of the devices that have the member. */
  values: { value: Json; share: number }[];
}

/**
 * Built-in members whose values are suggested. Members that differ for each device are not in the
 * list.
 */
const columns = `'deviceType', device_type, 'vendor', vendor_name, 'deviceProfile', device_profile, 'timeZone', time_zone,
  'apnsTopic', topic, 'apnsTeamId', team_id, 'channels', CASE WHEN cardinality(channels) > 0 THEN to_jsonb(channels) END,
  'badge', badge, 'valid', valid`;

const sample = `sample AS MATERIALIZED (
    SELECT fields || jsonb_strip_nulls(jsonb_build_object(${columns})) AS members
      FROM installation WHERE app_id = $1 ORDER BY id DESC LIMIT ${maxSampled})`;

/** Lists the most frequent members of the newest installations whose name begins with `prefix`. */
export const sampleFields = (db: Handle, appId: string, prefix: string) =>
  query(db).rows<SampledField>(
    `WITH ${sample},
     member AS (
       SELECT m.key AS name, m.value FROM sample, jsonb_each(members) AS m
         WHERE starts_with(m.key, $2)),
     field AS (
       SELECT name, count(*) AS n,
         array_agg(DISTINCT coalesce(value ->> '__type', jsonb_typeof(value))) AS types
         FROM member GROUP BY name ORDER BY n DESC, name LIMIT ${maxNames}),
     found AS (
       SELECT m.name, e.value, count(*) AS n,
         row_number() OVER (PARTITION BY m.name ORDER BY count(*) DESC, e.value) AS place
         FROM member m JOIN field USING (name)
         CROSS JOIN LATERAL (
           SELECT m.value WHERE jsonb_typeof(m.value) <> 'array'
           UNION ALL
           SELECT jsonb_array_elements(m.value) WHERE jsonb_typeof(m.value) = 'array') AS e
        WHERE length(e.value::text) <= ${maxValueLength}
          AND jsonb_typeof(e.value) IN ('string', 'number', 'boolean')
        GROUP BY m.name, e.value)
     SELECT f.name, f.types,
            coalesce(jsonb_agg(jsonb_build_object('value', v.value, 'share',
            round(v.n / f.n::numeric, 3))
                       ORDER BY v.place) FILTER (WHERE v.place IS NOT NULL), '[]') AS values
       FROM field f LEFT JOIN found v ON v.name = f.name AND v.place <= ${maxValues}
      GROUP BY f.name, f.types, f.n ORDER BY f.n DESC, f.name`,
    [appId, prefix],
  );

/** Lists the most frequent channels of the newest installations that begin with `prefix`. */
export const sampleChannels = (db: Handle, appId: string, prefix: string) =>
  query(db).rows<{ value: string; share: number }>(
    `WITH sample AS MATERIALIZED (
       SELECT channels FROM installation WHERE app_id = $1 ORDER BY id DESC LIMIT ${maxSampled})
     SELECT channel AS value, round(count(*) / (SELECT count(*) FROM sample)::numeric,
       3)::float8 AS share
       FROM sample, unnest(channels) AS channel WHERE starts_with(channel, $2)
      GROUP BY channel ORDER BY count(*) DESC, channel LIMIT ${maxNames}`,
    [appId, prefix],
  );
