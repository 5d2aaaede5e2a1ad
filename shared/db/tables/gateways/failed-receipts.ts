import type { ConnectorId } from '../../../domain/labels.ts';
import type { Handle } from '../../pool.ts';

/** Call of a gateway that was refused, without its content. */
export interface FailedReceipt {
  id: number;
  connector: ConnectorId;
  /** Status that the gateway got, and why. */
  status: number;
  reason: string;
  /** Size of the body. */
  bytes: number;
  at: Date;
}

/** Content of a refused call, encrypted. */
export interface SealedCall {
  /** Hex text that is the same for the same call. */
  digest: string;
  call: Buffer;
}

/** Keeps a refused call, unless it is kept already or the app has `most`. Returns whether it is kept. */
export async function keepFailedReceipt(
  db: Handle,
  appId: string,
  failed: Pick<FailedReceipt, 'connector' | 'status' | 'reason' | 'bytes'> & SealedCall,
  most: number,
): Promise<boolean> {
  const { connector, digest, status, reason, bytes, call } = failed;
  const { rowCount } = await db.query(
    `INSERT INTO failed_receipt (app_id, connector, digest, status, reason, bytes, call)
     SELECT $1, $2, $3, $4, $5, $6, $7
      WHERE (SELECT count(*) FROM (SELECT FROM failed_receipt WHERE app_id = $1 LIMIT $8) AS kept) < $8
     ON CONFLICT (app_id, connector, digest) DO UPDATE SET status = excluded.status, reason = excluded.reason`,
    [appId, connector, digest, status, reason, bytes, call, most],
  );
  return (rowCount ?? 0) > 0;
}

const columns = 'id, connector, status, reason, bytes, created_at AS at';

/** Lists refused calls of an app, newest first. */
export async function listFailedReceipts(
  db: Handle,
  appId: string,
  connector: string | undefined,
  page: { before: number | null; limit: number },
): Promise<FailedReceipt[]> {
  const { rows } = await db.query<FailedReceipt>(
    `SELECT ${columns} FROM failed_receipt
      WHERE app_id = $1 AND ($2::text IS NULL OR connector = $2) AND ($3::bigint IS NULL OR id < $3)
      ORDER BY id DESC LIMIT $4`,
    [appId, connector ?? null, page.before, page.limit],
  );
  return rows;
}

/** Reads a page of refused calls with their content, oldest first. */
export async function readFailedReceipts(
  db: Handle,
  appId: string,
  connector: string | undefined,
  page: { after: number; limit: number },
): Promise<(FailedReceipt & SealedCall)[]> {
  const { rows } = await db.query<FailedReceipt & SealedCall>(
    `SELECT ${columns}, digest, call FROM failed_receipt
      WHERE app_id = $1 AND ($2::text IS NULL OR connector = $2) AND id > $3 ORDER BY id LIMIT $4`,
    [appId, connector ?? null, page.after, page.limit],
  );
  return rows;
}

/** Deletes refused calls that were processed. */
export async function deleteFailedReceipts(tx: Handle, appId: string, ids: readonly number[]): Promise<void> {
  await tx.query('DELETE FROM failed_receipt WHERE app_id = $1 AND id = ANY($2::bigint[])', [
    appId,
    `{${ids.join(',')}}`,
  ]);
}

/** Deletes refused calls from before `before`, at most `limit`. Returns their number. */
export async function deleteOldFailedReceipts(db: Handle, before: Date, limit: number): Promise<number> {
  const { rowCount } = await db.query(
    `WITH old AS MATERIALIZED (
       SELECT app_id, id FROM failed_receipt WHERE created_at < $1 ORDER BY created_at LIMIT $2)
     DELETE FROM failed_receipt r USING old WHERE r.app_id = old.app_id AND r.id = old.id`,
    [before, limit],
  );
  return rowCount ?? 0;
}
