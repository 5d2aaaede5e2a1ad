import { z } from 'zod';
import type { Vault } from '../../crypto.ts';
import { sealContexts } from '../../domain/apps/seal-contexts.ts';
import {
  type EndpointSecrets,
  endpointSecrets,
  type OffReason,
  type WebhookFormat,
} from '../../domain/webhooks/endpoint.ts';
import type { EventTypeName } from '../../domain/webhooks/event-types.ts';
import type { Handle } from '../pool.ts';
import { prepare } from '../prepared.ts';
import { query } from '../query.ts';

/** NOTIFY channel that wakes the dispatchers: an endpoint has due deliveries. */
export const webhookTopic = 'carillon_webhook';

/** Key of an endpoint. `appId` is an app, or `serviceOwner`. */
export interface EndpointKey {
  appId: string;
  name: string;
}

const valuesOf = ({ appId, name }: EndpointKey) => [appId, name];

/** What an endpoint is configured to do. */
export interface EndpointConfig extends EndpointKey {
  events: EventTypeName[];
  format: WebhookFormat;
  language: 'en' | 'zh' | null;
  isEnabled: boolean;
}

/** An endpoint with its state. */
export interface Endpoint extends EndpointConfig {
  secrets: EndpointSecrets;
  /** Signing key before the last rotation, in base64. It signs too until `previousUntil`. */
  previousKey: string | null;
  previousUntil: Date | null;
  /** Why the service switched the endpoint off. */
  offReason: OffReason | null;
  offAt: Date | null;
  /** Failed attempts since the last success. */
  failures: number;
  failingSince: Date | null;
  /** Events that were dropped because too many deliveries waited. */
  dropped: number;
  droppedAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
}

const columns = `app_id AS "appId", name, events, format, language, secrets, previous_key AS "previousKey",
  previous_until AS "previousUntil", is_enabled AS "isEnabled", off_reason AS "offReason",
  off_at AS "offAt", failures, failing_since AS "failingSince", dropped, dropped_at AS "droppedAt",
  created_at AS "createdAt", updated_at AS "updatedAt"`;

type EndpointRow = Omit<Endpoint, 'secrets' | 'previousKey'> & {
  secrets: Buffer;
  previousKey: Buffer | null;
};

/** Decrypts an endpoint. Throws `SealError`. */
function open(vault: Vault, { secrets, previousKey, ...row }: EndpointRow): Endpoint {
  const { secrets: context, previousKey: previousContext } = contextsOf(row);
  return {
    ...row,
    secrets: endpointSecrets.parse(vault.open(secrets, context)),
    previousKey: previousKey && z.string().parse(vault.open(previousKey, previousContext)),
  };
}

const contextsOf = ({ appId, name }: EndpointKey) => ({
  secrets: sealContexts.webhook(appId, name, 'secrets'),
  previousKey: sealContexts.webhook(appId, name, 'previous_key'),
});

/** Lists the endpoints of an owner by name. Throws `SealError`. */
export async function listEndpoints(db: Handle, vault: Vault, appId: string): Promise<Endpoint[]> {
  const text = `SELECT ${columns} FROM webhook WHERE app_id = $1 ORDER BY name`;
  const rows = await query(db).rows<EndpointRow>(text, [appId]);
  return rows.map((row) => open(vault, row));
}

const findText = `SELECT ${columns} FROM webhook WHERE app_id = $1 AND name = $2`;
const findStatement = prepare(findText);
const lockText = `${findText} FOR NO KEY UPDATE`;

/** Finds an endpoint. `isLocked` locks it until the transaction ends. Throws `SealError`. */
export async function findEndpoint(
  db: Handle,
  vault: Vault,
  key: EndpointKey,
  { isLocked = false } = {},
): Promise<Endpoint | undefined> {
  const row = await query(db).row<EndpointRow>(isLocked ? lockText : findStatement, valuesOf(key));
  return row && open(vault, row);
}

/**
 * Locks the list of endpoints of an owner until `tx` ends, so that a limit is exact. Returns their
 * number.
 */
export async function lockEndpoints(tx: Handle, appId: string): Promise<number> {
  await tx.query("SELECT pg_advisory_xact_lock(hashtext('carillon webhooks'), hashtext($1))", [
    appId,
  ]);
  return query(tx).number('SELECT count(*) AS n FROM webhook WHERE app_id = $1', [appId]);
}

/** An endpoint to store. */
export type StoredEndpoint = EndpointConfig & { secrets: EndpointSecrets };

/**
 * Inserts or replaces an endpoint. An endpoint that is switched on or gets another URL (`isMoved`)
 * forgets its failures, and sends what waits.
 */
