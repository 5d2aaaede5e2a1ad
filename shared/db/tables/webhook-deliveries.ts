import type { JsonObject } from '../../domain/json.ts';
import type { ConnectorId } from '../../domain/labels.ts';
import type { EventTypeName } from '../../domain/webhooks/event-types.ts';
import type { Handle } from '../pool.ts';
import { prepare } from '../prepared.ts';
import { type PageBefore, query } from '../query.ts';
import type { EndpointKey } from './webhooks.ts';

/** An event to write, for the endpoints of one owner. */
export interface NewEvent {
  type: EventTypeName;
  /** App of the event; an empty text for an event of the service. */
  sourceApp: string;
  /** `data` of the event. Absent for recipients of a batch. */
  data?: object | undefined;
  /** Batch, and the position of its first recipient. */
  batchId?: number | undefined;
  firstIndex?: number | undefined;
  /** A second event with the same key is not written. */
  onceKey?: string | undefined;
}

const insertStatement = prepare(
  `INSERT INTO webhook_delivery (app_id, webhook, type, source_app, occurred_at, data, batch_id,
     first_index, once_key)
   SELECT $1, webhook, type, "sourceApp", now(), data, "batchId", "firstIndex", "onceKey"
     FROM json_to_recordset($2) AS r (webhook text, type text, "sourceApp" text, data jsonb,
       "batchId" bigint, "firstIndex" int, "onceKey" text)
   ON CONFLICT (app_id, webhook, once_key) WHERE once_key IS NOT NULL DO NOTHING`,
);

/** Writes events for endpoints of one owner. Returns the number of deliveries. */
export const insertDeliveries = (
  tx: Handle,
  appId: string,
  deliveries: readonly (NewEvent & { webhook: string })[],
) => query(tx).rowCount(insertStatement, [appId, JSON.stringify(deliveries)]);

/** A delivery that is due. */
export interface DueDelivery {
  id: number;
  type: string;
  sourceApp: string;
  occurredAt: Date;
  data: JsonObject | null;
  batchId: number | null;
  firstIndex: number | null;
  attempts: number;
  isManual: boolean;
  createdAt: Date;
  /** Set if the delivery had ended before it was sent again by hand. */
  endedAt: Date | null;
}

const dueColumns = `id, type, source_app AS "sourceApp", occurred_at AS "occurredAt", data,
  batch_id AS "batchId", first_index AS "firstIndex", attempts, is_manual AS "isManual",
  created_at AS "createdAt", ended_at AS "endedAt"`;

const dueStatement = prepare(
  `SELECT ${dueColumns} FROM webhook_delivery
    WHERE app_id = $1 AND webhook = $2 AND state = 'waiting' AND next_at <= now()
      AND (is_manual OR $3) AND id <> ALL ($4::bigint[])
    ORDER BY next_at LIMIT $5`,
);

/**
 * Returns due deliveries of an endpoint, longest waiting first. An endpoint that is off sends only
 * redeliveries. `except`: ids of deliveries in work.
 */
export const listDue = (
  db: Handle,
  { appId, name }: EndpointKey,
  { isEnabled, except, limit }: { isEnabled: boolean; except: readonly number[]; limit: number },
) =>
  query(db).rows<DueDelivery>(dueStatement, [appId, name, isEnabled, `{${except.join()}}`, limit]);

/** Result of an attempt, or of a delivery that needs none. */
export interface AttemptResult {
  state: 'waiting' | 'delivered' | 'failed';
  /** HTTP status; null without a response. */
  status: number | null;
  /** Why it failed; null for a success. */
  reason: string | null;
  /** Beginning of the response. */
  response: string | null;
  /** Wait before the next attempt, in ms. Null if there is none. */
  afterMs: number | null;
  /** False if the delivery ended without a request. */
  isAttempt: boolean;
}

/** `times`: a sharded database computes times outside of CASE and of the columns. */
const recordStatement = prepare(
  `WITH times AS MATERIALIZED (
     SELECT now() AS now, now() + $7::float8 * interval '1 ms' AS next)
   UPDATE webhook_delivery
      SET state = $3, status = $4, reason = $5, response = $6, attempts = attempts + $8::int,
          attempted_at = CASE WHEN $8::int > 0 THEN times.now ELSE attempted_at END,
          next_at = times.next,
          ended_at = CASE WHEN $3 = 'waiting' THEN NULL ELSE times.now END, is_manual = false
     FROM times
    WHERE app_id = $1 AND webhook = $9 AND id = $2 AND state = 'waiting'`,
);

/** Records an attempt. Does nothing if the delivery has ended. */
export const recordAttempt = (
  db: Handle,
  { appId, name }: EndpointKey,
  id: number,
  result: AttemptResult,
) =>
  query(db).run(recordStatement, [
    appId,
    id,
    ...[result.state, result.status, result.reason, result.response, result.afterMs],
    result.isAttempt ? 1 : 0,
    name,
  ]);

