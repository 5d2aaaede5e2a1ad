/**
 * Receipts of OPPO (protocol/oppo.md#receipts): an unsigned JSON array. The only known event is the
 * arrival of a message; other events are ignored.
 */
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import type { Receipt, ReceiptCall, ReceiptsResult } from '../../contract/connector.ts';
import { deviceTokensIn, epochMsOf, textOf } from '../../kit/receipts.ts';

const arrived = 'push_arrive';
const maxReceipts = 10_000;

/** Parses a call; ignores entries that are not receipts. */
export function readOppoReceipts({ body }: ReceiptCall): ReceiptsResult {
  const list = parsed(body);
  if (!Array.isArray(list) || list.length > maxReceipts)
    return { ok: false, status: 400, error: 'expected a JSON array of receipts' };
  return {
    ok: true,
    receipts: list.flatMap((one: Json) => (isJsonObject(one) ? receiptsOf(one) : [])),
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function receiptsOf({
  eventTime,
  eventType,
  messageId,
  param,
  registrationIds,
}: JsonObject): Receipt[] {
  if (eventType !== arrived || typeof registrationIds !== 'string') return [];
  const shared = {
    objectId: textOf(param),
    messageId: textOf(messageId),
    event: 'delivered' as const,
    code: arrived,
    atMs: epochMsOf(eventTime),
  };
  return deviceTokensIn(registrationIds).map((deviceToken) => ({ ...shared, deviceToken }));
}
