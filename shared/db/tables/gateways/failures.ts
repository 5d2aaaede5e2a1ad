import { type BreakerKey, type GatewayFailure, gatewayFailureText } from '../../../domain/breaker.ts';
import type { ConnectorId } from '../../../domain/labels.ts';
import type { Handle } from '../../pool.ts';

/** Records why a gateway is unavailable; a later failure replaces an earlier one. */
export async function recordGatewayFailure(
  db: Handle,
  { appId, connector, profile }: BreakerKey,
  { reason, at }: GatewayFailure,
): Promise<void> {
  await db.query(
    `INSERT INTO gateway_failure (app_id, connector, profile, reason, at)
     SELECT app_id, connector, name, $4, $5 FROM push_profile
      WHERE app_id = $1 AND connector = $2 AND name = $3 FOR KEY SHARE
     ON CONFLICT (app_id, connector, profile) DO UPDATE SET reason = $4, at = $5 WHERE gateway_failure.at < $5`,
    [appId, connector, profile, reason, at],
  );
}

/** Deletes the failure of a gateway that has responded since. */
export async function clearGatewayFailure(
  db: Handle,
  { appId, connector, profile }: BreakerKey,
  answeredAt: Date,
): Promise<void> {
  await db.query(
    'DELETE FROM gateway_failure WHERE app_id = $1 AND connector = $2 AND profile = $3 AND at <= $4',
    [appId, connector, profile, answeredAt],
  );
}

/** Deletes failures that were not renewed since a time: the gateway is not in use. */
export async function deleteOldGatewayFailures(db: Handle, before: Date): Promise<void> {
  await db.query('DELETE FROM gateway_failure WHERE at < $1', [before]);
}

/** Finds the current failure of one gateway. */
export async function findGatewayFailure(
  db: Handle,
  { appId, connector, profile }: { appId: string; connector: string; profile: string },
): Promise<GatewayFailure | undefined> {
  const { rows } = await db.query<GatewayFailure>(
    'SELECT reason, at FROM gateway_failure WHERE app_id = $1 AND connector = $2 AND profile = $3',
    [appId, connector, profile],
  );
  return rows[0];
}

/** Limit of listed failures; more gateways fail only for a common reason. */
const maxListed = 100;

/** Lists the newest failures of all gateways. */
export async function listGatewayFailures(db: Handle): Promise<(GatewayFailure & BreakerKey)[]> {
  const { rows } = await db.query<GatewayFailure & BreakerKey>(
    `SELECT app_id AS "appId", connector, profile, reason, at FROM gateway_failure
      ORDER BY at DESC LIMIT ${maxListed}`,
  );
  return rows;
}

/** Limit of failing gateways in the text of one push. */
const maxToldOf = 5;

/**
 * Returns one line per open push with the unavailable gateways that still have recipients of it.
 */
export async function describeGatewayFailures(
  db: Handle,
  appId: string,
  pushIds: readonly number[],
): Promise<Map<number, string>> {
  if (pushIds.length === 0) return new Map();
  const { rows } = await db.query<{ id: number; connector: ConnectorId; reason: string }>(
    `SELECT p.id, f.connector, f.reason
       FROM unnest($2::bigint[]) AS p (id)
       CROSS JOIN LATERAL (
         SELECT g.connector, g.reason FROM gateway_failure g
          WHERE g.app_id = $1
            AND EXISTS (SELECT 1 FROM push_batch b
                         WHERE b.app_id = g.app_id AND b.push_id = p.id AND NOT b.is_settled
                           AND b.connector = g.connector AND b.profile = g.profile)
          ORDER BY g.connector, g.profile LIMIT ${maxToldOf}) f`,
    [appId, pushIds],
  );
  const lines = new Map<number, string[]>();
  for (const { id, connector, reason } of rows) {
    const known = lines.get(id) ?? [];
    const line = `${gatewayFailureText(connector, reason)}; trying again`;
    if (!known.includes(line)) lines.set(id, [...known, line]);
  }
  return new Map([...lines].map(([id, texts]) => [id, texts.join('. ')]));
}
