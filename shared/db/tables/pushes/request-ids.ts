import type { Handle } from '../../pool.ts';

export interface AcceptedRequest {
  objectId: string;
  acceptedAt: Date;
}

/**
 * Claims a `req_id` for this push, or returns the first push if the id was used since `notBefore`
 * (protocol/push.md#repeated-requests: five minutes). A concurrent claim waits until the first transaction ends.
 */
export async function claimRequestId(
  tx: Handle,
  claim: { appId: string; reqId: string; objectId: string; acceptedAt: Date; notBefore: Date },
): Promise<AcceptedRequest | undefined> {
  const { rowCount } = await tx.query(
    `INSERT INTO request_ledger AS l (app_id, req_id, object_id, accepted_at) VALUES ($1, $2, $3, $4)
     ON CONFLICT (app_id, req_id) DO UPDATE SET object_id = excluded.object_id, accepted_at = excluded.accepted_at
      WHERE l.accepted_at < $5`,
    [claim.appId, claim.reqId, claim.objectId, claim.acceptedAt, claim.notBefore],
  );
  if (rowCount) return undefined;
  const { rows } = await tx.query<{ object_id: string; accepted_at: Date }>(
    'SELECT object_id, accepted_at FROM request_ledger WHERE app_id = $1 AND req_id = $2',
    [claim.appId, claim.reqId],
  );
  return rows.map((row) => ({ objectId: row.object_id, acceptedAt: row.accepted_at }))[0];
}

/** Deletes request ids whose window is over; returns their number. */
export async function deleteOldRequestIds(db: Handle, before: Date): Promise<number> {
  const { rowCount } = await db.query('DELETE FROM request_ledger WHERE accepted_at < $1', [before]);
  return rowCount ?? 0;
}
