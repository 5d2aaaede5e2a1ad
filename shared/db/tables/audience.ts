import { z } from 'zod';
import type { RoutingKey } from '../../domain/installations/installation.ts';
import type { Json } from '../../domain/json.ts';
import { maxLocaleLength } from '../../domain/pushes/languages.ts';
import { maxZoneLength } from '../../domain/pushes/local-time.ts';
import {
  maxValueChars,
  type VariableCounts,
  type Variables,
  variableColumns,
} from '../../domain/pushes/variables.ts';
import type { Handle } from '../pool.ts';
import { PreparedStatements } from '../prepared.ts';
import { listsOf, query } from '../query.ts';
import { AppStatement, isSharded } from '../sharding.ts';

/** Expressions of `RoutingKey`. FCM has two labels: the stored spelling selects one. */
const expressions = {
  device_type: 'device_type',
  vendor: `CASE WHEN vendor = 'vendor_g' AND lower(vendor_name) = 'fcm' THEN 'fcm' ELSE vendor END`,
  device_profile: 'device_profile',
  topic: 'topic',
  team_id: 'team_id',
  has_token: 'device_token IS NOT NULL',
  has_registration: 'registration_id IS NOT NULL',
  has_installation_id: 'installation_id IS NOT NULL',
} satisfies Record<keyof RoutingKey, string>;

/** Columns of `RoutingKey`, for SELECT. */
export const traitColumns = Object.entries(expressions)
  .map(([name, expression]) => `${expression} AS ${name}`)
  .join(', ');

/** Expressions of `RoutingKey`, for GROUP BY: the names alone would mean the table's columns. */
export const traitExpressions = Object.values(expressions).join(', ');

/**
 * Expressions as one text, PostgreSQL's text form of a row: one column reads several times as fast
 * as eight, and the text can be a map key.
 */
export const traitsText = `ROW(${traitExpressions})::text`;

/** Expression of the `locale` of an installation; a longer one is cut and means nothing. */
export const localeExpression = `left(fields ->> 'locale', ${maxLocaleLength + 1})`;

/** As `traitsText`, with the locale at the end. */
export const localizedTraitsText = `ROW(${traitExpressions}, ${localeExpression})::text`;

/** Expression of the `timeZone` of an installation; a longer one is cut and means nothing. */
export const zoneExpression = `left(time_zone, ${maxZoneLength + 1})`;

/** As `traitsText` or `localizedTraitsText`, with the time zone behind the place of the locale. */
export const zonedTraitsText = `ROW(${traitExpressions}, NULL, ${zoneExpression})::text`;
export const zonedLocalizedTraitsText = `ROW(${traitExpressions}, ${localeExpression}, ${zoneExpression})::text`;

/**
 * Fields of a row's text: empty is NULL; quotes and backslashes are doubled (PostgreSQL, 8.16.6).
 */
const rowField = /[,(](?:"((?:[^"\\]|""|\\.)*)"|([^,()"\\]*))/gs;

const fieldsOf = (text: string): (string | null)[] =>
  [...text.matchAll(rowField)].map(([, quoted, plain]) =>
    quoted === undefined
      ? plain || null
      : quoted.replaceAll(/""|\\(.)/gs, (pair, escaped) => escaped ?? pair[0]),
  );

/** Returns the locale in the text of `localizedTraitsText`, or of that with the time zone. */
export const localeOfTraits = (text: string): string | null =>
  fieldsOf(text)[Object.keys(expressions).length] ?? null;

/** Returns the time zone in the text of `zonedTraitsText` or `zonedLocalizedTraitsText`. */
export const zoneOfTraits = (text: string): string | null =>
  fieldsOf(text)[Object.keys(expressions).length + 1] ?? null;