/** Number of waiting deliveries of an endpoint, and when the oldest was written. */
export interface Backlog extends EndpointKey {
  waiting: number;
  oldestAt: Date | null;
}

/** Counts the waiting deliveries of an owner's endpoints. Endpoints without any are absent. */
export const countWaiting = (db: Handle, appId: string) =>
  query(db).rows<Backlog>(
    `SELECT app_id AS "appId", webhook AS name, count(*) AS waiting, min(created_at) AS "oldestAt"
       FROM webhook_delivery WHERE app_id = $1 AND state = 'waiting' GROUP BY app_id, webhook`,
    [appId],
  );

/** Waiting deliveries of an owner, and its endpoints that the service switched off. */
export interface WebhookUse {
  appId: string;
  waiting: number;
  oldestSeconds: number;
  off: number;
}

/**
 * Lists the owners with endpoints, the longest waiting first. Deliveries of endpoints that are off
 * do not count as waiting.
 */
export const listWebhookUse = (db: Handle, limit: number) =>
  query(db).rows<WebhookUse>(
    `SELECT w.app_id AS "appId", coalesce(sum(d.n) FILTER (WHERE w.is_enabled), 0)::bigint AS waiting,
            coalesce(extract(epoch FROM now() - min(d.oldest_at) FILTER (WHERE w.is_enabled)),
              0)::float8 AS "oldestSeconds",
            count(w.off_reason) AS off
       FROM webhook w
       LEFT JOIN (SELECT app_id, webhook, count(*) AS n, min(created_at) AS oldest_at
                    FROM webhook_delivery WHERE state = 'waiting' GROUP BY app_id, webhook) AS d
         ON d.app_id = w.app_id AND d.webhook = w.name
      GROUP BY w.app_id ORDER BY "oldestSeconds" DESC, off DESC, w.app_id LIMIT $1`,
    [limit],
  );

/** A delivery as a list shows it. */
export interface DeliveryRow {
  id: number;
  type: string;
  sourceApp: string;
  state: 'waiting' | 'delivered' | 'failed';
  attempts: number;
  status: number | null;
  reason: string | null;
  response: string | null;
  nextAt: Date | null;
  attemptedAt: Date | null;
  occurredAt: Date;
  createdAt: Date;
}

const rowColumns = `id, type, source_app AS "sourceApp", state, attempts, status, reason, response,
  next_at AS "nextAt", attempted_at AS "attemptedAt", occurred_at AS "occurredAt",
  created_at AS "createdAt"`;

/** Lists deliveries of an endpoint, newest first. */
export const listDeliveries = (
  db: Handle,
  { appId, name }: EndpointKey,
  { state, type }: { state?: string | undefined; type?: string | undefined },
  page: PageBefore,
) =>
  query(db).rows<DeliveryRow>(
    `SELECT ${rowColumns} FROM webhook_delivery
      WHERE app_id = $1 AND webhook = $2 AND ($3::text IS NULL OR state = $3)
        AND ($4::text IS NULL OR type = $4) AND ($5::bigint IS NULL OR id < $5)
      ORDER BY id DESC LIMIT $6`,
    [appId, name, state, type, page.before, page.limit],
  );

/** Makes a delivery due now, by hand. Returns undefined if it does not exist. */
export const redeliver = (tx: Handle, { appId, name }: EndpointKey, id: number) =>
  query(tx).row<DeliveryRow>(
    `UPDATE webhook_delivery SET state = 'waiting', is_manual = true, next_at = now()
      WHERE app_id = $1 AND webhook = $2 AND id = $3 RETURNING ${rowColumns}`,
    [appId, name, id],
  );

/** Writes a delivery that is sent even if the endpoint is off. */
export const insertManual = (
  tx: Handle,
  { appId, name }: EndpointKey,
  { type, data }: { type: string; data: object },
) =>
  query(tx).one<DeliveryRow>(
    `INSERT INTO webhook_delivery (app_id, webhook, type, source_app, occurred_at, data, is_manual)
     VALUES ($1, $2, $3, $1, now(), $4, true) RETURNING ${rowColumns}`,
    [appId, name, type, data],
  );

/**
 * Deletes deliveries from before a time, and the oldest finished deliveries of endpoints with more
 * than `kept` deliveries, up to `limit` of each endpoint. Returns the largest number of one endpoint.
 * A delivery with a `once_key` stays until that time, because its event would be written again.
 */
