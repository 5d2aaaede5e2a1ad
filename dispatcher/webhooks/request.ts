import type { Handle } from '../../shared/db/pool.ts';
import {
  type DueDelivery,
  readOutcomes,
  readRecipientDetails,
} from '../../shared/db/tables/webhook-deliveries.ts';
import type { Endpoint } from '../../shared/db/tables/webhooks.ts';
import type { JsonObject } from '../../shared/domain/json.ts';
import { outcomeOfCode } from '../../shared/domain/outcome.ts';
import { reasonText } from '../../shared/domain/reasons.ts';
import { chatMessage, chatText, languageOf } from '../../shared/domain/webhooks/chat.ts';
import { deliveryId, serviceOwner, signatureOf } from '../../shared/domain/webhooks/endpoint.ts';
import { recipientsPerEvent } from '../../shared/domain/webhooks/event-types.ts';
import type { HttpRequest } from '../../shared/http/client.ts';

/** Returns `data` of an event. Returns undefined if its push was deleted. */
export async function dataOf(db: Handle, delivery: DueDelivery): Promise<object | undefined> {
  const { data, sourceApp, batchId, firstIndex } = delivery;
  if (batchId === null || firstIndex === null) return data ?? {};
  return outcomesOf(db, { appId: sourceApp, batchId, first: firstIndex });
}

/** Returns `data` of an event `recipients.outcome`. */
async function outcomesOf(
  db: Handle,
  { appId, batchId, first }: { appId: string; batchId: number; first: number },
): Promise<object | undefined> {
  const part = { appId, batchId, first, count: recipientsPerEvent };
  const batch = await readOutcomes(db, part);
  if (!batch) return undefined;
  const { pushId, objectId: push, connector, states, messageId } = batch;
  const rows = await readRecipientDetails(db, { appId, pushId }, batch.recipients);
  const details = new Map(rows.map((row) => [row.installation, row]));
  const recipients = batch.recipients.flatMap((id, i) => {
    // Recipients that moved to a retry batch are reported with that batch.
    const outcome = outcomeOfCode(states[i] ?? 0);
    if (!outcome) return [];
    const found = details.get(id);
    const reason = found?.outcome === outcome ? found.reason : null;
    return [
      {
        installation: found?.objectId ?? null,
        outcome,
        ...(reason ? { reason: reasonText(reason) } : {}),
        ...(messageId !== null && outcome === 'sent' ? { messageId } : {}),
      },
    ];
  });
  return { push, connector, recipients };
}

/** What a request needs besides its endpoint. */
interface RequestContent {
  delivery: Pick<DueDelivery, 'id' | 'createdAt' | 'type' | 'sourceApp' | 'occurredAt'>;
  data: object;
  nowMs: number;
}

/** Returns the request of a delivery. Its path is relative to the origin of the endpoint's URL. */
export function requestOf(
  endpoint: Pick<Endpoint, 'format' | 'language' | 'secrets' | 'previousKey' | 'previousUntil'>,
  { delivery, data, nowMs }: RequestContent,
): HttpRequest {
  const { type, sourceApp, occurredAt } = delivery;
  const app = sourceApp === serviceOwner ? null : sourceApp;
  const id = deliveryId(delivery);
  const timestamp = Math.floor(nowMs / 1000);
  const url = new URL(endpoint.secrets.url);
  const { format } = endpoint;
  let content: object = { type, timestamp: occurredAt.toISOString(), app, data };
  if (format !== 'standard') {
    const text = chatText(
      { type, app, data: data as JsonObject },
      languageOf(format, endpoint.language),
    );
    const signed = { signingSecret: endpoint.secrets.signingSecret, epochMs: nowMs };
    const { body, query } = chatMessage(format, text, signed);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    content = body;
  }
  const body = JSON.stringify(content);
  return {
    method: 'POST',
    path: `${url.pathname}${url.search}`,
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'user-agent': 'Carillon-Webhooks',
      'webhook-id': id,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': signatureOf(keysOf(endpoint, nowMs), { id, timestamp, body }),
    },
    body,
  };
}

/** Returns the signing keys, newest first. After a rotation, the old key signs for a day. */
const keysOf = (
  {
    secrets,
    previousKey,
    previousUntil,
  }: Pick<Endpoint, 'secrets' | 'previousKey' | 'previousUntil'>,
  nowMs: number,
): string[] =>
  previousKey !== null && previousUntil !== null && previousUntil.getTime() > nowMs
    ? [secrets.key, previousKey]
    : [secrets.key];