/** Parses the text of `traitsText`, or one of those with more behind it. */
export function parseTraits(text: string): RoutingKey {
  const fields = fieldsOf(text);
  const [deviceType, vendor = null, deviceProfile = null, topic = null, teamId = null, ...has] =
    fields;
  return {
    device_type: deviceType ?? '',
    vendor,
    device_profile: deviceProfile,
    topic,
    team_id: teamId,
    has_token: has[0] === 't',
    has_registration: has[1] === 't',
    has_installation_id: has[2] === 't',
  };
}

/**
 * Condition over `installation` as SQL of the query compiler, never a client's text. The functions
 * below serve the dry run of a push, inside a READ ONLY transaction.
 */
export interface SqlCondition {
  text: string;
  values: unknown[];
}

/** Devices with the same routing traits, and their number. */
export interface DeviceGroup extends RoutingKey {
  devices: number;
}

/** Limit of groups in memory: clients choose profiles and topics. */
export const maxGroups = 20_000;

/** Returns the largest groups and the number of all devices; counts `most` devices at most. */
export async function countAudience(
  tx: Handle,
  condition: SqlCondition,
  most?: number,
): Promise<{ groups: DeviceGroup[]; devices: number }> {
  const limit = most === undefined ? '' : ` LIMIT ${most}`;
  const { rows } = await tx.query<DeviceGroup & { total: number }>(
    `SELECT ${traitColumns}, count(*) AS devices, (sum(count(*)) OVER ())::bigint AS total
       FROM (SELECT * FROM installation WHERE ${condition.text}${limit}) AS installation
      GROUP BY ${traitExpressions} ORDER BY devices DESC LIMIT ${maxGroups}`,
    condition.values,
  );
  return { groups: rows, devices: rows[0]?.total ?? 0 };
}

/**
 * Counts for each of several conditions the devices of an app (`$1`) that fail it alone: so many
 * more there would be without it. Reads all devices of the app, each condition once.
 */
export async function countUnmet(
  tx: Handle,
  conditions: string[],
  values: unknown[],
): Promise<number[]> {
  const tests = conditions.map((condition, i) => `(${condition}) IS TRUE AS c${i}`);
  const counts = conditions.map((_, i) => {
    const others = conditions.flatMap((_other, j) => (j === i ? [] : [`c${j}`]));
    return `count(*) FILTER (WHERE ${[`NOT c${i}`, ...others].join(' AND ')})`;
  });
  const met = await query(tx).value<number[]>(
    `SELECT ARRAY[${counts.join(', ')}]::integer[] AS counts
       FROM (SELECT ${tests.join(', ')} FROM installation WHERE app_id = $1 OFFSET 0) AS tested`,
    values,
  );
  return met ?? [];
}

/** Most values of one audience that are told apart: clients choose them. */
const maxLocales = 2000;
const maxZones = 1000;

/**
 * Counts devices by an expression, the most frequent value first. Devices without a value, and
 * those with one beyond the limit, are under null.
 */
async function countBy(
  tx: Handle,
  { text, values }: SqlCondition,
  { expression, limit }: { expression: string; limit: number },
): Promise<[value: string | null, devices: number][]> {
  const rows = await query(tx).rows<{ value: string | null; devices: number; total: number }>(
    `SELECT ${expression} AS value, count(*) AS devices, (sum(count(*)) OVER ())::bigint AS total
       FROM installation WHERE ${text} GROUP BY 1 ORDER BY devices DESC, 1 LIMIT ${limit}`,
    values,
  );
  const others = (rows[0]?.total ?? 0) - rows.reduce((sum, { devices }) => sum + devices, 0);
  const groups = rows.map(({ value, devices }): [string | null, number] => [value, devices]);
  return others > 0 ? [...groups, [null, others]] : groups;
}

/** Counts devices by their `locale`, as `countBy`. */
export async function countLocales(tx: Handle, condition: SqlCondition) {
  const groups = await countBy(tx, condition, { expression: localeExpression, limit: maxLocales });
  return groups.map(([locale, devices]) => ({ locale, devices }));
}

/** Devices with the same `timeZone`; null for those without one, or with one of too many. */
export interface ZoneGroup {
  zone: string | null;
  devices: number;
}

