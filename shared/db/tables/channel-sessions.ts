import type { Database, Handle } from '../pool.ts';
import { prepare } from '../prepared.ts';
import { listsOf, query } from '../query.ts';
import { AppStatement, isSharded, partByApp } from '../sharding.ts';
import { notify } from './channel-enqueue.ts';
import { isPendingInGroup } from './channel-messages.ts';

/**
 * Session of a connected device. Session ids of an installation grow with every login, in any
 * process. If there are two sessions, the session with the lower id is closed.
 */
export interface DeviceSession {
  appId: string;
  installation: number;
  sessionId: number;
}

/** A session that was just opened. */
export interface NewDeviceSession extends DeviceSession {
  /** Highest position of a pending message of the device at the login, or 0. */
  newestPosition: number;
}

/** NOTIFY channel of logins that end another session. The payload is a `DeviceSession` as JSON. */
export const sessionTopic = 'carillon_session';

/** A device as named in its login command. */
export interface DeviceName {
  appId: string;
  installationId: string;
}

export interface SessionRequest {
  nodeId: string;
  now: Date;
  /** A login renews the `updatedAt` of an installation if it is older than this. */
  touchedBefore: Date;
}

/**
 * Opens sessions of devices at a node, in one statement, or on a sharded database in one
 * transaction for each app. Each device occurs once. Renews their `updatedAt`
 * (protocol/installations.md#installation-fields), and notifies the processes where they had
 * sessions. Returns undefined for a device without a valid installation. Throws if the node was
 * removed.
 */
export async function openSessions(
  db: Database,
  devices: DeviceName[],
  request: SessionRequest,
): Promise<(NewDeviceSession | undefined)[]> {
  const opened = new Map<DeviceName | undefined, NewDeviceSession>();
  const sharded = await isSharded(db);
  for (const part of await partByApp(db, devices)) {
    const sessions = sharded
      ? await db.transaction((tx) => openSessionsOfApp(tx, part, request))
      : await openSessionsOfAll(db, part, request);
    for (const { n, appId, installation, sessionId, newestPosition } of sessions)
      opened.set(part[n - 1], { appId, installation, sessionId, newestPosition });
  }
  return devices.map((device) => opened.get(device));
}

/**
 * Returns SQL of the highest position of a pending message of session `s`, or 0. The `+ 0` makes
 * PostgreSQL read the groups of the app once. For a plain `max()` it would scan the groups from the
 * end.
 */
const newestPosition = (appId: string): string =>
  `greatest((SELECT max(coalesce(i.position, i.id)) FROM channel_inbox i
              WHERE i.app_id = ${appId} AND i.installation = s.installation),
            (SELECT max(g.id + 0) FROM channel_group g
              WHERE g.app_id = ${appId} AND ${isPendingInGroup('s.installation')}), 0)`;

/** A new session, with the number of its device in the call, from 1. */
type OpenedSession = NewDeviceSession & { n: number };

function openSessionsOfAll(
  db: Handle,
  devices: DeviceName[],
  { nodeId, now, touchedBefore }: SessionRequest,
): Promise<OpenedSession[]> {
  // PostgreSQL draws the session id after it has locked the row, so concurrent logins get ids in
  // the order of their commits. Rows are locked in one order. `SKIP LOCKED` skips installations
  // that another writer has locked, because that writer refreshes them.
  //
  // The commit does not wait for the disk, because this wait would take most of the time when all
  // devices reconnect at once. After a crash of the database, the processes restore their sessions.
  return query(db).rows(
    `WITH device AS MATERIALIZED (
       SELECT a.n, i.app_id, i.id, i.updated_at
         FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS a (app_id, installation_id, n)
        CROSS JOIN LATERAL (
          SELECT i.app_id, i.id, i.updated_at FROM installation i
           WHERE i.app_id = a.app_id AND i.installation_id = a.installation_id AND i.valid
             LIMIT 1) i
     ), old AS MATERIALIZED (
       SELECT i.app_id, i.id FROM installation i JOIN device d USING (app_id, id)
        WHERE d.updated_at < $5 FOR NO KEY UPDATE OF i SKIP LOCKED
     ), touched AS (
       UPDATE installation i SET updated_at = $4 FROM old WHERE i.app_id = old.app_id
         AND i.id = old.id
     ), opened AS (
       INSERT INTO channel_session AS s (app_id, installation, node_id)
       SELECT app_id, id, $3 FROM device ORDER BY app_id, id
       ON CONFLICT (app_id, installation)
         DO UPDATE SET node_id = excluded.node_id, session_id = DEFAULT, since = excluded.since
       RETURNING s.app_id, s.installation, s.session_id, s.xmax <> 0 AS is_takeover
     )
     SELECT d.n, s.app_id AS "appId", s.installation, s.session_id AS "sessionId",
            ${newestPosition('s.app_id')} AS "newestPosition",
            CASE WHEN s.is_takeover THEN pg_notify('${sessionTopic}', json_build_object('appId',
              s.app_id, 'installation', s.installation, 'sessionId', s.session_id)::text) END,
            set_config('synchronous_commit', 'off', true)
       FROM opened s JOIN device d ON d.app_id = s.app_id AND d.id = s.installation`,
    [...listsOf(devices, 'appId', 'installationId'), nodeId, now, touchedBefore],
  );
}

