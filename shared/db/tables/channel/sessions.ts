import type { Handle } from '../../pool.ts';

/**
 * Who is connected where. A session id is higher than that of every earlier login of the same
 * installation, whichever process took it: of two sessions the one with the lower id is closed.
 */
export interface DeviceSession {
  appId: string;
  installation: number;
  sessionId: number;
}

/** A seat that was just taken. */
export interface NewDeviceSession extends DeviceSession {
  /** The newest letter that waited for the device; 0 for none. */
  newestInboxId: number;
}

/** NOTIFY channel that tells of a login that took over from another; the payload is a `SessionSeat`. */
export const sessionTopic = 'carillon_session';

/** A device by the names that it gives itself. */
export interface DeviceName {
  appId: string;
  installationId: string;
}

export interface SessionRequest {
  nodeId: string;
  now: Date;
  /** An installation's `updatedAt` is refreshed when it is older than this. */
  touchedBefore: Date;
}

/**
 * Seats devices, each named once, at a node, refreshes their `updatedAt` (protocol/installations.md#installation-fields: whenever the app is opened)
 * and tells the processes that held them before, in one statement. Undefined in the place of one whose app has
 * no such valid installation. Throws when the node was removed.
 */
export async function openSessions(
  db: Handle,
  devices: DeviceName[],
  { nodeId, now, touchedBefore }: SessionRequest,
): Promise<(NewDeviceSession | undefined)[]> {
  // A new session id is drawn after its row is locked: concurrent logins get them in the order of commit. Rows
  // are locked in one order, and installations that somebody else writes are not waited for: they are fresh.
  // The commit does not wait for the disk: after a crash of the database the processes restore their seats,
  // and when all devices return at once that wait is most of the time.
  // The `+ 0` has the device's letters looked at: for a plain maximum the app's would be searched from the end.
  const { rows } = await db.query<Omit<NewDeviceSession, 'appId'> & { n: number }>(
    `WITH device AS MATERIALIZED (
       SELECT a.n, i.app_id, i.id, i.updated_at
         FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS a (app_id, installation_id, n)
        CROSS JOIN LATERAL (
          SELECT i.app_id, i.id, i.updated_at FROM installation i
           WHERE i.app_id = a.app_id AND i.installation_id = a.installation_id AND i.valid LIMIT 1) i
     ), old AS MATERIALIZED (
       SELECT i.app_id, i.id FROM installation i JOIN device d USING (app_id, id)
        WHERE d.updated_at < $5 FOR NO KEY UPDATE OF i SKIP LOCKED
     ), touched AS (
       UPDATE installation i SET updated_at = $4 FROM old WHERE i.app_id = old.app_id AND i.id = old.id
     ), seated AS (
       INSERT INTO channel_session AS s (app_id, installation, node_id)
       SELECT app_id, id, $3 FROM device ORDER BY app_id, id
       ON CONFLICT (app_id, installation)
         DO UPDATE SET node_id = excluded.node_id, session_id = DEFAULT, since = now()
       RETURNING s.app_id, s.installation, s.session_id, s.xmax <> 0 AS is_takeover
     )
     SELECT d.n, s.installation, s.session_id AS "sessionId",
            coalesce((SELECT max(i.id + 0) FROM channel_inbox i
                       WHERE i.app_id = s.app_id AND i.installation = s.installation), 0) AS "newestInboxId",
            CASE WHEN s.is_takeover THEN pg_notify('${sessionTopic}', json_build_object('appId', s.app_id,
              'installation', s.installation, 'sessionId', s.session_id)::text) END,
            set_config('synchronous_commit', 'off', true)
       FROM seated s JOIN device d ON d.app_id = s.app_id AND d.id = s.installation`,
    [
      devices.map(({ appId }) => appId),
      devices.map(({ installationId }) => installationId),
      nodeId,
      now,
      touchedBefore,
    ],
  );
  const seats = new Map(rows.map((row) => [row.n, row]));
  return devices.map(({ appId }, i) => {
    const row = seats.get(i + 1);
    if (!row) return undefined;
    const { installation, sessionId, newestInboxId } = row;
    return { appId, installation, sessionId, newestInboxId };
  });
}

function columnsOf(seats: DeviceSession[]): unknown[] {
  return [
    seats.map((seat) => seat.appId),
    seats.map((seat) => seat.installation),
    seats.map((seat) => seat.sessionId),
  ];
}

/**
 * Frees seats whose connections ended; those that were taken over stay with their new sessions. Rows are locked in
 * the order in which `seatDevices` does it: devices that move from one process to another are in both.
 */
export async function closeSessions(db: Handle, seats: DeviceSession[]): Promise<void> {
  await db.query(
    `WITH left_seats AS MATERIALIZED (
       SELECT s.app_id, s.installation
         FROM channel_session s JOIN unnest($1::text[], $2::bigint[], $3::bigint[])
              AS f (app_id, installation, session_id) USING (app_id, installation, session_id)
        ORDER BY s.app_id, s.installation FOR UPDATE OF s
     )
     DELETE FROM channel_session s USING left_seats l
      WHERE s.app_id = l.app_id AND s.installation = l.installation`,
    columnsOf(seats),
  );
}

/** Seats sessions again that were lost with their node; a session of another process wins. */
export async function restoreSessions(db: Handle, nodeId: string, seats: DeviceSession[]): Promise<void> {
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
export async function sessionsOfNode(db: Handle, nodeId: string): Promise<DeviceSession[]> {
  const { rows } = await db.query<DeviceSession>(
    `SELECT app_id AS "appId", installation, session_id AS "sessionId"
       FROM channel_session WHERE node_id = $1`,
    [nodeId],
  );
  return rows;
}

/** Says that a node lives. True when it was not known: it is new, or was taken for dead. */
export async function recordHeartbeat(db: Handle, nodeId: string): Promise<boolean> {
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