/** Counts devices by their time zone, as `countBy`. */
export async function countZones(tx: Handle, condition: SqlCondition): Promise<ZoneGroup[]> {
  const groups = await countBy(tx, condition, { expression: 'time_zone', limit: maxZones });
  return groups.map(([zone, devices]) => ({ zone, devices }));
}

/** Counts the devices that meet a condition. */
export const countDevices = (tx: Handle, condition: SqlCondition) =>
  query(tx).number(
    `SELECT count(*) AS n FROM installation WHERE ${condition.text}`,
    condition.values,
  );

/** Limit of device types of one app: clients choose them; a few are usual. */
const maxTypes = 100;

/** Lists the device types of an app with one index lookup each, whatever the number of devices. */
export const listDeviceTypes = (db: Handle, appId: string) =>
  query(db).column<string>(
    `WITH RECURSIVE found (type, n) AS (
       (SELECT device_type, 1 FROM installation WHERE app_id = $1 ORDER BY device_type LIMIT 1)
       UNION ALL
       SELECT (SELECT device_type FROM installation WHERE app_id = $1 AND device_type > found.type
                ORDER BY device_type LIMIT 1), n + 1
         FROM found WHERE found.type IS NOT NULL AND n < $2)
     SELECT type FROM found WHERE type IS NOT NULL`,
    [appId, maxTypes],
  );

/** Node of a query plan, without its conditions: those hold clients' values. */
export interface PlanNode {
  type: string;
  relation: string | undefined;
  index: string | undefined;
  rows: number;
  cost: number;
  hasFilter: boolean;
  steps: PlanNode[];
}

/** Plan of the server with the rows of the app; the coordinator shows it in place of its own. */
const remotePlan = z
  .object({
    Job: z.object({ Tasks: z.array(z.object({ 'Remote Plan': z.lazy(() => z.array(plans)) })) }),
  })
  .transform(({ Job }) => Job.Tasks[0]?.['Remote Plan'][0]?.[0]?.Plan);

/** Returns the name of a table or an index without the number of its shard. */
const withoutShard = (name: string | undefined): string | undefined =>
  name?.replace(/_\d{6,}$/, '');

const planNode: z.ZodType<PlanNode> = z
  .object({
    'Node Type': z.string(),
    'Relation Name': z.string().optional(),
    'Index Name': z.string().optional(),
    'Plan Rows': z.number(),
    'Total Cost': z.number(),
    Filter: z.unknown().optional(),
    Plans: z.lazy(() => z.array(planNode)).default([]),
    'Distributed Query': remotePlan.optional(),
  })
  .transform(
    (node) =>
      node['Distributed Query'] ?? {
        type: node['Node Type'],
        relation: withoutShard(node['Relation Name']),
        index: withoutShard(node['Index Name']),
        rows: node['Plan Rows'],
        cost: node['Total Cost'],
        hasFilter: node.Filter !== undefined,
        steps: node.Plans,
      },
  );

const plans = z.array(z.object({ Plan: planNode })).min(1);

/** Returns the plan of a statement (EXPLAIN without ANALYZE: does not run it). */
export async function explainStatement(tx: Handle, statement: SqlCondition): Promise<PlanNode> {
  const { rows } = await tx.query<{ 'QUERY PLAN': unknown }>(
    `EXPLAIN (FORMAT JSON) ${statement.text}`,
    statement.values,
  );
  const [first] = plans.parse(rows[0]?.['QUERY PLAN']);
  if (!first) throw new Error('the database returned no plan');
  return first.Plan;
}

/** Indexes with every row of an app: a scan of one with a filter reads the whole app. */
export const wholeAppIndexes: ReadonlySet<string> = new Set(['installation_pkey']);

/**
 * Returns the rows that a scan without a condition reads, by the statistics of the database: the
 * rows of the app if its index contains whole apps or the database is sharded, otherwise those of
 * the table.
 */
