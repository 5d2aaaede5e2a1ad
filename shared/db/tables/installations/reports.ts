import type { Handle } from '../../pool.ts';

/** What the tables of the device channel and of receipts know of a device. */
export interface DeviceState {
  /** When it logged in to the device channel, and at which process; null while it is not connected. */
  onlineSince: Date | null;
  node: string | null;
  /** Messages that wait for it, up to the limit of the query. */
  inbox: number;
  /** A gateway called its token invalid; the next push decides. */
  notice: { connector: string; at: Date; isSure: boolean } | null;
}

/** Reads the state of a device; counts at most `maxInbox` waiting messages. */
export async function readDeviceState(
  db: Handle,
  { appId, id }: { appId: string; id: number },
  maxInbox: number,
): Promise<DeviceState> {
  const { rows } = await db.query<{
    since: Date | null;
    node: string | null;
    inbox: number;
    connector: string | null;
    noted_at: Date | null;
    is_sure: boolean | null;
  }>(
    `SELECT s.since, s.node_id AS node, n.connector, n.noted_at, n.is_sure,
            (SELECT count(*) FROM (SELECT FROM channel_inbox i
                                    WHERE i.app_id = $1 AND i.installation = $2 LIMIT $3) AS waiting) AS inbox
       FROM (SELECT) AS one
       LEFT JOIN channel_session s ON s.app_id = $1 AND s.installation = $2
       LEFT JOIN dead_notice n ON n.app_id = $1 AND n.installation = $2`,
    [appId, id, maxInbox],
  );
  const [row] = rows;
  const { connector = null, noted_at: at = null } = row ?? {};
  const notice = connector !== null && at !== null ? { connector, at, isSure: row?.is_sure === true } : null;
  return { onlineSince: row?.since ?? null, node: row?.node ?? null, inbox: row?.inbox ?? 0, notice };
}
