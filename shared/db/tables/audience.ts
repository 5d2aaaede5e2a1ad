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

/**
 * SQL expressions of `RoutingKey`. FCM has two labels, and the stored spelling selects one of
 * them.
 */
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

/** The same expressions for GROUP BY, where the names alone would mean the columns of the table. */
export const routingExpressions = Object.values(expressions).join(', ');

/**
 * The routing key of a device: the expressions as one text, in PostgreSQL's text format of a row.
 * Reading one column is several times as fast as reading eight, and the text can be the key of a
 * map.
 */
export const routingKeyText = `ROW(${routingExpressions})::text`;

/** SQL of an installation's `locale`. Longer values are cut and have no meaning. */
export const localeExpression = `left(fields ->> 'locale', ${maxLocaleLength + 1})`;

/** Like `routingKeyText`, followed by the locale. */
export const localizedRoutingKeyText = `ROW(${routingExpressions}, ${localeExpression})::text`;

/** SQL of an installation's `timeZone`. Longer values are cut and have no meaning. */
export const zoneExpression = `left(time_zone, ${maxZoneLength + 1})`;

/** Like `routingKeyText` or `localizedRoutingKeyText`, followed by the time zone. */
export const zonedRoutingKeyText = `ROW(${routingExpressions}, NULL, ${zoneExpression})::text`;
export const zonedLocalizedRoutingKeyText = `ROW(${routingExpressions}, ${localeExpression}, ${zoneExpression})::text`;

/**
 * Fields in the text of a row. An empty field is NULL, and quotes and backslashes are doubled
 * (PostgreSQL, 8.16.6).
 */
const rowField = /[,(](?:"((?:[^"\\]|""|\\.)*)"|([^,()"\\]*))/gs;

const fieldsOf = (text: string): (string | null)[] =>
  [...text.matchAll(rowField)].map(([, quoted, plain]) =>
    quoted === undefined
      ? plain || null
      : quoted.replaceAll(/""|\\(.)/gs, (pair, escaped) => escaped ?? pair[0]),
  );

/** Returns the locale in a text of `localizedRoutingKeyText` or `zonedLocalizedRoutingKeyText`. */
export const localeOfRoutingKey = (text: string): string | null =>
  fieldsOf(text)[Object.keys(expressions).length] ?? null;

/** Returns the time zone in a text of `zonedRoutingKeyText` or `zonedLocalizedRoutingKeyText`. */
export const zoneOfRoutingKey = (text: string): string | null =>
  fieldsOf(text)[Object.keys(expressions).length + 1] ?? null;

/** Routing key of the channel of a broadcast, which is no device. */
export const channelRouting: RoutingKey = {
  device_type: 'ios',
  vendor: null,
  device_profile: null,
  topic: null,
  team_id: null,
  has_token: true,
  has_registration: false,
  has_installation_id: false,
};

/** The same routing key as text. */
export const channelRoutingKey = '(ios,,,,,t,f,f)';