export async function estimateRows(tx: Handle, appId: string, scan: PlanNode): Promise<number> {
  const isOfApp = wholeAppIndexes.has(scan.index ?? '') || (await isSharded(tx));
  const statement = isOfApp
    ? { text: 'SELECT FROM installation WHERE app_id = $1', values: [appId] }
    : { text: 'SELECT FROM installation', values: [] };
  return (await explainStatement(tx, statement)).rows;
}

/** Counts the scheduled pushes of an app. */
export const countScheduled = (tx: Handle, appId: string) =>
  query(tx).number('SELECT count(*) AS n FROM scheduled_push WHERE app_id = $1', [appId]);

/** Returns recipients per second of the newest large finished push among the last hundred. */
export async function readPastRate(tx: Handle, appId: string): Promise<number | undefined> {
  const rate = await query(tx).value<number | null>(
    `SELECT devices / extract(epoch FROM finished_at - first_sent_at)::float8 AS pace
       FROM (SELECT * FROM notification WHERE app_id = $1 ORDER BY id DESC LIMIT 100) recent
      WHERE state = 'done' AND devices >= 1000 AND finished_at > first_sent_at ORDER BY id DESC LIMIT 1`,
    [appId],
  );
  return rate ?? undefined;
}

/** Devices of one type of an app, or of one vendor among them. */
export interface DeviceKind {
  appId: string;
  deviceType: string;
  /** Canonical label; null for the devices of all vendors and of none. */
  vendor: string | null;
}

/**
 * `min` makes the planner use the index; for EXISTS it may prefer a scan that ends at the first
 * row.
 */
const existing = new AppStatement(
  4,
  (
    andApp,
  ) => `SELECT k.place FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS k (app_id, device_type, vendor, place)
    WHERE CASE WHEN k.vendor IS NULL
               THEN (SELECT min(device_type) FROM installation
                      WHERE app_id = k.app_id${andApp('installation')} AND device_type >= k.device_type) = k.device_type
               ELSE (SELECT min(vendor) FROM installation
                      WHERE app_id = k.app_id${andApp('installation')} AND device_type = k.device_type AND vendor >= k.vendor) = k.vendor END`,
  { isPrepared: true },
);

/** Returns for each kind whether a device of it exists, with one index lookup. */
export async function haveDevices(db: Handle, kinds: readonly DeviceKind[]): Promise<boolean[]> {
  const parts = await existing.run<{ place: number }, DeviceKind>(db, kinds, (part) =>
    listsOf(part, 'appId', 'deviceType', 'vendor'),
  );
  const have = new Set(
    parts.flatMap(({ part, found }) => found.map(({ place }) => part[place - 1])),
  );
  return kinds.map((kind) => have.has(kind));
}

/** Columns with a unique index within an app. */
export const uniqueColumns = ['object_id', 'installation_id', 'device_token'] as const;

type UniqueColumn = (typeof uniqueColumns)[number];

/** Target of a push that names one installation by a unique member. */
export interface PointTarget {
  column: UniqueColumn;
  /** Stored texts that are equal to the member: the first one that is found counts. */
  names: readonly string[];
}

/** Point target of a push; its installation must be active since a time (`activeCondition`). */
export interface PointLookup extends PointTarget {
  appId: string;
  activeSince: Date;
}

/** Installation of a point target. */
export interface PointDevice {
  id: number;
  /** Its traits as one text, which `parseTraits` reads. */
  traits: string;
}

type PointRow = PointDevice & { appId: string; value: string };

/** A name of an installation that a lookup asks for. */
interface NamedLookup extends PointLookup {
  name: string;
}

/** The valid, active installations with a value of a column. */
const pointStatement = (column: UniqueColumn): AppStatement =>
  new AppStatement(
    4,
    (andApp) => `SELECT k.app_id AS "appId", k.value, i.id, i.traits
     FROM unnest($1::text[], $2::text[], $3::timestamptz[]) AS k (app_id, value, since)
    CROSS JOIN LATERAL (
      SELECT id, ${traitsText} AS traits FROM installation t
       WHERE t.app_id = k.app_id${andApp('t')} AND ${column} = k.value AND valid
         AND (updated_at >= k.since OR imported_at >= k.since) LIMIT 1) AS i`,
    { isPrepared: true },
  );

