import type { Handle } from '../pool.ts';

/**
 * Who is connected where. A session id is higher than that of every earlier login of the same
 * installation, whichever process took it: of two sessions the one with the lower id is closed.
 */
export interface SessionSeat {
  appId: string;
  installation: number;
  sessionId: number;
}

/** NOTIFY channel that tells of a login that took over from another; the payload is a `SessionSeat`. */
export const sessionNotices = 'carillon_session';

export interface LoginRequest {
  appId: string;
  /** `installationId` as the device names itself. */
  installationId: string;
  nodeId: string;
  now: Date;
  /** The installation's `updatedAt` is refreshed when it is older than this. */
  touchedBefore: Date;
}

/**
 * Seats a device at a node, refreshes its `updatedAt` (push.md: whenever the app is opened) and tells the
 * process that held it before, in one statement. Undefined when the app has no such valid installation.
 * Throws when the node was removed.
 */
export async function seatDevice(db: Handle, login: LoginRequest): Promise<SessionSeat | undefined> {
  // The new session id is drawn after the row is locked: concurrent logins get them in the order of commit.
  // The commit does not wait for the disk: after a crash of the database the processes restore their seats,
  // and when all devices return at once that wait is most of the time.
  const { rows } = await db.query<{ installation: number; sessionId: number }>(
    `WITH device AS (
       SELECT app_id, id, updated_at FROM installation
        WHERE app_id = $1 AND installation_id = $2 AND valid
     ), touched AS (
       UPDATE installation i SET updated_at = $4 FROM device d
        WHERE i.app_id = d.app_id AND i.id = d.id AND d.updated_at < $5
     ), seated AS (
       INSERT INTO channel_session AS s (app_id, installation, node_id) SELECT app_id, id, $3 FROM device
       ON CONFLICT (app_id, installation)
         DO UPDATE SET node_id = excluded.node_id, session_id = DEFAULT, since = now()
       RETURNING s.installation, s.session_id, s.xmax <> 0 AS is_takeover
     )
     SELECT installation, session_id AS "sessionId",
            CASE WHEN is_takeover THEN pg_notify('${sessionNotices}', json_build_object('appId', $1::text,
              'installation', installation, 'sessionId', session_id)::text) END,
            set_config('synchronous_commit', 'off', true)
       FROM seated`,
    [login.appId, login.installationId, login.nodeId, login.now, login.touchedBefore],
  );
  const row = rows[0];
  return row && { appId: login.appId, installation: row.installation, sessionId: row.sessionId };
}

function columnsOf(seats: SessionSeat[]): unknown[] {
  return [
    seats.map((seat) => seat.appId),
    seats.map((seat) => seat.installation),
    seats.map((seat) => seat.sessionId),
  ];
}

/** Frees seats whose connections ended; those that were taken over stay with their new sessions. */
export async function freeSeats(db: Handle, seats: SessionSeat[]): Promise<void> {
  await db.query(
    `DELETE FROM channel_session s USING unnest($1::text[], $2::bigint[], $3::bigint[])
         AS f (app_id, installation, session_id)
      WHERE s.app_id = f.app_id AND s.installation = f.installation AND s.session_id = f.session_id`,
    columnsOf(seats),
  );
}

/** Seats sessions again that were lost with their node; a session of another process wins. */
export async function restoreSeats(db: Handle, nodeId: string, seats: SessionSeat[]): Promise<void> {
  await db.query(
    `INSERT INTO channel_session (app_id, installation, session_id, node_id)
     SELECT s.app_id, s.installation, s.session_id, $4
       FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS s (app_id, installation, session_id)
      ORDER BY 1, 2
     ON CONFLICT (app_id, installation) DO NOTHING`,
    [...columnsOf(seats), nodeId],
  );
}

/** The sessions that the database knows at this node. */
export async function seatsOfNode(db: Handle, nodeId: string): Promise<SessionSeat[]> {
  const { rows } = await db.query<SessionSeat>(
    `SELECT app_id AS "appId", installation, session_id AS "sessionId"
       FROM channel_session WHERE node_id = $1`,
    [nodeId],
  );
  return rows;
}

/** Says that a node lives. True when it was not known: it is new, or was taken for dead. */
export async function beatNode(db: Handle, nodeId: string): Promise<boolean> {
  const { rows } = await db.query<{ isNew: boolean }>(
    `INSERT INTO channel_node AS n (id) VALUES ($1)
     ON CONFLICT (id) DO UPDATE SET seen_at = now() RETURNING n.xmax = 0 AS "isNew"`,
    [nodeId],
  );
  return rows[0]?.isNew ?? false;
}

/** Removes nodes that were not heard of for `silentMs`, with their sessions. */
export async function removeDeadNodes(db: Handle, silentMs: number): Promise<void> {
  await db.query(`DELETE FROM channel_node WHERE seen_at < now() - $1 * interval '1 millisecond'`, [
    silentMs,
  ]);
}

/** Removes a node that stops, with its sessions. */
export async function removeNode(db: Handle, nodeId: string): Promise<void> {
  await db.query('DELETE FROM channel_node WHERE id = $1', [nodeId]);
}
