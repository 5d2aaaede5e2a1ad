import type { Vault } from '../../crypto.ts';
import { sealContexts } from '../../domain/apps/seal-contexts.ts';
import {
  type BreakerKey,
  type BreakerState,
  type BreakerView,
  breakerIdOf,
  type GatewayFailure,
  gatewayFailureText,
  type OverrideState,
} from '../../domain/breaker.ts';
import type { ConnectorId } from '../../domain/labels.ts';
import type { Handle } from '../pool.ts';
import { databaseNow, query } from '../query.ts';
import { type ProfileKey, valuesOfKey } from './gateway-limits.ts';

/** NOTIFY channel of changed overrides. */
export const breakerTopic = 'carillon_breaker';

/** Age from which the rows of a dispatcher are ignored. */
const deadAfterSeconds = 10;

/** Condition on the rows of a gateway. `valuesOfKey` returns its values. */
const ofKey = 'app_id = $1 AND connector = $2 AND profile = $3';
const ofProfile = 'app_id = $1 AND connector = $2 AND name = $3';

/** Returns all overrides by breaker id. */
export async function readBreakerOverrides(
  db: Handle,
): Promise<Map<string, { forced: OverrideState; since: Date }>> {
  const rows = await query(db).rows<BreakerKey & { forced: OverrideState; since: Date }>(
    'SELECT app_id AS "appId", connector, profile, forced, since FROM breaker',
  );
  return new Map(rows.map(({ forced, since, ...key }) => [breakerIdOf(key), { forced, since }]));
}

/**
 * Overrides a breaker, or removes the override (null). Notifies all dispatchers when `tx` commits.
 * Returns false if the app has no such profile.
 */
export async function overrideBreaker(
  tx: Handle,
  key: BreakerKey,
  forced: OverrideState | null,
): Promise<boolean> {
  const values = valuesOfKey(key);
  const hasProfile =
    forced === null
      ? await query(tx).hasRows(
          `WITH gone AS (DELETE FROM breaker WHERE ${ofKey}) SELECT FROM push_profile
            WHERE ${ofProfile}`,
          values,
        )
      : await query(tx).hasRows(
          `INSERT INTO breaker (app_id, connector, profile, forced)
           SELECT app_id, connector, name, $4 FROM push_profile WHERE ${ofProfile} FOR KEY SHARE
           ON CONFLICT (app_id, connector, profile) DO UPDATE
              SET forced = excluded.forced,
                  since = CASE WHEN breaker.forced = excluded.forced THEN breaker.since
                    ELSE excluded.since END`,
          [...values, forced],
        );
  await tx.query('SELECT pg_notify($1, $2)', [breakerTopic, breakerIdOf(key)]);
  return hasProfile;
}

type ViewRow = Omit<BreakerView, 'id' | 'lastFailure'> & { reason: string | null; at: Date | null };

/**
 * Lists one breaker per profile over all dispatchers. Its state is the override, otherwise the
 * worst state of the dispatchers (protocol/admin-api.md#breakers). A breaker that never opened
 * counts as closed since its profile was created.
 */
export async function listBreakers(
  db: Handle,
  only: BreakerKey | { appId: string; connector?: never; profile?: never } | null = null,
): Promise<BreakerView[]> {
  const rows = await query(db).rows<ViewRow>(
    `SELECT p.app_id AS "appId", p.connector, p.name AS profile, b.forced,
            coalesce(b.forced, s.state, 'closed') AS state,
            coalesce(b.since, s.since, p.created_at) AS since, f.reason, f.at,
            CASE WHEN b.forced IS NULL THEN s.next_probe_at END AS "nextProbeAt"
       FROM push_profile p
       LEFT JOIN gateway_failure f ON f.app_id = p.app_id AND f.connector = p.connector
         AND f.profile = p.name
       LEFT JOIN breaker b ON b.app_id = p.app_id AND b.connector = p.connector
         AND b.profile = p.name
       LEFT JOIN LATERAL (
         SELECT x.state, x.since, x.next_probe_at FROM breaker_state x
          WHERE x.app_id = p.app_id AND x.connector = p.connector AND x.profile = p.name
            AND (x.state = 'closed' OR x.seen_at > now() - make_interval(secs => $4))
          ORDER BY array_position(ARRAY['open', 'half-open', 'closed'], x.state), x.since DESC
            LIMIT 1) s ON true
      WHERE $1::text IS NULL
        OR (p.app_id = $1 AND ($2::text IS NULL OR p.connector = $2 AND p.name = $3))
      ORDER BY p.app_id, p.connector, p.name`,
    [only?.appId, only?.connector, only?.profile, deadAfterSeconds],
  );
  return rows.map(({ reason, at, ...view }) => ({
    id: breakerIdOf(view),
    ...view,
    lastFailure: reason === null || at === null ? null : { reason, at },
  }));
}