const pointStatements = {
  object_id: pointStatement('object_id'),
  installation_id: pointStatement('installation_id'),
  device_token: pointStatement('device_token'),
} satisfies Record<UniqueColumn, AppStatement>;

/** Finds the installations of many pushes with one statement per column; undefined for none. */
export async function findPointDevices(
  db: Handle,
  lookups: readonly PointLookup[],
): Promise<(PointDevice | undefined)[]> {
  const named = lookups.flatMap((lookup) => lookup.names.map((name) => ({ ...lookup, name })));
  const found = new Map<string, PointDevice>();
  for (const [column, ofColumn] of Map.groupBy(named, (lookup) => lookup.column))
    for (const part of await pointStatements[column].run<PointRow, NamedLookup>(
      db,
      ofColumn,
      valuesOf,
    ))
      for (const { appId, value, ...device } of part.found)
        found.set(keyOf(appId, column, value), device);
  return lookups.map(({ appId, column, names }) => {
    const name = names.find((one) => found.has(keyOf(appId, column, one)));
    return name === undefined ? undefined : found.get(keyOf(appId, column, name));
  });
}

const keyOf = (appId: string, column: string, value: string): string =>
  `${appId} ${column} ${value}`;

const valuesOf = (lookups: readonly NamedLookup[]): unknown[] =>
  listsOf(lookups, 'appId', 'name', 'activeSince');

/** Blanks at the ends of a value do not count. */
const trimmed = (text: string): string =>
  String.raw`nullif(btrim(left(btrim(${text}, E' \t\r\n'), ${maxValueChars}), E' \t\r\n'), '')`;

