import type { Handle } from '../pool.ts';
import { listsOf } from '../query.ts';
import { AppStatement } from '../sharding.ts';
import { routingKeyText } from './routing-keys.ts';

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
      SELECT id, ${routingKeyText()} AS "routingKey" FROM installation t
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
    for (const { appId, value, ...device } of await pointStatements[column].run<
      PointRow,
      NamedLookup
    >(db, ofColumn, valuesOf))
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