function columnsOf(sessions: DeviceSession[]): unknown[] {
  return listsOf(sessions, 'appId', 'installation', 'sessionId');
}

/**
 * Closes sessions whose connections have ended. A session that another process took over has a new
 * id and remains. Locks rows in the order of `openSessions`, because devices that move between
 * processes occur in both statements.
 */
export async function closeSessions(db: Handle, sessions: DeviceSession[]): Promise<void> {
  await closeStatement.run(db, sessions, columnsOf);
}

const closeStatement = new AppStatement(
  4,
  (andApp) => `
    WITH ended AS MATERIALIZED (
       SELECT s.app_id, s.installation
         FROM channel_session s JOIN unnest($1::text[], $2::bigint[], $3::bigint[])
              AS f (app_id, installation, session_id) USING (app_id, installation, session_id)
        WHERE true${andApp('s')}
        ORDER BY s.app_id, s.installation FOR UPDATE OF s
     )
     DELETE FROM channel_session s USING ended l
      WHERE s.app_id = l.app_id AND s.installation = l.installation${andApp('s')}`,
);

/**
 * Restores sessions that were removed with their node. A newer session at another process remains.
 */
export const restoreSessions = (db: Handle, nodeId: string, sessions: DeviceSession[]) =>
  query(db).run(
    `INSERT INTO channel_session (app_id, installation, session_id, node_id)
     SELECT s.app_id, s.installation, s.session_id, $4
       FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS s (app_id, installation, session_id)
      ORDER BY s.app_id, s.installation
     ON CONFLICT (app_id, installation) DO NOTHING`,
    [...columnsOf(sessions), nodeId],
  );

/** Returns the stored sessions of a node. */
export const sessionsOfNode = (db: Handle, nodeId: string) =>
  query(db).rows<DeviceSession>(
    `SELECT app_id AS "appId", installation, session_id AS "sessionId"
       FROM channel_session WHERE node_id = $1`,
    [nodeId],
  );

/**
 * Records a heartbeat of a node. Returns true if the node was unknown, because it is new or was
 * removed after a silence.
 */
export const recordHeartbeat = (db: Handle, nodeId: string) =>
  query(db).boolean(
    `INSERT INTO channel_node AS n (id, takes_groups) VALUES ($1, true)
     ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at RETURNING n.xmax = 0 AS "isNew"`,
    [nodeId],
  );

/** Removes nodes that have sent no heartbeat for `silentMs`, with their sessions. */
export const removeDeadNodes = (db: Handle, silentMs: number) =>
  query(db).run(`DELETE FROM channel_node WHERE seen_at < now() - $1 * interval '1 millisecond'`, [
    silentMs,
  ]);

/** Removes a node that stops, with its sessions. */
export const removeNode = (db: Handle, nodeId: string) =>
  query(db).run('DELETE FROM channel_node WHERE id = $1', [nodeId]);

/**
 * Returns the installations that exist and have no session. A device that waited for its
 * installation must not take over a session, because the device may have connected elsewhere since.
 */
export const findUnopened = (db: Handle, appId: string, installationIds: string[]) =>
  query(db).column<string>(unopened, [appId, installationIds]);