/** Returns the value of a field as text; NULL for none, an empty one, a list or an object. */
function valueSql(field: string, paths: (path: string[]) => string): string {
  const column = variableColumns.get(field);
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
const fieldValueStatements = new PreparedStatements();

/** Reads the values of variables of installations, by id; those that were deleted are missing. */
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

/** Counts the devices that meet a condition, and those that get the default of each variable. */
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

/** Devices of a sample: the newest of an app. */
const maxSampled = 2000;
/** Members, and values of one, in a reply; longer values are left out. */
const maxNames = 200;
const maxValues = 20;
const maxValueLength = 100;

/** Member of installations in a sample. */
export interface SampledField {
  name: string;
  /** JSON types of its values, or `__type` of typed ones. */
  types: string[];
  /** Its most frequent values with their share of the devices that have it. */
  values: { value: Json; share: number }[];
}

/** Built-in members whose values are suggested; not those that differ for each device. */
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
       SELECT m.key AS name, m.value FROM sample, jsonb_each(members) AS m WHERE starts_with(m.key, $2)),
     field AS (
       SELECT name, count(*) AS n, array_agg(DISTINCT coalesce(value ->> '__type', jsonb_typeof(value))) AS types
         FROM member GROUP BY name ORDER BY n DESC, name LIMIT ${maxNames}),
     found AS (
       SELECT m.name, e.value, count(*) AS n, row_number() OVER (PARTITION BY m.name ORDER BY count(*) DESC, e.value) AS place
         FROM member m JOIN field USING (name)
         CROSS JOIN LATERAL (
           SELECT m.value WHERE jsonb_typeof(m.value) <> 'array'
           UNION ALL
           SELECT jsonb_array_elements(m.value) WHERE jsonb_typeof(m.value) = 'array') AS e
        WHERE length(e.value::text) <= ${maxValueLength} AND jsonb_typeof(e.value) IN ('string', 'number', 'boolean')
        GROUP BY m.name, e.value)
     SELECT f.name, f.types,
            coalesce(jsonb_agg(jsonb_build_object('value', v.value, 'share', round(v.n / f.n::numeric, 3))
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
     SELECT channel AS value, round(count(*) / (SELECT count(*) FROM sample)::numeric, 3)::float8 AS share
       FROM sample, unnest(channels) AS channel WHERE starts_with(channel, $2)
      GROUP BY channel ORDER BY count(*) DESC, channel LIMIT ${maxNames}`,
    [appId, prefix],
  );

/** What the tables of the device channel and of receipts know of a device. */
interface DeviceState {
  /** Login to the device channel, and its process; null while it is not connected. */
  onlineSince: Date | null;
  node: string | null;
  /** Messages that wait for it, up to the limit of the query. */
  inbox: number;
  /** A gateway called its token invalid; the next push decides. */
  notice: { connector: string; at: Date; isSure: boolean } | null;
}

/** Reads the state of a device; counts at most `maxInbox` waiting messages. */
export async function readDeviceState(
  db: Handle,
  { appId, id }: { appId: string; id: number },
  maxInbox: number,
): Promise<DeviceState> {
  const { connector, at, isSure, ...state } = await query(db).one<
    Omit<DeviceState, 'notice'> & NoticeColumns
  >(
    `SELECT s.since AS "onlineSince", s.node_id AS node, n.connector, n.noted_at AS at, n.is_sure AS "isSure",
            (SELECT count(*) FROM (SELECT FROM channel_inbox i
                                    WHERE i.app_id = $1 AND i.installation = $2 LIMIT $3) AS waiting) AS inbox
       FROM (SELECT) AS one
       LEFT JOIN channel_session s ON s.app_id = $1 AND s.installation = $2
       LEFT JOIN dead_notice n ON n.app_id = $1 AND n.installation = $2`,
    [appId, id, maxInbox],
  );
  const notice =
    connector !== null && at !== null ? { connector, at, isSure: isSure === true } : null;
  return { ...state, notice };
}

type NoticeColumns = { connector: string | null; at: Date | null; isSure: boolean | null };

/** Devices and users that are counted; an app with more has at least so many. */
export const maxCounted = 1_000_000;

/** Devices of an app by where they come from, and users by what they need of the service. */
export interface Arrivals {
  /** Devices that an import wrote. */
  imported: number;
  /** Devices among them whose app has called this service since. */
  seen: number;
  /** Devices that registered here by themselves. */
  registered: number;
  users: number;
  withEmail: number;
  withPhone: number;
}

/** Counts the devices and users of an app; at most `maxCounted` of each. */
export const countArrivals = (tx: Handle, appId: string) =>
  query(tx).one<Arrivals>(
    `SELECT d.*, u.* FROM
       (SELECT count(imported_at) AS imported, count(*) FILTER (WHERE updated_at > imported_at) AS seen,
               count(*) FILTER (WHERE imported_at IS NULL) AS registered
          FROM (SELECT imported_at, updated_at FROM installation WHERE app_id = $1 LIMIT $2) AS device) AS d,
       (SELECT count(*) AS users, count(email) AS "withEmail", count(mobile_phone_number) AS "withPhone"
          FROM (SELECT email, mobile_phone_number FROM app_user WHERE app_id = $1 LIMIT $2) AS one) AS u`,
    [appId, maxCounted],
  );

/**
 * Returns the days in UTC (`YYYY-MM-DD`) on which devices called last, oldest first, with the
 * number of imported devices (`moved`) and of those that registered here. Reads `maxCounted`
 * devices at most.
 */
export const listArrivalDays = (tx: Handle, appId: string, since: Date) =>
  query(tx).rows<{ day: string; moved: number; registered: number }>(
    `SELECT to_char(updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, count(imported_at) AS moved,
            count(*) FILTER (WHERE imported_at IS NULL) AS registered
       FROM (SELECT imported_at, updated_at FROM installation WHERE app_id = $1 LIMIT $2) AS device
      WHERE updated_at >= $3 AND (imported_at IS NULL OR updated_at > imported_at)
      GROUP BY 1 ORDER BY 1`,
    [appId, maxCounted, since],
  );
