import type { Database, Handle } from '../../../pool.ts';
import { partByApp } from '../../../schema/by-app.ts';
import { holds } from '../inbox.ts';
import { type DeviceName, type NewDeviceSession, type SessionRequest, sessionTopic } from '../session.ts';
import { notify } from './notify.ts';

const findDevices = `
  SELECT a.n, i.id, i.updated_at < $3 AS "isOld"
    FROM unnest($2::text[]) WITH ORDINALITY AS a (installation_id, n)
   CROSS JOIN LATERAL (
     SELECT i.id, i.updated_at FROM installation i
      WHERE i.app_id = $1 AND i.installation_id = a.installation_id AND i.valid LIMIT 1) i`;

/** Makes concurrent logins of a device wait, so that they get ids in the order of their commits. */
const lockDevices = `SELECT pg_advisory_xact_lock(hashtextextended($1 || '/' || id, 0)) FROM unnest($2::bigint[]) AS id`;

const touchDevices = `
  WITH old AS MATERIALIZED (
    SELECT id FROM installation WHERE app_id = $1 AND id = ANY ($2::bigint[]) AND updated_at < $4
     ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)
  UPDATE installation i SET updated_at = $3 FROM old WHERE i.app_id = $1 AND i.id = old.id`;

const insertSessions = `
  INSERT INTO channel_session AS s (app_id, installation, node_id)
  SELECT $1, id, $3 FROM unnest($2::bigint[]) AS id ORDER BY id
  ON CONFLICT (app_id, installation)
    DO UPDATE SET node_id = excluded.node_id, session_id = excluded.session_id, since = excluded.since
  RETURNING s.installation, s.session_id AS "sessionId", s.xmax <> 0 AS "isTakeover"`;

const newestPositions = `
  SELECT s.installation,
         greatest((SELECT max(coalesce(i.position, i.id)) FROM channel_inbox i
                    WHERE i.app_id = $1 AND i.installation = s.installation),
                  (SELECT max(g.id + 0) FROM channel_group g
                    WHERE g.app_id = $1 AND ${holds('s.installation')}), 0) AS newest
    FROM unnest($2::bigint[]) AS s (installation)`;

/** Opens sessions as `openSessions` does, with a transaction for each app. */
export async function openInSpread(
  db: Database,
  devices: DeviceName[],
  request: SessionRequest,
): Promise<(NewDeviceSession | undefined)[]> {
  const opened = new Map<DeviceName, NewDeviceSession>();
  for (const part of await partByApp(db, devices)) {
    const sessions = await db.transaction((tx) => openSessionsOfApp(tx, part, request));
    for (const [n, session] of sessions) {
      const device = part[n - 1];
      if (device) opened.set(device, session);
    }
  }
  return devices.map((device) => opened.get(device));
}

/** Returns the sessions of the devices of an app by their place. */
async function openSessionsOfApp(
  tx: Handle,
  devices: DeviceName[],
  { nodeId, now, touchedBefore }: SessionRequest,
): Promise<Map<number, NewDeviceSession>> {
  const appId = devices[0]?.appId ?? '';
  const names = devices.map(({ installationId }) => installationId);
  const { rows: found } = await tx.query<{ n: number; id: number; isOld: boolean }>(findDevices, [
    appId,
    names,
    touchedBefore,
  ]);
  if (found.length === 0) return new Map();
  const ids = found.map(({ id }) => id).sort((a, b) => a - b);
  await tx.query(lockDevices, [appId, ids]);
  if (found.some(({ isOld }) => isOld)) await tx.query(touchDevices, [appId, ids, now, touchedBefore]);
  const { rows: sessions } = await tx.query<OpenedRow>(insertSessions, [appId, ids, nodeId]);
  const { rows: positions } = await tx.query<{ installation: number; newest: number }>(newestPositions, [
    appId,
    ids,
  ]);
  await notify(
    tx,
    sessionTopic,
    sessions
      .filter(({ isTakeover }) => isTakeover)
      .map(({ installation, sessionId }) => ({ appId, installation, sessionId })),
  );
  const byDevice = new Map(sessions.map((session) => [session.installation, session.sessionId]));
  const newest = new Map(positions.map((row) => [row.installation, row.newest]));
  return new Map(
    found.map(({ n, id }) => [
      n,
      { appId, installation: id, sessionId: byDevice.get(id) ?? 0, newestPosition: newest.get(id) ?? 0 },
    ]),
  );
}

interface OpenedRow {
  installation: number;
  sessionId: number;
  isTakeover: boolean;
}