export async function saveEndpoint(
  tx: Handle,
  vault: Vault,
  { secrets, ...endpoint }: StoredEndpoint,
  { isMoved = false } = {},
): Promise<Endpoint> {
  const row = await query(tx).one<EndpointRow>(
    `INSERT INTO webhook AS w (app_id, name, events, format, language, secrets, is_enabled)
     VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (app_id, name) DO UPDATE
        SET events = excluded.events, format = excluded.format, language = excluded.language,
            secrets = excluded.secrets, is_enabled = excluded.is_enabled,
            updated_at = excluded.updated_at,
            off_reason = CASE WHEN excluded.is_enabled THEN NULL ELSE w.off_reason END,
            off_at = CASE WHEN excluded.is_enabled THEN NULL ELSE w.off_at END,
            failures = CASE WHEN w.is_enabled AND NOT $8 THEN w.failures ELSE 0 END,
            failing_since = CASE WHEN w.is_enabled AND NOT $8 THEN w.failing_since END,
            due_at = CASE WHEN excluded.is_enabled THEN excluded.updated_at ELSE w.due_at END,
            is_paused = false
     RETURNING ${columns}`,
    [
      ...valuesOf(endpoint),
      endpoint.events,
      endpoint.format,
      endpoint.language,
      vault.seal(secrets, contextsOf(endpoint).secrets),
      endpoint.isEnabled,
      isMoved,
    ],
  );
  await notify(tx);
  return open(vault, row);
}

/** Replaces the signing key. The old key signs too until `previousUntil`. */
export const saveKey = (
  tx: Handle,
  vault: Vault,
  { secrets, ...key }: EndpointKey & { secrets: EndpointSecrets },
  { key: newKey, previousUntil }: { key: string; previousUntil: Date },
) =>
  query(tx).run(
    `UPDATE webhook SET secrets = $3, previous_key = $4, previous_until = $5, updated_at = now()
      WHERE app_id = $1 AND name = $2`,
    [
      ...valuesOf(key),
      vault.seal({ ...secrets, key: newKey }, contextsOf(key).secrets),
      vault.seal(secrets.key, contextsOf(key).previousKey),
      previousUntil,
    ],
  );

/** Deletes an endpoint with its deliveries. Returns false if it does not exist. */
export const deleteEndpoint = (tx: Handle, key: EndpointKey) =>
  query(tx).hasRows('DELETE FROM webhook WHERE app_id = $1 AND name = $2', valuesOf(key));

const notify = (tx: Handle) => query(tx).run(`SELECT pg_notify($1, '')`, [webhookTopic]);

/** An enabled endpoint, as the processes that write events need it. */
export interface Subscription {
  name: string;
  events: string[];
  /** True if the limit of waiting deliveries is reached. */
  isFull: boolean;
}

/** SQL of the subscriptions of an owner, as JSON. Null without enabled endpoints. */
export const subscriptionsSql = (owner: string): string =>
  `(SELECT jsonb_agg(jsonb_build_object('name', w.name, 'events', w.events, 'isFull', w.is_full))
      FROM webhook w WHERE w.app_id = ${owner} AND w.is_enabled)`;

const subscriptionsStatement = prepare(
  'SELECT name, events, is_full AS "isFull" FROM webhook WHERE app_id = $1 AND is_enabled',
);

/** Reads the subscriptions of an owner. */
export const readSubscriptions = (db: Handle, appId: string) =>
  query(db).rows<Subscription>(subscriptionsStatement, [appId]);

/** Lists the enabled endpoints of all owners that subscribe to a type. */
export const listSubscribers = (db: Handle, type: EventTypeName) =>
  query(db).rows<EndpointKey & { isFull: boolean }>(
    `SELECT app_id AS "appId", name, is_full AS "isFull" FROM webhook
      WHERE is_enabled AND $1 = ANY (events) ORDER BY app_id, name`,
    [type],
  );

/** Adds to the number of dropped events of an endpoint. */
export const addDropped = (db: Handle, key: EndpointKey, events: number) =>
  query(db).run(
    'UPDATE webhook SET dropped = dropped + $3, dropped_at = now() WHERE app_id = $1 AND name = $2',
    [...valuesOf(key), events],
  );

/** Sets `is_full` of the endpoints with `limit` or more waiting deliveries. */
export async function updateFull(db: Handle, limit: number): Promise<void> {
  const changed = await query(db).rows<EndpointKey & { isFull: boolean }>(
    `SELECT w.app_id AS "appId", w.name, NOT w.is_full AS "isFull" FROM webhook w
       LEFT JOIN (SELECT app_id, webhook, count(*) AS n FROM webhook_delivery
                   WHERE state = 'waiting' GROUP BY app_id, webhook) AS d
         ON d.app_id = w.app_id AND d.webhook = w.name
      WHERE w.is_full <> (coalesce(d.n, 0) >= $1)`,
    [limit],
  );
  // One statement for each endpoint, because a sharded database updates rows of one app at a time.
  for (const { isFull, ...key } of changed)
    await db.query('UPDATE webhook SET is_full = $3 WHERE app_id = $1 AND name = $2', [
      ...valuesOf(key),
      isFull,
    ]);
}

