import type { Handle } from '../../pool.ts';

/** Use of a `req_id` by a push. */
export interface RequestClaim {
  appId: string;
  reqId: string;
  objectId: string;
  acceptedAt: Date;
}

interface ClaimRow {
  app_id: string;
  req_id: string;
  object_id: string;
  accepted_at: Date;
}

const toClaim = (row: ClaimRow): RequestClaim => ({
  appId: row.app_id,
  reqId: row.req_id,
  objectId: row.object_id,
  acceptedAt: row.accepted_at,
});

const input = `unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[])
  AS c (app_id, req_id, object_id, accepted_at)`;

/**
 * Claims the `req_id` of each push, and returns the claims of other pushes that used one of them less than `windowMs`
 * before (protocol/push.md#repeated-requests: five minutes). No two of `claims` have the same id. A concurrent claim waits
 * until the first transaction ends; rows are locked in one order, so that two transactions cannot deadlock. The window is part
 * of the text, because a sharded database takes no parameter in this clause, and only functions that are immutable.
 */
export async function claimRequestIds(
  tx: Handle,
  claims: readonly RequestClaim[],
  windowMs: number,
): Promise<RequestClaim[]> {
  const values = [
    claims.map(({ appId }) => appId),
    claims.map(({ reqId }) => reqId),
    claims.map(({ objectId }) => objectId),
    claims.map(({ acceptedAt }) => acceptedAt),
  ];
  const { rows: claimed } = await tx.query(
    `INSERT INTO request_ledger AS l (app_id, req_id, object_id, accepted_at)
     SELECT app_id, req_id, object_id, accepted_at FROM ${input} ORDER BY app_id, req_id
     ON CONFLICT (app_id, req_id) DO UPDATE SET object_id = excluded.object_id, accepted_at = excluded.accepted_at
      WHERE excluded.accepted_at - l.accepted_at > interval '${Math.round(windowMs)} ms'
     RETURNING 1`,
    values,
  );
  // A sharded database counts a row without RETURNING also where its condition left it as it was.
  if (claimed.length === claims.length) return [];
  const { rows } = await tx.query<ClaimRow>(
    `SELECT l.app_id, l.req_id, l.object_id, l.accepted_at
       FROM ${input} JOIN request_ledger l USING (app_id, req_id) WHERE l.object_id <> c.object_id`,
    values,
  );
  return rows.map(toClaim);
}

/** Finds the push that used a `req_id` less than `windowMs` ago. */
export async function findRequestId(
  db: Handle,
  { appId, reqId }: Pick<RequestClaim, 'appId' | 'reqId'>,
  windowMs: number,
): Promise<RequestClaim | undefined> {
  const { rows } = await db.query<ClaimRow>(
    `SELECT app_id, req_id, object_id, accepted_at FROM request_ledger
      WHERE app_id = $1 AND req_id = $2 AND accepted_at >= now() - $3 * interval '1 ms'`,
    [appId, reqId, windowMs],
  );
  return rows.map(toClaim)[0];
}

/** Deletes request ids whose window is over; returns their number. */
export async function deleteOldRequestIds(db: Handle, before: Date): Promise<number> {
  const { rowCount } = await db.query('DELETE FROM request_ledger WHERE accepted_at < $1', [before]);
  return rowCount ?? 0;
}