const unopened = prepare(
  `SELECT i.installation_id AS id FROM installation i
    WHERE i.app_id = $1 AND i.installation_id = ANY ($2::text[]) AND i.valid
      AND NOT EXISTS (SELECT 1 FROM channel_session s WHERE s.app_id = i.app_id
        AND s.installation = i.id)`,
);

/** Returns the sessions of a node whose installation was deleted. */
export const sessionsWithoutInstallation = (db: Handle, nodeId: string) =>
  query(db).rows<DeviceSession>(
    `SELECT s.app_id AS "appId", s.installation, s.session_id AS "sessionId" FROM channel_session s
      WHERE s.node_id = $1
        AND NOT EXISTS (SELECT 1 FROM installation i WHERE i.app_id = s.app_id
          AND i.id = s.installation)`,
    [nodeId],
  );

// On a sharded database (operate/distributed.md): a transaction of one app with a statement for
// each step.

const findDevices = `
  SELECT a.n, i.id, i.updated_at < $3 AS "isOld"
    FROM unnest($2::text[]) WITH ORDINALITY AS a (installation_id, n)
   CROSS JOIN LATERAL (
     SELECT i.id, i.updated_at FROM installation i
      WHERE i.app_id = $1 AND i.installation_id = a.installation_id AND i.valid LIMIT 1) i`;

/**
 * Makes concurrent logins of a device wait for each other, so that their session ids are in the
 * order of their commits.
 */
const lockDevices = `SELECT pg_advisory_xact_lock(hashtextextended($1 || '/' || id, 0))
  FROM unnest($2::bigint[]) AS id`;

const touchDevices = `
  WITH old AS MATERIALIZED (
    SELECT id FROM installation WHERE app_id = $1 AND id = ANY ($2::bigint[]) AND updated_at < $4
     ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)
  UPDATE installation i SET updated_at = $3 FROM old WHERE i.app_id = $1 AND i.id = old.id`;

const insertSessions = `
  INSERT INTO channel_session AS s (app_id, installation, node_id)
  SELECT $1, id, $3 FROM unnest($2::bigint[]) AS id ORDER BY id
  ON CONFLICT (app_id, installation)
    DO UPDATE SET node_id = excluded.node_id, session_id = excluded.session_id,
      since = excluded.since
  RETURNING s.installation, s.session_id AS "sessionId", s.xmax <> 0 AS "isTakeover"`;

const newestPositions = `
  SELECT s.installation, ${newestPosition('$1')} AS newest
    FROM unnest($2::bigint[]) AS s (installation)`;

type OpenedRow = Omit<DeviceSession, 'appId'> & { isTakeover: boolean };
type PositionRow = { installation: number; newest: number };

async function openSessionsOfApp(
  tx: Handle,
  devices: DeviceName[],
  { nodeId, now, touchedBefore }: SessionRequest,
): Promise<OpenedSession[]> {
  const appId = devices[0]?.appId ?? '';
  const values = [appId, devices.map(({ installationId }) => installationId), touchedBefore];
  const found = await query(tx).rows<{ n: number; id: number; isOld: boolean }>(
    findDevices,
    values,
  );
  if (found.length === 0) return [];
  const ids = found.map(({ id }) => id).sort((a, b) => a - b);
  await tx.query(lockDevices, [appId, ids]);
  if (found.some(({ isOld }) => isOld))
    await tx.query(touchDevices, [appId, ids, now, touchedBefore]);
  const sessions = await query(tx).rows<OpenedRow>(insertSessions, [appId, ids, nodeId]);
  const positions = await query(tx).rows<PositionRow>(newestPositions, [appId, ids]);
  await notify(
    tx,
    sessionTopic,
    sessions
      .filter(({ isTakeover }) => isTakeover)
      .map(({ installation, sessionId }) => ({ appId, installation, sessionId })),
  );
  const byDevice = new Map(sessions.map((session) => [session.installation, session.sessionId]));
  const newest = new Map(positions.map((row) => [row.installation, row.newest]));
  return found.map(({ n, id }) => ({
    n,
    appId,
    installation: id,
    sessionId: byDevice.get(id) ?? 0,
    newestPosition: newest.get(id) ?? 0,
  }));
}

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