const shareStatement = prepare(
  `SELECT name, NOT is_paused AND (due_at IS NULL OR due_at > now()) AS "mustWake" FROM webhook
    WHERE app_id = $1 AND name = ANY ($2) AND is_enabled ORDER BY name FOR KEY SHARE`,
);

/**
 * Locks enabled endpoints against the end of a run (`endRun`) and against deletion, until `tx`
 * ends. Returns those that exist, and whether they must be woken (`wakeEndpoints`).
 */
export const shareEndpoints = (tx: Handle, appId: string, names: readonly string[]) =>
  query(tx).rows<{ name: string; mustWake: boolean }>(shareStatement, [appId, names]);

/**
 * Updates endpoints of one app, and returns their names. All such statements lock the rows in the
 * order of the names, so that two transactions cannot deadlock.
 */
const updateInOrder = (condition: string, change: string): string =>
  `WITH locked AS (
     SELECT name FROM webhook WHERE app_id = $1 AND name = ANY ($2) AND (${condition})
      ORDER BY name FOR NO KEY UPDATE)
   UPDATE webhook w SET ${change} FROM locked
    WHERE w.app_id = $1 AND w.name = locked.name RETURNING w.name`;

const wakeStatement = prepare(updateInOrder('due_at IS NULL OR due_at > now()', 'due_at = now()'));

/** Makes endpoints due now, and wakes the dispatchers when `tx` commits. */
export async function wakeEndpoints(
  tx: Handle,
  appId: string,
  names: readonly string[],
): Promise<void> {
  await tx.query(wakeStatement, [appId, names]);
  await notify(tx);
}

/** A dispatcher, and how long it may send to the endpoints that it claims. */
interface Lease {
  dispatcher: string;
  leaseMs: number;
}

const dueStatement = prepare(
  `SELECT app_id AS "appId", name FROM webhook
    WHERE due_at <= now() AND (leased_until IS NULL OR leased_until < now())
    ORDER BY due_at LIMIT $1`,
);

/**
 * Claims up to `limit` due endpoints for a dispatcher, longest waiting first. No other dispatcher
 * sends to them until the lease ends.
 */
export async function claimEndpoints(
  db: Handle,
  { dispatcher, leaseMs }: Lease,
  limit: number,
): Promise<EndpointKey[]> {
  const due = await query(db).rows<EndpointKey>(dueStatement, [limit]);
  const claimed: EndpointKey[] = [];
  // One statement for each app, because a sharded database cannot lock rows of several apps.
  for (const [appId, ofApp] of Map.groupBy(due, (key) => key.appId)) {
    const names = ofApp.map(({ name }) => name);
    const ours = await query(db).column<string>(claimText, [appId, names, dispatcher, leaseMs]);
    claimed.push(...ours.map((name) => ({ appId, name })));
  }
  return claimed;
}

const claimText = updateInOrder(
  'due_at <= now() AND (leased_until IS NULL OR leased_until < now())',
  `leased_by = $3, leased_until = now() + $4 * interval '1 ms', is_paused = false`,
);

/** Extends the leases that a dispatcher still has on these endpoints. */
export async function renewLeases(
  db: Handle,
  { dispatcher, leaseMs }: Lease,
  keys: readonly EndpointKey[],
): Promise<void> {
  // One statement for each app, because a sharded database cannot lock rows of several apps.
  for (const [appId, ofApp] of Map.groupBy(keys, (key) => key.appId))
    await query(db).run(renewText, [appId, ofApp.map(({ name }) => name), dispatcher, leaseMs]);
}

const renewText = updateInOrder('leased_by = $3', `leased_until = now() + $4 * interval '1 ms'`);

interface RunEnd {
  dispatcher: string;
  isEnabled: boolean;
  /** Set if the endpoint does not answer: nothing is sent for this time. */
  pauseMs?: number | undefined;
}

/**
 * Ends the run of a dispatcher on an endpoint, and sets when the next one is due. Returns false if
 * deliveries are due or are being written: the run must continue. Needs a transaction.
 */
