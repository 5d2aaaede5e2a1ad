import {
  type BreakerKey,
  type BreakerState,
  type BreakerView,
  breakerIdOf,
  type OverrideState,
} from '../../../domain/breaker.ts';
import type { ConnectorId } from '../../../domain/labels.ts';
import type { Handle } from '../../pool.ts';

/** NOTIFY topic of changed overrides. */
export const breakerTopic = 'carillon_breaker';

/** Age from which the rows of a dispatcher are ignored. */
const deadAfterSeconds = 10;

/** Returns all overrides by breaker id. */
export async function readBreakerOverrides(
  db: Handle,
): Promise<Map<string, { forced: OverrideState; since: Date }>> {
  const { rows } = await db.query<{
    app_id: string;
    connector: ConnectorId;
    profile: string;
    forced: OverrideState;
    since: Date;
  }>('SELECT app_id, connector, profile, forced, since FROM breaker');
  return new Map(
    rows.map(({ app_id: appId, connector, profile, forced, since }) => [
      breakerIdOf({ connector, appId, profile }),
      { forced, since },
    ]),
  );
}

/**
 * Overrides a breaker, or removes the override (null), and notifies all dispatchers once `tx` commits. Returns false if
 * the app has no such profile.
 */
export async function overrideBreaker(
  tx: Handle,
  { appId, connector, profile }: BreakerKey,
  forced: OverrideState | null,
): Promise<boolean> {
  const key = [appId, connector, profile];
  const { rowCount } =
    forced === null
      ? await tx.query(
          `WITH gone AS (DELETE FROM breaker WHERE app_id = $1 AND connector = $2 AND profile = $3)
           SELECT 1 FROM push_profile WHERE app_id = $1 AND connector = $2 AND name = $3`,
          key,
        )
      : await tx.query(
          `INSERT INTO breaker (app_id, connector, profile, forced)
           SELECT app_id, connector, name, $4 FROM push_profile
            WHERE app_id = $1 AND connector = $2 AND name = $3 FOR KEY SHARE
           ON CONFLICT (app_id, connector, profile) DO UPDATE
              SET forced = excluded.forced,
                  since = CASE WHEN breaker.forced = excluded.forced THEN breaker.since ELSE excluded.since END`,
          [...key, forced],
        );
  await tx.query('SELECT pg_notify($1, $2)', [breakerTopic, breakerIdOf({ appId, connector, profile })]);
  return (rowCount ?? 0) > 0;
}

interface ViewRow {
  app_id: string;
  connector: ConnectorId;
  profile: string;
  state: BreakerState;
  forced: OverrideState | null;
  since: Date;
  reason: string | null;
  at: Date | null;
  next_probe_at: Date | null;
}

/**
 * Lists one breaker per profile over all dispatchers: the override, else the worst of their states
 * (protocol/admin-api.md#breakers). A breaker that never opened is closed since its profile was created.
 */
export async function listBreakers(
  db: Handle,
  only: BreakerKey | { appId: string; connector?: never; profile?: never } | null = null,
): Promise<BreakerView[]> {
  const { rows } = await db.query<ViewRow>(
    `SELECT p.app_id, p.connector, p.name AS profile, b.forced,
            coalesce(b.forced, s.state, 'closed') AS state, coalesce(b.since, s.since, p.created_at) AS since,
            f.reason, f.at, CASE WHEN b.forced IS NULL THEN s.next_probe_at END AS next_probe_at
       FROM push_profile p
       LEFT JOIN gateway_failure f ON f.app_id = p.app_id AND f.connector = p.connector AND f.profile = p.name
       LEFT JOIN breaker b ON b.app_id = p.app_id AND b.connector = p.connector AND b.profile = p.name
       LEFT JOIN LATERAL (
         SELECT x.state, x.since, x.next_probe_at FROM breaker_state x
          WHERE x.app_id = p.app_id AND x.connector = p.connector AND x.profile = p.name
            AND (x.state = 'closed' OR x.seen_at > now() - make_interval(secs => $4))
          ORDER BY array_position(ARRAY['open', 'half-open', 'closed'], x.state), x.since DESC LIMIT 1) s ON true
      WHERE $1::text IS NULL OR (p.app_id = $1 AND ($2::text IS NULL OR p.connector = $2 AND p.name = $3))
      ORDER BY p.app_id, p.connector, p.name`,
    [only?.appId ?? null, only?.connector ?? null, only?.profile ?? null, deadAfterSeconds],
  );
  return rows.map(({ app_id: appId, connector, profile, state, forced, since, reason, at, ...row }) => {
    const key = { connector, appId, profile };
    const lastFailure = reason === null || at === null ? null : { reason, at };
    return {
      id: breakerIdOf(key),
      ...key,
      state,
      forced,
      since,
      nextProbeAt: row.next_probe_at,
      lastFailure,
    };
  });
}

/** Saves a dispatcher's state of one breaker. */
export async function saveBreakerState(
  db: Handle,
  { appId, connector, profile }: BreakerKey,
  {
    dispatcher,
    state,
    since,
    probeInMs = null,
  }: { dispatcher: string; state: BreakerState; since: Date; probeInMs?: number | null },
): Promise<void> {
  await db.query(
    `INSERT INTO breaker_state (app_id, connector, profile, dispatcher, state, since, next_probe_at)
     VALUES ($1, $2, $3, $4, $5, $6, now() + $7 * interval '1 ms')
     ON CONFLICT (app_id, connector, profile, dispatcher) DO UPDATE
        SET state = excluded.state, since = excluded.since, seen_at = excluded.seen_at,
            next_probe_at = excluded.next_probe_at`,
    [appId, connector, profile, dispatcher, state, since, probeInMs],
  );
}

/** Returns the ids of the breakers that are not closed at another dispatcher. */
export async function findTroubledElsewhere(db: Handle, dispatcher: string): Promise<string[]> {
  const { rows } = await db.query<{ app_id: string; connector: ConnectorId; profile: string }>(
    `SELECT DISTINCT app_id, connector, profile FROM breaker_state
      WHERE seen_at > now() - make_interval(secs => $2) AND state <> 'closed' AND dispatcher <> $1`,
    [dispatcher, deadAfterSeconds],
  );
  return rows.map(({ app_id: appId, connector, profile }) => breakerIdOf({ connector, appId, profile }));
}

/**
 * Returns whether the gateway has answered another dispatcher since a time: its breaker closed after a successful probe,
 * or was closed all the time.
 */
export async function hasAnsweredElsewhere(
  db: Handle,
  { appId, connector, profile }: BreakerKey,
  { dispatcher, since }: { dispatcher: string; since: Date },
): Promise<boolean> {
  const { rowCount } = await db.query(
    `SELECT 1 FROM breaker_state
      WHERE app_id = $1 AND connector = $2 AND profile = $3 AND dispatcher <> $4 AND state = 'closed' AND since > $5`,
    [appId, connector, profile, dispatcher, since],
  );
  return (rowCount ?? 0) > 0;
}

/** Deletes states that no dispatcher has renewed for a day. */
export async function deleteOldBreakerStates(db: Handle): Promise<void> {
  await db.query("DELETE FROM breaker_state WHERE seen_at < now() - interval '1 day'");
}

/** Deletes the open states of a stopping dispatcher. */
export async function deleteBreakerStatesOf(db: Handle, dispatcher: string): Promise<void> {
  await db.query("DELETE FROM breaker_state WHERE dispatcher = $1 AND state <> 'closed'", [dispatcher]);
}