/** Saves a dispatcher's state of one breaker. */
export const saveBreakerState = (
  db: Handle,
  key: BreakerKey,
  own: { dispatcher: string; state: BreakerState; since: Date; probeInMs?: number | null },
) =>
  query(db).run(
    `INSERT INTO breaker_state (app_id, connector, profile, dispatcher, state, since, next_probe_at)
     VALUES ($1, $2, $3, $4, $5, $6, now() + $7 * interval '1 ms')
     ON CONFLICT (app_id, connector, profile, dispatcher) DO UPDATE
        SET state = excluded.state, since = excluded.since, seen_at = excluded.seen_at,
            next_probe_at = excluded.next_probe_at`,
    [...valuesOfKey(key), own.dispatcher, own.state, own.since, own.probeInMs],
  );

/** Locks the states of one breaker until `tx` ends, so that one dispatcher reports a change. */
export const lockBreaker = (tx: Handle, key: BreakerKey) =>
  query(tx).run(`SELECT pg_advisory_xact_lock(hashtext('carillon breaker'), hashtext($1))`, [
    breakerIdOf(key),
  ]);

/** Returns the stored state of a dispatcher's breaker. */
export const findBreakerState = (tx: Handle, key: BreakerKey, dispatcher: string) =>
  query(tx).value<BreakerState>(
    `SELECT state FROM breaker_state WHERE ${ofKey} AND dispatcher = $4`,
    [...valuesOfKey(key), dispatcher],
  );

/** Returns whether a breaker is not closed on another dispatcher. */
export const isOpenElsewhere = (tx: Handle, key: BreakerKey, dispatcher: string) =>
  query(tx).hasRows(
    `SELECT FROM breaker_state WHERE ${ofKey} AND dispatcher <> $4 AND state <> 'closed'
      AND seen_at > now() - make_interval(secs => $5)`,
    [...valuesOfKey(key), dispatcher, deadAfterSeconds],
  );

/** Returns the ids of breakers that are not closed on another dispatcher. */
export async function findFailingElsewhere(db: Handle, dispatcher: string): Promise<string[]> {
  const rows = await query(db).rows<BreakerKey>(
    `SELECT DISTINCT app_id AS "appId", connector, profile FROM breaker_state
      WHERE seen_at > now() - make_interval(secs => $2) AND state <> 'closed' AND dispatcher <> $1`,
    [dispatcher, deadAfterSeconds],
  );
  return rows.map(breakerIdOf);
}

/**
 * Returns whether the gateway has answered another dispatcher since a time. It has if the breaker
 * there closed after a successful probe, or was never open.
 */
export const hasAnsweredElsewhere = (
  db: Handle,
  key: BreakerKey,
  { dispatcher, since }: { dispatcher: string; since: Date },
) =>
  query(db).hasRows(
    `SELECT FROM breaker_state WHERE ${ofKey} AND dispatcher <> $4 AND state = 'closed'
      AND since > $5`,
    [...valuesOfKey(key), dispatcher, since],
  );

/** Deletes states that no dispatcher has renewed for a day. */
export const deleteOldBreakerStates = (db: Handle) =>
  query(db).run("DELETE FROM breaker_state WHERE seen_at < now() - interval '1 day'");

/** Deletes the open states of a stopping dispatcher. */
export const deleteBreakerStatesOf = (db: Handle, dispatcher: string) =>
  query(db).run("DELETE FROM breaker_state WHERE dispatcher = $1 AND state <> 'closed'", [
    dispatcher,
  ]);

/** Records why a gateway is unavailable. A later failure replaces an earlier one. */
export const recordGatewayFailure = (db: Handle, key: BreakerKey, { reason, at }: GatewayFailure) =>
  query(db).run(
    `INSERT INTO gateway_failure (app_id, connector, profile, reason, at)
     SELECT app_id, connector, name, $4, $5 FROM push_profile WHERE ${ofProfile} FOR KEY SHARE
     ON CONFLICT (app_id, connector, profile) DO UPDATE SET reason = $4, at = $5
       WHERE gateway_failure.at < $5`,
    [...valuesOfKey(key), reason, at],
  );

/** Deletes the failure of a gateway that has answered since. */
export const clearGatewayFailure = (db: Handle, key: BreakerKey, answeredAt: Date) =>
  query(db).run(`DELETE FROM gateway_failure WHERE ${ofKey} AND at <= $4`, [
    ...valuesOfKey(key),
    answeredAt,
  ]);

/** Deletes failures that were not renewed since a time, because the gateway is no longer used. */
export const deleteOldGatewayFailures = (db: Handle, before: Date) =>
  query(db).run('DELETE FROM gateway_failure WHERE at < $1', [before]);

/** Finds the current failure of one gateway. */
export const findGatewayFailure = (db: Handle, key: ProfileKey) =>
  query(db).row<GatewayFailure>(
    `SELECT reason, at FROM gateway_failure WHERE ${ofKey}`,
    valuesOfKey(key),
  );

/** Maximum failures in a list. If more gateways fail, they have a common cause. */
const maxListed = 100;

