import type { RoutingKey } from '../../domain/installations/installation.ts';
import type { Handle } from '../pool.ts';
import { listsOf, query } from '../query.ts';
import { AppStatement } from '../sharding.ts';
import { localeExpression, routingExpressions, traitColumns } from './routing-keys.ts';

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
  5,
  (andApp) => `SELECT k.place
     FROM unnest($1::text[], $2::text[], $3::text[], $4::int[])
          AS k (app_id, device_type, vendor, place)
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
  const placed = kinds.map((kind, place) => ({ ...kind, place }));
  const found = await existing.run<{ place: number }, (typeof placed)[number]>(db, placed, (part) =>
    listsOf(part, 'appId', 'deviceType', 'vendor', 'place'),
  );
  const have = new Set(found.map(({ place }) => place));
  return kinds.map((_, place) => have.has(place));
}

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