export async function deleteOldDeliveries(
  db: Handle,
  { before, kept, limit }: { before: Date; kept: number; limit: number },
): Promise<number> {
  const endpoints = await query(db).rows<EndpointKey>(
    'SELECT app_id AS "appId", name FROM webhook',
  );
  let largest = 0;
  // One statement for each endpoint, so that each of them reads only the oldest rows of an index.
  // Its condition is on `d`, because a delivery may have been sent again since `oldest` was read.
  for (const { appId, name } of endpoints) {
    const deleted = await query(db).rowCount(
      `WITH oldest AS MATERIALIZED (
         SELECT id FROM webhook_delivery
          WHERE app_id = $1 AND webhook = $2
            AND (created_at < $3 OR state <> 'waiting' AND once_key IS NULL)
          ORDER BY id LIMIT $5),
       surplus AS (
         SELECT id FROM webhook_delivery
          WHERE app_id = $1 AND webhook = $2 ORDER BY id DESC OFFSET $4 LIMIT 1)
       DELETE FROM webhook_delivery d USING oldest o
        WHERE d.app_id = $1 AND d.webhook = $2 AND d.id = o.id
          AND (d.created_at < $3
            OR d.state <> 'waiting' AND d.once_key IS NULL
              AND d.id <= (SELECT id FROM surplus))`,
      [appId, name, before, kept, limit],
    );
    largest = Math.max(largest, deleted);
  }
  return largest;
}

/** A part of a settled batch: up to 500 recipients. */
export interface BatchPart {
  appId: string;
  batchId: number;
  first: number;
  count: number;
}

/** Outcomes of a part of a batch. */
export interface PartOutcomes {
  objectId: string;
  connector: ConnectorId;
  /** One byte for each recipient (`RecipientStates`). */
  states: Buffer;
  /** Public ids of the recipients, separated by commas. Empty for a deleted installation. */
  objectIds: string;
  /** Message id of the gateway, if one message covers all sent recipients of the batch. */
  messageId: string | null;
}

/** SQL of the recipients of a part, as `r (id, n)`. */
const partSql = `unnest(b.recipients[$3::int + 1 : $3::int + $4::int]) WITH ORDINALITY AS r (id, n)`;

/**
 * If the ids of a part are within this span, one scan of the index reads them in a quarter of the
 * time of single look-ups.
 */
const denseSpan = 2000;

const outcomesStatement = prepare(
  `SELECT n.object_id AS "objectId", b.connector,
          substring(b.settled FROM $3::int + 1 FOR $4::int) AS states,
          (SELECT string_agg(coalesce(i.object_id, ''), ',' ORDER BY r.n) FROM ${partSql}
             LEFT JOIN (
               SELECT id, object_id FROM installation
                WHERE app_id = $1 AND id BETWEEN e.lo AND e.hi AND e.hi - e.lo < ${denseSpan}
               UNION ALL
               SELECT i.id, i.object_id FROM ${partSql} JOIN installation i
                   ON i.app_id = $1 AND i.id = r.id
                WHERE e.hi - e.lo >= ${denseSpan}) AS i ON i.id = r.id) AS "objectIds",
          (SELECT CASE WHEN count(*) = 1 AND sum(m.devices) = (b.totals ->> 'sent')::bigint
                       THEN max(m.message_id) END
             FROM (SELECT message_id, devices FROM gateway_message g
                    WHERE g.app_id = $1 AND g.push_id = b.push_id AND g.batch_id = $2
                    LIMIT 2) AS m) AS "messageId"
     FROM push_batch b JOIN notification n ON n.app_id = b.app_id AND n.id = b.push_id
    CROSS JOIN LATERAL (SELECT min(r.id) AS lo, max(r.id) AS hi FROM ${partSql}) AS e
    WHERE b.app_id = $1 AND b.id = $2 AND b.is_settled`,
);

/** Reads outcomes of a part of a batch. Returns undefined if its push was deleted. */
export const readOutcomes = (db: Handle, { appId, batchId, first, count }: BatchPart) =>
  query(db).row<PartOutcomes>(outcomesStatement, [appId, batchId, first, count]);

/** Failure of a recipient of a part. */
export interface PartFailure {
  /** Position in the part, from 1. */
  n: number;
  objectId: string | null;
  outcome: string;
  reason: string;
}

const failuresStatement = prepare(
  `SELECT r.n, f.object_id AS "objectId", f.outcome, f.reason
     FROM push_batch b CROSS JOIN ${partSql}
     JOIN push_failure f ON f.app_id = $1 AND f.push_id = b.push_id AND f.installation = r.id
    WHERE b.app_id = $1 AND b.id = $2`,
);

/** Reads the failures of a part of a batch. */
export const readPartFailures = (db: Handle, { appId, batchId, first, count }: BatchPart) =>
  query(db).rows<PartFailure>(failuresStatement, [appId, batchId, first, count]);
