import type { Handle } from '../../pool.ts';
import { AppStatement } from '../../sharding.ts';
import { traitsText } from './traits.ts';

/** Columns with a unique index within an app. */
export const uniqueColumns = ['object_id', 'installation_id', 'device_token'] as const;

type UniqueColumn = (typeof uniqueColumns)[number];

/** Target of a push that names one installation by a unique member. */
export interface PointTarget {
  column: UniqueColumn;
  /** Stored texts that are equal to the member: the first one that is found counts. */
  names: readonly string[];
}

/** Point target of one push, and since when its installation must have been active (`activeCondition`). */
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

interface PointRow extends PointDevice {
  app_id: string;
  value: string;
}

/** A name of an installation that a lookup asks for. */
interface NamedLookup extends PointLookup {
  name: string;
}

/** The valid, active installations with a value of a column. */
const pointStatement = (column: UniqueColumn): AppStatement =>
  new AppStatement(
    4,
    (andApp) => `SELECT k.app_id, k.value, i.id, i.traits
     FROM unnest($1::text[], $2::text[], $3::timestamptz[]) AS k (app_id, value, since)
    CROSS JOIN LATERAL (
      SELECT id, ${traitsText} AS traits FROM installation t
       WHERE t.app_id = k.app_id${andApp('t')} AND ${column} = k.value AND valid
         AND (updated_at >= k.since OR imported_at >= k.since) LIMIT 1) AS i`,
    { isPrepared: true },
  );

const statements = {
  object_id: pointStatement('object_id'),
  installation_id: pointStatement('installation_id'),
  device_token: pointStatement('device_token'),
} satisfies Record<UniqueColumn, AppStatement>;

/** Finds the installations of many pushes in one statement for each column; undefined for a push without one. */
export async function findPointDevices(
  db: Handle,
  lookups: readonly PointLookup[],
): Promise<(PointDevice | undefined)[]> {
  const named = lookups.flatMap((lookup) => lookup.names.map((name) => ({ ...lookup, name })));
  const found = new Map<string, PointDevice>();
  for (const [column, ofColumn] of Map.groupBy(named, (lookup) => lookup.column))
    for (const part of await statements[column].run<PointRow, NamedLookup>(db, ofColumn, valuesOf))
      for (const { app_id, value, id, traits } of part.found)
        found.set(keyOf(app_id, column, value), { id, traits });
  return lookups.map(({ appId, column, names }) => {
    const name = names.find((one) => found.has(keyOf(appId, column, one)));
    return name === undefined ? undefined : found.get(keyOf(appId, column, name));
  });
}

const keyOf = (appId: string, column: string, value: string): string => `${appId} ${column} ${value}`;

const valuesOf = (lookups: readonly NamedLookup[]): unknown[] => [
  lookups.map(({ appId }) => appId),
  lookups.map(({ name }) => name),
  lookups.map((lookup) => lookup.activeSince),
];
