import { type Handle, parseIdList } from '../pool.ts';
import { membersOf, PreparedStatements } from '../prepared.ts';
import { listsOf, query, sweepOf } from '../query.ts';
import { AppStatement } from '../sharding.ts';
import type { SqlCondition } from './audience.ts';
import { type Batch, type BatchKey, type BatchRow, batchColumns, toBatch } from './batches.ts';
import type { PushKey } from './pushes.ts';
import { today, utcDay } from './usage.ts';

/** Installations that differ only by id and token. The lists have the same order. */
export interface RecipientGroup {
  deviceType: string;
  vendor: string | null;
  topic: string | null;
  teamId: string | null;
  ids: number[];
  /** Token of each installation; empty if it has none. */
  tokens: string[];
  /** When each installation was last saved. `savedAtMs` reads it. */
  savedAt: Buffer;
}

/** A batch with its recipients that still exist. */
export interface LoadedBatch {
  batch: Batch;
  groups: RecipientGroup[];
}

/**
 * A row of the result: a group of recipients, and the columns of its batch. The large columns of
 * the batch are null except in its first row. If none of its recipients exists, a batch has one row
 * without a group.
 */
type GroupRow = BatchRow &
  Omit<RecipientGroup, 'ids' | 'tokens'> & {
    place: number | null;
    ids: string;
    tokens: string;
  };

/** Tokens of gateways never contain it. In other tokens it is replaced by a blank. */
const tokenSeparator = '\n';

/**
 * Reads batches with their recipients. Returns undefined for a batch that was deleted. One row per
 * group costs this process much less CPU time than one row per installation.
 */
export async function loadBatches(
  db: Handle,
  keys: readonly BatchKey[],
  tokenField: TokenField,
): Promise<(LoadedBatch | undefined)[]> {
  const rows = await loadStatements[tokenField].run<GroupRow, BatchKey>(db, keys, (part) =>
    listsOf(part, 'appId', 'batchId'),
  );
  const found = new Map<number, LoadedBatch>();
  for (const row of rows) {
    const { place, deviceType, vendor, topic, teamId, savedAt } = row;
    const loaded = found.get(row.id) ?? { batch: toBatch(row), groups: [] };
    found.set(row.id, loaded);
    if (place === null) continue;
    const lists = { ids: parseIdList(row.ids), tokens: row.tokens.split(tokenSeparator) };
    loaded.groups.push({ deviceType, vendor, topic, teamId, savedAt, ...lists });
  }
  return keys.map(({ batchId }) => found.get(batchId));
}

/** Prepared, because planning the statement takes as long as reading the rows. */
const loadStatement = (token: string): AppStatement =>
  new AppStatement(
    3,
    (andApp) => `SELECT ${membersOf('b', batchColumns.short)},
      ${membersOf('r', batchColumns.ofRecipients)}, g.*
       FROM unnest($1::text[], $2::bigint[]) AS k (app_id, id)
       JOIN push_batch b ON b.app_id = k.app_id AND b.id = k.id${andApp('b')}
       LEFT JOIN LATERAL (
        SELECT row_number() OVER ()::int AS place, device_type AS "deviceType",
               vendor_name AS vendor, topic, team_id AS "teamId", string_agg(id::text, ',') AS ids,
               string_agg(coalesce(replace(${token}, '${tokenSeparator}', ' '), ''),
                          '${tokenSeparator}') AS tokens,
               string_agg(timestamptz_send(updated_at), '') AS "savedAt"
          FROM installation i WHERE i.app_id = b.app_id AND i.id = ANY(b.recipients)${andApp('i')}
         GROUP BY device_type, vendor_name, topic, team_id) AS g ON true
       LEFT JOIN LATERAL (SELECT b.recipients, b.badges, b.settled, b.moved, b.sent_by) AS r
         ON coalesce(g.place, 1) = 1
      ORDER BY b.id, g.place`,
    { isPrepared: true },
  );

/** Statements by the kind of token that a connector uses. */
const loadStatements = {
  deviceToken: loadStatement('device_token'),
  registrationId: loadStatement('registration_id'),
  installationId: loadStatement('installation_id'),
  subscription: loadStatement("registration_id || '#' || subscription_keys"),
};

export type TokenField = keyof typeof loadStatements;

/** PostgreSQL stores a time as microseconds since 2000-01-01 in eight bytes. */
const timestampBytes = 8;
const epochOffsetMs = Date.UTC(2000, 0, 1);

