import type {
  ActivityTokenKind,
  ChannelStorage,
  LiveActivity,
} from '../../domain/pushes/live-activity.ts';
import type { Handle } from '../pool.ts';
import { lockName, query, sweepOf } from '../query.ts';
import { lockAppRow } from './apps.ts';

/** Tokens of Live Activities, the clocks of activities, and broadcast channels. */

/** The tokens of one activity or one type of attributes. */
export interface ActivityTokens {
  appId: string;
  kind: ActivityTokenKind;
  name: string;
}

/** A token that a device reports. */
interface ReportedToken extends ActivityTokens {
  installation: number;
  token: string;
}

/** Maximum tokens of one kind that an installation can have. */
export const maxTokensOfDevice = 50;
/** Maximum types of attributes of an app. */
export const maxTypesOfApp = 200;

/**
 * Returns which limit a new token would exceed; null if none; undefined if the installation was
 * deleted. A report of a token that replaces another token never exceeds a limit. Locks the
 * installation until `tx` ends, and the app before a new type, so that the limits are exact.
 */
export async function limitOfToken(
  tx: Handle,
  { appId, kind, name, installation }: Omit<ReportedToken, 'token'>,
): Promise<'device' | 'app' | null | undefined> {
  const isThere = await query(tx).hasRows(
    'SELECT FROM installation WHERE app_id = $1 AND id = $2 FOR NO KEY UPDATE',
    [appId, installation],
  );
  if (!isThere) return undefined;
  const isOfApp =
    kind === 'start' &&
    !(await query(tx).hasRows(
      'SELECT FROM live_activity_token WHERE app_id = $1 AND kind = $2 AND name = $3 LIMIT 1',
      [appId, kind, name],
    ));
  if (isOfApp) await lockAppRow(tx, appId);
  return query(tx).value<'device' | 'app' | null>(
    `SELECT CASE
       WHEN EXISTS (SELECT FROM live_activity_token
         WHERE app_id = $1 AND kind = $2 AND name = $3 AND installation = $4) THEN NULL
       WHEN (SELECT count(*) FROM live_activity_token
         WHERE app_id = $1 AND installation = $4 AND kind = $2) >= ${maxTokensOfDevice} THEN 'device'
       WHEN $2 = 'start' AND NOT EXISTS (SELECT FROM live_activity_token
         WHERE app_id = $1 AND kind = $2 AND name = $3)
         AND (WITH RECURSIVE types AS (
           (SELECT name, 1 AS n FROM live_activity_token WHERE app_id = $1 AND kind = $2
             ORDER BY name LIMIT 1)
           UNION ALL
           SELECT (SELECT t.name FROM live_activity_token t WHERE t.app_id = $1 AND t.kind = $2
             AND t.name > types.name ORDER BY t.name LIMIT 1), n + 1
             FROM types WHERE types.name IS NOT NULL AND n <= ${maxTypesOfApp})
           SELECT count(name) FROM types) >= ${maxTypesOfApp} THEN 'app'
     END AS value`,
    [appId, kind, name, installation],
  );
}

/**
 * Stores a token in place of the device's earlier token of this activity or type. A token belongs to
 * one device: another installation loses it.
 */
export async function saveToken(tx: Handle, reported: ReportedToken): Promise<void> {
  const { appId, kind, name, installation, token } = reported;
  // A report of the same token by another device waits, so that it finds this one.
  await lockName(tx, `live activity token ${appId} ${token}`);
  await tx.query(
    'DELETE FROM live_activity_token WHERE app_id = $1 AND token = $2 AND installation <> $3',
    [appId, token, installation],
  );
  await tx.query(
    `INSERT INTO live_activity_token (app_id, kind, name, installation, token)
     VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (app_id, kind, name, installation)
       DO UPDATE SET token = excluded.token, reported_at = excluded.reported_at`,
    [appId, kind, name, installation, token],
  );
}

/** Reads the tokens of installations. Update tokens that were reported before `since` are ended. */
export async function readTokens(
  db: Handle,
  { appId, kind, name }: ActivityTokens,
  { installations, since }: { installations: readonly number[]; since: Date },
): Promise<Map<number, { token: string; reportedAt: Buffer }>> {
  const rows = await query(db).rows<{ id: number; token: string; reportedAt: Buffer }>(
    `SELECT installation AS id, token, timestamptz_send(reported_at) AS "reportedAt"
       FROM live_activity_token
      WHERE app_id = $1 AND kind = $2 AND name = $3 AND installation = ANY ($4::bigint[])
        AND (kind = 'start' OR reported_at > $5)`,
    [appId, kind, name, `{${installations.join(',')}}`, since],
  );
  return new Map(rows.map(({ id, ...row }) => [id, row]));
}

/** Counts the installations that have an ended update token of an activity. */
export const countEndedTokens = (db: Handle, { appId, kind, name }: ActivityTokens, since: Date) =>
  query(db).number(
    `SELECT count(*) AS n FROM live_activity_token
      WHERE app_id = $1 AND kind = $2 AND name = $3 AND kind = 'update' AND reported_at <= $4`,
    [appId, kind, name, since],
  );

