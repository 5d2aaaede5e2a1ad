import type { Handle } from '../../db/pool.ts';
import { PreparedStatements } from '../../db/prepared.ts';
import { traitsText } from '../../db/tables/installations/traits.ts';
import { namesOfToken } from '../../domain/installations/identity.ts';
import type { PushOrder } from '../../domain/pushes/push.ts';
import type { Condition } from '../condition.ts';
import { parseWhere } from '../parse/where.ts';
import { installationClass } from '../schema/classes.ts';
import { masterViewer } from '../viewer.ts';

/** Columns with a unique index within an app. */
export const uniqueColumns = ['object_id', 'installation_id', 'device_token'] as const;

type UniqueColumn = (typeof uniqueColumns)[number];

/** Target of a push that names one installation by a unique member. */
export interface PointTarget {
  column: UniqueColumn;
  /** Stored texts that are equal to the member: the first one that is found counts. */
  names: readonly string[];
}

/** Returns the point target of a push; undefined for any other condition, which needs a scan. */
export function pointTarget(appId: string, { target }: PushOrder): PointTarget | undefined {
  if (target.kind === 'devices') {
    const [value, ...others] = target.deviceIds;
    const isPoint = target.deviceType === 'ios' && value !== undefined && others.length === 0;
    return isPoint ? { column: 'device_token', names: namesOfToken(value) } : undefined;
  }
  if (target.channels && target.channels.length > 0) return undefined;
  return pointOf(parseWhere(target.where, installationClass, masterViewer(appId)));
}

function pointOf(condition: Condition): PointTarget | undefined {
  if (condition.kind === 'and') {
    const [only, ...others] = condition.all;
    return only && others.length === 0 ? pointOf(only) : undefined;
  }
  if (condition.kind !== 'field' || condition.test.op !== 'equal' || !('column' in condition.field))
    return undefined;
  const { sql } = condition.field.column;
  const column = uniqueColumns.find((name) => name === sql);
  const { value } = condition.test;
  if (!column || typeof value !== 'string') return undefined;
  return { column, names: column === 'device_token' ? namesOfToken(value) : [value] };
}

/** Point target of one push, and since when its installation must have been active (`activeCondition`). */
export interface PointLookup extends PointTarget {
  appId: string;
  activeSince: Date;
}

/** Installation of a point target, with all that planning and sending read of it. */
export interface PointDevice {
  id: number;
  /** Its traits as one text, which `parseTraits` reads. */
  traits: string;
  deviceType: string;
  /** In the installation's spelling. */
  vendor: string | null;
  topic: string | null;
  teamId: string | null;
  deviceToken: string | null;
  registrationId: string | null;
  installationId: string | null;
  /** `updated_at` in PostgreSQL's binary form, as `savedAtMs` reads it. */
  savedAt: Buffer;
}

/** One for each set of columns. */
const statements = new PreparedStatements();

/** Finds the valid, active installations of many pushes in one statement; undefined for a push without one. */
export async function findPointDevices(
  db: Handle,
  lookups: readonly PointLookup[],
): Promise<(PointDevice | undefined)[]> {
  const found: (PointDevice | undefined)[] = new Array(lookups.length).fill(undefined);
  const named = lookups.flatMap((lookup, at) => lookup.names.map((name) => ({ ...lookup, name, at })));
  const columns = uniqueColumns.filter((name) => lookups.some(({ column }) => column === name));
  const { rows } = await db.query<PointDevice & { place: number }>(
    statements.of(columns.map(pointSql).join(' UNION ALL ')),
    [
      named.map(({ appId }) => appId),
      named.map(({ column }) => column),
      named.map(({ name }) => name),
      named.map(({ activeSince }) => activeSince),
    ],
  );
  const byPlace = new Map(rows.map(({ place, ...device }) => [place - 1, device]));
  for (const [i, { at }] of named.entries()) found[at] ??= byPlace.get(i);
  return found;
}

const pointSql = (column: UniqueColumn): string =>
  `SELECT p.place, i.id, i.traits, i.device_type AS "deviceType", i.vendor_name AS vendor, i.topic, i.team_id AS "teamId",
          i.device_token AS "deviceToken", i.registration_id AS "registrationId",
          i.installation_id AS "installationId", timestamptz_send(i.updated_at) AS "savedAt"
     FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[]) WITH ORDINALITY
            AS p (app_id, member, value, since, place)
     JOIN LATERAL (SELECT *, ${traitsText} AS traits FROM installation
                    WHERE app_id = p.app_id AND ${column} = p.value AND valid
                      AND (updated_at >= p.since OR imported_at >= p.since) LIMIT 1) AS i ON true
    WHERE p.member = '${column}'`;