/** Returns when the installation at an index of a group was last saved, in epoch ms. */
export const savedAtMs = ({ savedAt }: RecipientGroup, index: number): number =>
  Number(savedAt.readBigInt64BE(index * timestampBytes) / 1000n) + epochOffsetMs;

const deviceDayStatements = new PreparedStatements();

/**
 * Sorted, so that two pushes to the same devices cannot deadlock. The cap is part of the text,
 * because Citus passes no parameters to the conflict clause of an INSERT … SELECT.
 */
const chargeText = (cap: number): string =>
  `INSERT INTO device_day AS d (day, app_id, installation, pushes)
   SELECT ${today}, $1, i.id, 1 FROM unnest($2::bigint[]) AS i (id) ORDER BY i.id
   ON CONFLICT (day, app_id, installation) DO UPDATE SET pushes = d.pushes + 1
     WHERE d.pushes < ${Math.trunc(cap)}
   RETURNING installation`;

/**
 * Counts a push for each installation that had fewer than `cap` pushes today. Returns these
 * installations. One statement reads and counts, so all dispatchers together stay within the cap.
 */
export const chargeDevices = (
  tx: Handle,
  appId: string,
  { ids, cap }: { ids: readonly number[]; cap: number },
) =>
  query(tx).column<number>(deviceDayStatements.of(chargeText(cap)), [appId, `{${ids.join(',')}}`]);

/** Counts the installations of a condition that had `cap` pushes today. */
export function countCappedDevices(
  tx: Handle,
  { text, values }: SqlCondition,
  { appId, cap }: { appId: string; cap: number },
): Promise<number> {
  const n = values.length;
  return query(tx).number(
    `SELECT count(*) AS n FROM device_day
      WHERE day = ${today} AND app_id = $${n + 1} AND pushes >= $${n + 2}
        AND installation IN (SELECT id FROM installation WHERE ${text})`,
    [...values, appId, cap],
  );
}

/** Returns how many pushes of today count for an installation. */
export const readDeviceDay = (db: Handle, appId: string, installation: number) =>
  query(db).number(
    `SELECT pushes FROM device_day WHERE day = ${today} AND app_id = $1 AND installation = $2`,
    [appId, installation],
  );

/** Deletes days before `before`. */
export const deleteOldDeviceDays = sweepOf({
  table: 'device_day',
  key: ['day', 'app_id', 'installation'],
  column: 'day',
  bound: utcDay,
});

/** A profile that recent pushes used. */
export interface RecentProfile {
  appId: string;
  connector: string;
  profile: string;
  prod: 'dev' | 'prod';
}

/** Maximum recent pushes, and batches of each, that are read. An estimate is sufficient. */
const pushesRead = 1000;
const batchesRead = 20;

/** Returns the profiles of the pushes since a time, most recently used first. */
export async function findRecentProfiles(
  db: Handle,
  since: { sinceMs: number; limit: number },
): Promise<RecentProfile[]> {
  const pushes = await query(db).rows<PushKey>(
    `SELECT app_id AS "appId", id FROM notification
      WHERE created_at > to_timestamp($1::float8 / 1000) ORDER BY created_at DESC
        LIMIT ${pushesRead}`,
    [since.sinceMs],
  );
  const found: (RecentProfile & { last: Date })[] = [];
  // One statement for each app, because Citus can only join the batches of one app.
  for (const [appId, ofApp] of [...Map.groupBy(pushes, (push) => push.appId)].slice(
    0,
    since.limit,
  )) {
    const ids = ofApp.map(({ id }) => id);
    found.push(
      ...(await query(db).rows<RecentProfile & { last: Date }>(profilesOfPushes, [appId, ids])),
    );
  }
  found.sort((one, other) => other.last.getTime() - one.last.getTime());
  return found
    .slice(0, since.limit)
    .map(({ appId, connector, profile, prod }) => ({ appId, connector, profile, prod }));
}

const profilesOfPushes = `
  SELECT n.app_id AS "appId", b.connector, b.profile, n.prod, max(n.created_at) AS last
    FROM notification n,
         LATERAL (SELECT connector, profile FROM push_batch
                   WHERE app_id = $1 AND push_id = n.id LIMIT ${batchesRead}) AS b
   WHERE n.app_id = $1 AND n.id = ANY($2::bigint[])
   GROUP BY n.app_id, b.connector, b.profile, n.prod`;