/** Lists the newest failures of all gateways. */
export const listGatewayFailures = (db: Handle) =>
  query(db).rows<
    GatewayFailure & BreakerKey
  >(`SELECT app_id AS "appId", connector, profile, reason, at FROM gateway_failure
      ORDER BY at DESC LIMIT ${maxListed}`);

/** Maximum failing gateways in the text of one push. */
const maxNamedGateways = 5;

/** Returns one line per open push: the unavailable gateways for which recipients are still open. */
export async function describeGatewayFailures(
  db: Handle,
  appId: string,
  pushIds: readonly number[],
): Promise<Map<number, string>> {
  if (pushIds.length === 0) return new Map();
  const rows = await query(db).rows<{ id: number; connector: ConnectorId; reason: string }>(
    `SELECT p.id, f.connector, f.reason
       FROM unnest($2::bigint[]) AS p (id)
       CROSS JOIN LATERAL (
         SELECT g.connector, g.reason FROM gateway_failure g
          WHERE g.app_id = $1
            AND EXISTS (SELECT 1 FROM push_batch b
                         WHERE b.app_id = g.app_id AND b.push_id = p.id AND NOT b.is_settled
                           AND b.connector = g.connector AND b.profile = g.profile)
          ORDER BY g.connector, g.profile LIMIT ${maxNamedGateways}) f`,
    [appId, pushIds],
  );
  const textOf = ({ connector, reason }: (typeof rows)[number]) =>
    `${gatewayFailureText(connector, reason)}; trying again`;
  const byPush = Map.groupBy(rows, ({ id }) => id);
  return new Map(
    [...byPush].map(([id, ofPush]) => [id, [...new Set(ofPush.map(textOf))].join('. ')]),
  );
}

/** Decrypted access token of a gateway. */
interface GatewayToken {
  value: string;
  madeAtMs: number;
  expiresAtMs: number;
  isReplacement: boolean;
}

/** Key of a token. `credential` identifies the credentials, and is stored as a keyed digest. */
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

const ofToken = 'app_id = $1 AND connector = $2 AND credential = $3';
const sealContext = ({ appId, connector }: TokenKey) => sealContexts.gatewayToken(appId, connector);

/** Reads the stored token. Returns undefined if no token is stored. Throws `SealError`. */
export async function readGatewayToken(
  db: Handle,
  vault: Vault,
  key: TokenKey,
): Promise<GatewayToken | null> {
  const row = await query(db).row<Omit<GatewayToken, 'value'> & { value: Buffer }>(
    `SELECT value, (extract(epoch FROM made_at) * 1000)::float8 AS "madeAtMs",
            (extract(epoch FROM expires_at) * 1000)::float8 AS "expiresAtMs",
            is_replacement AS "isReplacement"
       FROM gateway_token WHERE ${ofToken} AND value IS NOT NULL`,
    valuesOf(vault, key),
  );
  return row ? { ...row, value: String(vault.open(row.value, sealContext(key))) } : null;
}

/**
 * Claims the renewal of a token for `leaseMs`. Returns false while another process has the claim.
 */
export async function claimGatewayToken(
  db: Handle,
  vault: Vault,
  key: TokenKey,
  leaseMs: number,
): Promise<boolean> {
  const nowMs = await databaseNow(db);
  return query(db).hasRows(
    `INSERT INTO gateway_token AS t (app_id, connector, credential, claimed_until)
     SELECT app_id, $2, $3, $4 FROM app WHERE app_id = $1
     ON CONFLICT (app_id, connector, credential) DO UPDATE
       SET claimed_until = excluded.claimed_until
      WHERE t.claimed_until IS NULL OR t.claimed_until < $5`,
    [...valuesOf(vault, key), new Date(nowMs + leaseMs), new Date(nowMs)],
  );
}

/** Saves a renewed token and ends the claim. */
export const saveGatewayToken = (db: Handle, vault: Vault, key: TokenKey, token: GatewayToken) =>
  query(db).run(
    `UPDATE gateway_token SET value = $4, made_at = $5, expires_at = $6, is_replacement = $7,
      claimed_until = NULL
      WHERE ${ofToken}`,
    [
      ...valuesOf(vault, key),
      vault.seal(token.value, sealContext(key)),
      new Date(token.madeAtMs),
      new Date(token.expiresAtMs),
      token.isReplacement,
    ],
  );

/** Ends a claim without a new token. */
export const releaseGatewayToken = (db: Handle, vault: Vault, key: TokenKey) =>
  query(db).run(
    `UPDATE gateway_token SET claimed_until = NULL
      WHERE ${ofToken}`,
    valuesOf(vault, key),
  );

/** Deletes expired tokens of unused credentials. Returns their number. */
export const deleteOldGatewayTokens = (db: Handle, before: Date) =>
  query(db).rowCount(
    'DELETE FROM gateway_token WHERE expires_at < $1 AND (claimed_until IS NULL OR claimed_until < $1)',
    [before],
  );