/** Parses a text of `routingKeyText`, or of the variants with a locale or time zone. */
export function parseRoutingKey(text: string): RoutingKey {
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
 * Condition on `installation` as SQL from the query compiler, never text from a client. The
 * functions below serve the dry run of a push, in a READ ONLY transaction.
 */
export interface SqlCondition {
  text: string;
  values: unknown[];
}

/** Devices that share a routing key, and their number. */
export interface DeviceGroup extends RoutingKey {
  devices: number;
}

/** Maximum groups in memory. Clients choose profiles and topics, so their number is unlimited. */
export const maxGroups = 20_000;

/**
 * Returns the largest groups and the number of all devices. Counts at most `maxCounted` devices.
 */
export async function countAudience(
  tx: Handle,
  condition: SqlCondition,
  maxCounted?: number,
): Promise<{ groups: DeviceGroup[]; devices: number }> {
  const limit = maxCounted === undefined ? '' : ` LIMIT ${maxCounted}`;
  const { rows } = await tx.query<DeviceGroup & { total: number }>(
    `SELECT ${traitColumns}, count(*) AS devices, (sum(count(*)) OVER ())::bigint AS total
       FROM (SELECT * FROM installation WHERE ${condition.text}${limit}) AS installation
      GROUP BY ${routingExpressions} ORDER BY devices DESC LIMIT ${maxGroups}`,
    condition.values,
  );
  return { groups: rows, devices: rows[0]?.total ?? 0 };
}

/**
 * For each of several conditions, counts the devices of an app (`$1`) that fail only this
 * condition. The audience would grow by this number without the condition. Reads all devices of the
 * app, and checks each condition once.
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

/** Maximum different values in one audience. Clients choose the values. */
const maxLocales = 2000;
const maxZones = 1000;

/**
 * Counts devices by an expression, most frequent value first. Devices without a value, or with a
 * value beyond the limit, are counted under null.
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

/** Counts devices by their `locale` (`countBy`). */
export async function countLocales(tx: Handle, condition: SqlCondition) {
  const groups = await countBy(tx, condition, { expression: localeExpression, limit: maxLocales });
  return groups.map(([locale, devices]) => ({ locale, devices }));
}

/**
 * Devices with the same `timeZone`. Null: devices without a time zone, or with a value beyond the
 * limit.
 */
export interface ZoneGroup {
  zone: string | null;
  devices: number;
}

/** Counts devices by their time zone (`countBy`). */
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

/** Counts the valid devices of an app, but no further than `limit`. */
export const countValidUpTo = (db: Handle, appId: string, limit: number) =>
  query(db).number(
    `SELECT count(*) AS n
       FROM (SELECT FROM installation WHERE app_id = $1 AND valid LIMIT $2) AS counted`,
    [appId, limit],
  );

/** Maximum device types of one app. Clients choose them, and apps usually have a few. */
const maxTypes = 100;

/**
 * Lists the device types of an app. Each type takes one index lookup, whatever the number of
 * devices.
 */
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

/** Node of a query plan, without its conditions, which contain values of clients. */
export interface PlanNode {
  type: string;
  relation: string | undefined;
  index: string | undefined;
  rows: number;
  cost: number;
  hasFilter: boolean;
  steps: PlanNode[];
}

/**
 * Plan of the server that stores the rows of the app. On a sharded database EXPLAIN shows it inside
 * the coordinator's plan.
 */
const remotePlan = z
  .object({
    Job: z.object({ Tasks: z.array(z.object({ 'Remote Plan': z.lazy(() => z.array(plans)) })) }),
  })
  .transform(({ Job }) => Job.Tasks[0]?.['Remote Plan'][0]?.[0]?.Plan);

/** Returns the name of a table or an index without its shard number. */
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

/** Returns the plan of a statement without running it (EXPLAIN without ANALYZE). */
export async function explainStatement(tx: Handle, statement: SqlCondition): Promise<PlanNode> {
  const { rows } = await tx.query<{ 'QUERY PLAN': unknown }>(
    `EXPLAIN (FORMAT JSON) ${statement.text}`,
    statement.values,
  );
  const [first] = plans.parse(rows[0]?.['QUERY PLAN']);
  if (!first) throw new Error('the database returned no plan');
  return first.Plan;
}

/**
 * Indexes that contain every row of an app. Scanning one of them with a filter reads the whole app.
 */
export const wholeAppIndexes: ReadonlySet<string> = new Set(['installation_pkey']);

/**
 * Returns the number of rows that a scan without a condition reads, from PostgreSQL's statistics.
 * If the index contains whole apps, or the database is sharded, these are the rows of the app,
 * otherwise the rows of the table.
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

/**
 * Returns the recipients per second of the newest large finished push among the last hundred
 * pushes.
 */
export async function readPastRate(tx: Handle, appId: string): Promise<number | undefined> {
  const rate = await query(tx).value<number | null>(
    `SELECT devices / extract(epoch FROM finished_at - first_sent_at)::float8 AS pace
       FROM (SELECT * FROM notification WHERE app_id = $1 ORDER BY id DESC LIMIT 100) recent
      WHERE state = 'done' AND devices >= 1000 AND finished_at > first_sent_at ORDER BY id DESC
        LIMIT 1`,
    [appId],
  );
  return rate ?? undefined;
}

/** A device type of an app, optionally of one vendor only. */
export interface DeviceKind {
  appId: string;
  deviceType: string;
  /** Canonical name of the vendor; null for all devices, with or without a vendor. */
  vendor: string | null;
}

/**
 * `min` makes PostgreSQL use the index. With EXISTS it may prefer a scan that ends at the first
 * row.
 */
const existing = new AppStatement(
  4,
  (
    andApp,
  ) => `SELECT k.place FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS k (app_id,
    device_type, vendor, place)
    WHERE CASE WHEN k.vendor IS NULL
               THEN (SELECT min(device_type) FROM installation
                      WHERE app_id = k.app_id${andApp('installation')}
                        AND device_type >= k.device_type) = k.device_type
               ELSE (SELECT min(vendor) FROM installation
                      WHERE app_id = k.app_id${andApp('installation')}
                        AND device_type = k.device_type AND vendor >= k.vendor) = k.vendor END`,
  { isPrepared: true },
);

/** Returns for each kind whether a device exists. Each kind takes one index lookup. */
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

/** Target of a push to the one installation that a unique member names. */
export interface PointTarget {
  column: UniqueColumn;
  /** Stored spellings that equal the member. The first one that is found counts. */
  storedForms: readonly string[];
}

/**
 * Point target of a push, and the time since which its installation must have been active
 * (`activeCondition`).
 */
export interface PointLookup extends PointTarget {
  appId: string;
  activeSince: Date;
}

/** Installation of a point target. */
export interface PointDevice {
  id: number;
  /** Routing key, which `parseRoutingKey` reads. */
  routingKey: string;
}

type PointRow = PointDevice & { appId: string; value: string };

/** A value of a unique column that a lookup searches for. */
interface NamedLookup extends PointLookup {
  name: string;
}

/** Finds the valid, active installations with given values of a column. */
const pointStatement = (column: UniqueColumn): AppStatement =>
  new AppStatement(
    4,
    (andApp) => `SELECT k.app_id AS "appId", k.value, i.id, i."routingKey"
     FROM unnest($1::text[], $2::text[], $3::timestamptz[]) AS k (app_id, value, since)
    CROSS JOIN LATERAL (
      SELECT id, ${routingKeyText} AS "routingKey" FROM installation t
       WHERE t.app_id = k.app_id${andApp('t')} AND ${column} = k.value AND valid
         AND (updated_at >= k.since OR imported_at >= k.since) LIMIT 1) AS i`,
    { isPrepared: true },
  );

const pointStatements = {
  object_id: pointStatement('object_id'),
  installation_id: pointStatement('installation_id'),
  device_token: pointStatement('device_token'),
} satisfies Record<UniqueColumn, AppStatement>;

/**
 * Finds the installations of many pushes with one statement per column. Undefined for a push
 * without an installation.
 */
export async function findPointDevices(
  db: Handle,
  lookups: readonly PointLookup[],
): Promise<(PointDevice | undefined)[]> {
  const named = lookups.flatMap((lookup) =>
    lookup.storedForms.map((name) => ({ ...lookup, name })),
  );
  const found = new Map<string, PointDevice>();
  for (const [column, ofColumn] of Map.groupBy(named, (lookup) => lookup.column))
    for (const part of await pointStatements[column].run<PointRow, NamedLookup>(
      db,
      ofColumn,
      valuesOf,
    ))
      for (const { appId, value, ...device } of part.found)
        found.set(keyOf(appId, column, value), device);
  return lookups.map(({ appId, column, storedForms }) => {
    const name = storedForms.find((one) => found.has(keyOf(appId, column, one)));
    return name === undefined ? undefined : found.get(keyOf(appId, column, name));
  });
}

const keyOf = (appId: string, column: string, value: string): string =>
  `${appId} ${column} ${value}`;

const valuesOf = (lookups: readonly NamedLookup[]): unknown[] =>
  listsOf(lookups, 'appId', 'name', 'activeSince');

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

/** State of a device in the tables of the device channel and of receipts. */
interface DeviceState {
  /** Time of its login to the device channel, and its api process; null if it is not connected. */
  onlineSince: Date | null;
  node: string | null;
  /** Number of messages that wait for the device, up to the limit of the query. */
  inbox: number;
  /** True if a gateway reported its token as invalid. The next push decides. */
  notice: { connector: string; at: Date; isSure: boolean } | null;
}

/** Reads the state of a device. Counts at most `maxInbox` waiting messages. */
export async function readDeviceState(
  db: Handle,
  { appId, id }: { appId: string; id: number },
  maxInbox: number,
): Promise<DeviceState> {
  const { connector, at, isSure, ...state } = await query(db).one<
    Omit<DeviceState, 'notice'> & NoticeColumns
  >(
    `SELECT s.since AS "onlineSince", s.node_id AS node, n.connector, n.noted_at AS at,
            n.is_sure AS "isSure", (SELECT count(*) FROM (SELECT FROM channel_inbox i
                                    WHERE i.app_id = $1 AND i.installation = $2
                                      LIMIT $3) AS waiting) AS inbox
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

/** Maximum devices and users that are counted. */
export const maxCounted = 1_000_000;

/** Devices of an app by origin, and users by what they still need. */
export interface Arrivals {
  /** Devices that an import wrote. */
  imported: number;
  /** Imported devices whose app has called Carillon since the import. */
  seen: number;
  /** Devices that registered at Carillon themselves. */
  registered: number;
  users: number;
  withEmail: number;
  withPhone: number;
}

/** Counts the devices and users of an app, at most `maxCounted` of each. */
export const countArrivals = (tx: Handle, appId: string) =>
  query(tx).one<Arrivals>(
    `SELECT d.*, u.* FROM
       (SELECT count(imported_at) AS imported, count(*)
       FILTER (WHERE updated_at > imported_at) AS seen,
               count(*) FILTER (WHERE imported_at IS NULL) AS registered
          FROM (SELECT imported_at, updated_at FROM installation WHERE app_id = $1
            LIMIT $2) AS device) AS d,
       (SELECT count(*) AS users, count(email) AS "withEmail",
       count(mobile_phone_number) AS "withPhone"
          FROM (SELECT email, mobile_phone_number FROM app_user WHERE app_id = $1
            LIMIT $2) AS one) AS u`,
    [appId, maxCounted],
  );

/**
 * Returns the days (UTC, `YYYY-MM-DD`) on which devices last called, oldest first, each with the
 * number of imported devices (`moved`) and of devices that registered at Carillon. Reads at most
 * `maxCounted` devices.
 */
export const listArrivalDays = (tx: Handle, appId: string, since: Date) =>
  query(tx).rows<{ day: string; moved: number; registered: number }>(
    `SELECT to_char(updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day,
            count(imported_at) AS moved, count(*) FILTER (WHERE imported_at IS NULL) AS registered
       FROM (SELECT imported_at, updated_at FROM installation WHERE app_id = $1 LIMIT $2) AS device
      WHERE updated_at >= $3 AND (imported_at IS NULL OR updated_at > imported_at)
      GROUP BY 1 ORDER BY 1`,
    [appId, maxCounted, since],
  );