export async function endRun(tx: Handle, key: EndpointKey, end: RunEnd): Promise<boolean> {
  const values = valuesOf(key);
  const isPause = end.pauseMs !== undefined;
  // A transaction that writes an event holds a lock (KEY SHARE) that conflicts with UPDATE. A
  // delivery by hand has a stronger lock. A pause waits for it, but not for events.
  const locked = await query(tx).row<{ isOurs: boolean }>(
    `SELECT leased_by = $3 AS "isOurs" FROM webhook WHERE app_id = $1 AND name = $2
      FOR ${isPause ? 'NO KEY UPDATE' : 'UPDATE SKIP LOCKED'}`,
    [...values, end.dispatcher],
  );
  if (!locked)
    return !(await query(tx).hasRows(
      'SELECT FROM webhook WHERE app_id = $1 AND name = $2',
      values,
    ));
  if (!locked.isOurs) return true;
  if (isPause) return query(tx).hasRows(pauseText, [...values, end.pauseMs]);
  return query(tx).hasRows(
    `UPDATE webhook w SET due_at = n.next_at, leased_by = NULL, leased_until = NULL
       FROM (SELECT min(next_at) AS next_at FROM webhook_delivery
              WHERE app_id = $1 AND webhook = $2 AND state = 'waiting' AND (is_manual OR $3)) AS n
      WHERE w.app_id = $1 AND w.name = $2 AND (n.next_at IS NULL OR n.next_at > now())`,
    [...values, end.isEnabled],
  );
}

/** A delivery by hand does not wait for the end of a pause. */
const pauseText = `UPDATE webhook w SET due_at = now() + $3::float8 * interval '1 ms', is_paused = true,
    leased_by = NULL, leased_until = NULL
  WHERE w.app_id = $1 AND w.name = $2
    AND NOT EXISTS (SELECT FROM webhook_delivery d WHERE d.app_id = w.app_id AND d.webhook = w.name
                       AND d.state = 'waiting' AND d.is_manual)`;

/** Gives claimed endpoints back, due now. */
export const releaseEndpoints = (db: Handle, dispatcher: string, name: EndpointKey | null = null) =>
  query(db).run(
    `UPDATE webhook SET due_at = now(), leased_by = NULL, leased_until = NULL
      WHERE leased_by = $1 AND ($2::text IS NULL OR app_id = $2 AND name = $3)`,
    [dispatcher, name?.appId, name?.name],
  );

/** Failures of an endpoint since its last success. */
export interface EndpointFailures {
  failures: number;
  failingSince: Date;
}

/**
 * Counts a failed attempt. Returns the failures since the last success. Returns undefined if the
 * settings have changed since they were read: the attempt says nothing about a new URL.
 */
export const countFailure = (
  tx: Handle,
  endpoint: Pick<Endpoint, keyof EndpointKey | 'updatedAt'>,
) =>
  query(tx).row<EndpointFailures>(
    // A sharded database computes `now()` outside of `coalesce`.
    `WITH times AS MATERIALIZED (SELECT now() AS now)
     UPDATE webhook SET failures = failures + 1,
            failing_since = coalesce(failing_since, times.now)
       FROM times
      WHERE app_id = $1 AND name = $2 AND updated_at = $3
     RETURNING failures, failing_since AS "failingSince"`,
    [...valuesOf(endpoint), endpoint.updatedAt],
  );

/** Forgets the failures of an endpoint after a success. */
export const clearFailures = (db: Handle, key: EndpointKey) =>
  query(db).run(
    `UPDATE webhook SET failures = 0, failing_since = NULL
      WHERE app_id = $1 AND name = $2 AND failures > 0`,
    valuesOf(key),
  );

/** Switches an endpoint off. Returns false if it was off. */
export const switchOff = (tx: Handle, key: EndpointKey, reason: OffReason) =>
  query(tx).hasRows(
    `UPDATE webhook SET is_enabled = false, off_reason = $3, off_at = now(), updated_at = now()
      WHERE app_id = $1 AND name = $2 AND is_enabled`,
    [...valuesOf(key), reason],
  );

/** An endpoint that the service switched off, or that drops events. */
export interface TroubledEndpoint extends EndpointKey {
  offReason: OffReason | null;
  at: Date;
}

/**
 * Lists endpoints that the service switched off, and those that dropped events within a day. `apps`:
 * null for all owners.
 */
export const listTroubled = (db: Handle, apps: readonly string[] | null, limit: number) =>
  query(db).rows<TroubledEndpoint>(
    `SELECT app_id AS "appId", name, off_reason AS "offReason", coalesce(off_at, dropped_at) AS at
       FROM webhook
      WHERE ($1::text[] IS NULL OR app_id = ANY ($1))
        AND (off_reason IS NOT NULL OR dropped_at > now() - interval '1 day')
      ORDER BY app_id, name LIMIT $2`,
    [apps, limit],
  );