/** Deletes update tokens that were reported before a time. */
export const deleteOldTokens = sweepOf({
  table: 'live_activity_token',
  key: ['app_id', 'kind', 'name', 'installation'],
  column: 'reported_at',
  condition: `kind = 'update'`,
});

/** Clock of an activity or of a channel. */
export interface ActivityClock {
  appId: string;
  kind: 'activity' | 'channel';
  name: string;
}

/** Reads a clock, in epoch seconds. 0 if nothing was sent. */
export const readClock = (db: Handle, { appId, kind, name }: ActivityClock) =>
  query(db).number(
    `SELECT coalesce(max(at), 0) AS n FROM live_activity_clock
      WHERE app_id = $1 AND kind = $2 AND name = $3`,
    [appId, kind, name],
  );

const insertClock = `
  INSERT INTO live_activity_clock AS c (app_id, kind, name, at) VALUES ($1, $2, $3, $4::bigint)
  ON CONFLICT (app_id, kind, name) DO UPDATE`;

/** Statements that move a clock. A sharded database takes no parameters in a conflict clause. */
const moveTexts = {
  given: `${insertClock} SET at = excluded.at, updated_at = excluded.updated_at
    WHERE c.at < excluded.at RETURNING at::float8 AS value`,
  now: `${insertClock} SET at = greatest(excluded.at, c.at + 1), updated_at = excluded.updated_at
    RETURNING at::float8 AS value`,
};

/**
 * Moves a clock forward and returns the new timestamp. With `given`, the timestamp is the caller's;
 * it is undefined if the clock is not older. Without it, the timestamp is `nowS`, or one second
 * after the last timestamp if the clock is not older. The row stays locked until the transaction
 * ends, so pushes are stored in the order of their timestamps.
 */
export const advanceClock = (
  tx: Handle,
  { appId, kind, name }: ActivityClock,
  { given, nowS }: { given: number | null; nowS: number },
) =>
  query(tx).value<number>(given === null ? moveTexts.now : moveTexts.given, [
    appId,
    kind,
    name,
    given ?? nowS,
  ]);

/** Deletes clocks of activities and channels that got nothing since a time. */
export const deleteOldClocks = sweepOf({
  table: 'live_activity_clock',
  key: ['app_id', 'kind', 'name'],
  column: 'updated_at',
});

/** A broadcast channel. */
export interface ActivityChannel {
  channel: string;
  prod: 'dev' | 'prod';
  topic: string;
  storage: ChannelStorage;
  createdAt: Date;
  goneAt: Date | null;
}

const channelColumns = `channel, prod, topic, storage, created_at AS "createdAt",
  gone_at AS "goneAt"`;

/** Maximum channels of an app and environment at APNs. */
export const maxChannels = 10_000;

export const listChannels = (db: Handle, appId: string, prod: 'dev' | 'prod') =>
  query(db).rows<ActivityChannel>(
    `SELECT ${channelColumns} FROM live_activity_channel WHERE app_id = $1 AND prod = $2
      ORDER BY created_at, channel LIMIT ${2 * maxChannels}`,
    [appId, prod],
  );

/**
 * Finds a channel by its id, or by its id in the alphabet of URLs (`-` for `+`, `_` for `/`). An
 * exact match comes first.
 */
export const findChannel = (db: Handle, appId: string, prod: 'dev' | 'prod', channel: string) =>
  query(db).row<ActivityChannel>(
    `SELECT ${channelColumns} FROM live_activity_channel
      WHERE app_id = $1 AND prod = $2 AND (channel = $3 OR translate(channel, '+/', '-_') = $3)
      ORDER BY channel = $3 DESC LIMIT 1`,
    [appId, prod, channel],
  );

/** Stores a channel, or that it exists after all. */
export const saveChannel = (
  tx: Handle,
  appId: string,
  { channel, prod, topic, storage }: Omit<ActivityChannel, 'createdAt' | 'goneAt'>,
) =>
  query(tx).run(
    `INSERT INTO live_activity_channel (app_id, prod, channel, topic, storage)
     VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (app_id, prod, channel) DO UPDATE SET gone_at = NULL, topic = excluded.topic,
       storage = excluded.storage`,
    [appId, prod, channel, topic, storage],
  );

export const deleteChannel = (db: Handle, appId: string, prod: 'dev' | 'prod', channel: string) =>
  query(db).run(
    'DELETE FROM live_activity_channel WHERE app_id = $1 AND prod = $2 AND channel = $3',
    [appId, prod, channel],
  );

/** Returns what a push starts, updates or ends. Undefined for other pushes. */
export async function readLiveActivity(
  db: Handle,
  appId: string,
  pushId: number,
): Promise<{ activity: LiveActivity; prod: 'dev' | 'prod' } | undefined> {
  return query(db).row(
    `SELECT request -> 'liveActivity' AS activity, request ->> 'prod' AS prod FROM notification
      WHERE app_id = $1 AND id = $2 AND request ? 'liveActivity'`,
    [appId, pushId],
  );
}
