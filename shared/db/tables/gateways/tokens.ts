import type { Vault } from '../../../crypto.ts';
import { sealContexts } from '../../../domain/apps/seal-contexts.ts';
import { databaseNow } from '../../clock.ts';
import type { Handle } from '../../pool.ts';

/** Decrypted access token of a gateway. */
export interface GatewayToken {
  value: string;
  madeAtMs: number;
  expiresAtMs: number;
  isReplacement: boolean;
}

/** Key of a token: `credential` is any text that identifies the credentials; it is stored as a keyed digest. */
export interface TokenKey {
  appId: string;
  connector: string;
  credential: string;
}

const valuesOf = (vault: Vault, { appId, connector, credential }: TokenKey) => [
  appId,
  connector,
  Buffer.from(vault.derive(`gateway token ${credential}`), 'base64url'),
];

const sealContext = ({ appId, connector }: TokenKey) => sealContexts.gatewayToken(appId, connector);

interface Row {
  value: Buffer;
  made_at: Date;
  expires_at: Date;
  is_replacement: boolean;
}

/** Reads the stored token; null without one. Throws `SealError`. */
export async function readGatewayToken(
  db: Handle,
  vault: Vault,
  key: TokenKey,
): Promise<GatewayToken | null> {
  const { rows } = await db.query<Row>(
    `SELECT value, made_at, expires_at, is_replacement FROM gateway_token
      WHERE app_id = $1 AND connector = $2 AND credential = $3 AND value IS NOT NULL`,
    valuesOf(vault, key),
  );
  return (
    rows.map((row) => ({
      value: String(vault.open(row.value, sealContext(key))),
      madeAtMs: row.made_at.getTime(),
      expiresAtMs: row.expires_at.getTime(),
      isReplacement: row.is_replacement,
    }))[0] ?? null
  );
}

/** Claims the renewal of a token for `leaseMs`. Returns false while another process holds it, or if the app is deleted. */
export async function claimGatewayToken(
  db: Handle,
  vault: Vault,
  key: TokenKey,
  leaseMs: number,
): Promise<boolean> {
  const nowMs = await databaseNow(db);
  const { rowCount } = await db.query(
    `INSERT INTO gateway_token AS t (app_id, connector, credential, claimed_until)
     SELECT app_id, $2, $3, $4 FROM app WHERE app_id = $1
     ON CONFLICT (app_id, connector, credential) DO UPDATE SET claimed_until = excluded.claimed_until
      WHERE t.claimed_until IS NULL OR t.claimed_until < $5`,
    [...valuesOf(vault, key), new Date(nowMs + leaseMs), new Date(nowMs)],
  );
  return (rowCount ?? 0) > 0;
}

/** Saves a renewed token and ends the claim. */
export async function saveGatewayToken(
  db: Handle,
  vault: Vault,
  key: TokenKey,
  token: GatewayToken,
): Promise<void> {
  await db.query(
    `UPDATE gateway_token SET value = $4, made_at = $5, expires_at = $6, is_replacement = $7, claimed_until = NULL
      WHERE app_id = $1 AND connector = $2 AND credential = $3`,
    [
      ...valuesOf(vault, key),
      vault.seal(token.value, sealContext(key)),
      new Date(token.madeAtMs),
      new Date(token.expiresAtMs),
      token.isReplacement,
    ],
  );
}

/** Ends a claim without a new token. */
export async function releaseGatewayToken(db: Handle, vault: Vault, key: TokenKey): Promise<void> {
  await db.query(
    `UPDATE gateway_token SET claimed_until = NULL
      WHERE app_id = $1 AND connector = $2 AND credential = $3`,
    valuesOf(vault, key),
  );
}

/** Deletes expired tokens of unused credentials; returns their number. */
export async function deleteOldGatewayTokens(db: Handle, before: Date): Promise<number> {
  const { rowCount } = await db.query(
    'DELETE FROM gateway_token WHERE expires_at < $1 AND (claimed_until IS NULL OR claimed_until < $1)',
    [before],
  );
  return rowCount ?? 0;
}
