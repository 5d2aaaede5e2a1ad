import type { AuthData } from '../../../domain/users/auth-data.ts';
import { type Sealer, sealedAuthData } from '../../../domain/users/auth-tokens.ts';
import type { Database } from '../../pool.ts';
import { type AppRow, forEachApp } from '../sweeps.ts';

const isUnsealed = 'NOT auth_sealed_whole AND auth_data IS NOT NULL';
const unsealed = `SELECT app_id, id FROM app_user WHERE ${isUnsealed} ORDER BY app_id, id LIMIT $1`;
const lockUnsealed = `
  SELECT app_id, id, auth_data FROM app_user
   WHERE ${isUnsealed} AND app_id = $1 AND id = ANY($2::bigint[]) ORDER BY id FOR UPDATE SKIP LOCKED`;

/**
 * Encrypts the platform secrets of up to `limit` users whose rows are from a version that stored
 * some as plain text. Returns the number of rows read. Skips users that are locked by another
 * transaction.
 */
export function sealAuthDataOfOldRows(db: Database, sealer: Sealer, limit: number): Promise<number> {
  return db.transaction(async (tx) => {
    const rows = await forEachApp(tx, { text: unsealed, values: [limit] }, async (appId, ids) => {
      const locked = await tx.query<AppRow & { auth_data: AuthData }>(lockUnsealed, [appId, ids]);
      return locked.rows;
    });
    if (rows.length === 0) return 0;
    const sealed = rows.map((row) => JSON.stringify(sealedAuthData(sealer, row.app_id, row.auth_data)));
    await tx.query(
      `UPDATE app_user u SET auth_data = s.auth_data, auth_sealed = true, auth_sealed_whole = true
         FROM unnest($1::text[], $2::bigint[], $3::jsonb[]) AS s (app_id, id, auth_data)
        WHERE u.app_id = s.app_id AND u.id = s.id`,
      [rows.map((row) => row.app_id), rows.map(({ id }) => id), sealed],
    );
    return rows.length;
  });
}
