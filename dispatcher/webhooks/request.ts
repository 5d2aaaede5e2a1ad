import type { Handle } from '../../shared/db/pool.ts';
import {
  type BatchPart,
  type DueDelivery,
  readOutcomes,
  readPartFailures,
} from '../../shared/db/tables/webhook-deliveries.ts';
import type { Endpoint } from '../../shared/db/tables/webhooks.ts';
import { jsonObject } from '../../shared/domain/json-schema.ts';
import { outcomeCode, outcomeOfCode, retriedCode } from '../../shared/domain/outcome.ts';
import { reasonText } from '../../shared/domain/reasons.ts';
import { chatMessage, chatText, languageOf } from '../../shared/domain/webhooks/chat.ts';
import { deliveryId, serviceOwner, signatureOf } from '../../shared/domain/webhooks/endpoint.ts';
import { recipientsPerEvent } from '../../shared/domain/webhooks/event-types.ts';
import type { HttpRequest } from '../../shared/http/client.ts';

/** Returns `data` of an event as JSON. Returns undefined if its push was deleted. */
export async function dataOf(db: Handle, delivery: DueDelivery): Promise<string | undefined> {
  const { data, sourceApp: appId, batchId, firstIndex: first } = delivery;
  if (batchId === null || first === null) return JSON.stringify(data);
  return outcomesOf(db, { appId, batchId, first, count: recipientsPerEvent });
}

const sentCode = outcomeCode('sent');

/**
 * Returns `data` of an event `recipients.outcome` as JSON. Most recipients differ only in their id,
 * so their JSON is put together here, which takes a fifth of the time of `JSON.stringify`.
 */
async function outcomesOf(db: Handle, part: BatchPart): Promise<string | undefined> {
  const batch = await readOutcomes(db, part);
  if (!batch) return undefined;
  const { objectId: push, connector, states, messageId } = batch;
  const objectIds = batch.objectIds.split(',');
  const mayHaveFailures = states.some((code) => code !== sentCode && code !== retriedCode);
  const failures = mayHaveFailures ? await readPartFailures(db, part) : [];
  const failureAt = new Map(failures.map((failure) => [failure.n - 1, failure]));
  const sentEnd = `","outcome":"sent"${messageId === null ? '' : `,"messageId":${JSON.stringify(messageId)}`}}`;
  const recipients: string[] = [];
  for (const [i, code] of states.entries()) {
    const objectId = objectIds[i] ?? '';
    // Recipients that moved to a retry batch are reported with that batch.
    const outcome = outcomeOfCode(code);
    if (outcome === 'sent' && objectId !== '')
      recipients.push(`{"installation":"${objectId}${sentEnd}`);
    else if (outcome) {
      const failure = failureAt.get(i);
      const reason = failure?.outcome === outcome ? reasonText(failure.reason) : undefined;
      const installation = objectId || (failure?.objectId ?? null);
      recipients.push(JSON.stringify({ installation, outcome, reason }));
    }
  }
  return `{"push":"${push}","connector":"${connector}","recipients":[${recipients.join(',')}]}`;
}

interface RequestContent {
  delivery: Pick<DueDelivery, 'id' | 'createdAt' | 'type' | 'sourceApp' | 'occurredAt'>;
  /** `data` as JSON. */
  data: string;
  nowMs: number;
}

/** Returns the request of a delivery. Its path is relative to the origin of the endpoint's URL. */
export function requestOf(
  endpoint: Pick<Endpoint, 'format' | 'language'> & SigningKeys,
  { delivery, data, nowMs }: RequestContent,
): HttpRequest {
  const { type, sourceApp, occurredAt } = delivery;
  const app = sourceApp === serviceOwner ? null : sourceApp;
  const id = deliveryId(delivery);
  const timestamp = Math.floor(nowMs / 1000);
  const url = new URL(endpoint.secrets.url);
  const { format } = endpoint;
  const head = JSON.stringify({ type, timestamp: occurredAt.toISOString(), app });
  let body = `${head.slice(0, -1)},"data":${data}}`;
  if (format !== 'standard') {
    const shown = { type, app, data: jsonObject.parse(JSON.parse(data)) };
    const text = chatText(shown, languageOf(format, endpoint.language));
    const { signingSecret } = endpoint.secrets;
    const message = chatMessage(format, text, { signingSecret, epochMs: nowMs });
    for (const [name, value] of Object.entries(message.query)) url.searchParams.set(name, value);
    body = JSON.stringify(message.body);
  }
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

type SigningKeys = Pick<Endpoint, 'secrets' | 'previousKey' | 'previousUntil'>;

/** Returns the signing keys, newest first. After a rotation, the old key signs for a day. */
const keysOf = ({ secrets, previousKey, previousUntil }: SigningKeys, nowMs: number): string[] =>
  previousKey !== null && previousUntil !== null && previousUntil.getTime() > nowMs
    ? [secrets.key, previousKey]
    : [secrets.key];
