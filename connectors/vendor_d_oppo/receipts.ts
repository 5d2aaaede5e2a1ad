/**
 * OPPO's receipts (gateways-xiaomi 2.9): a JSON array, unsigned. One event is known, the arrival; what else may come is
 * passed over.
 */
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import type { Receipt, ReceiptCall, ReceiptReading } from '../connector.ts';

const arrived = 'push_arrive';
const most = 10_000;

/** Reads a call; what is no receipt in it is passed over. */
export function readOppoReceipts({ body }: ReceiptCall): ReceiptReading {
  const told = parsed(body);
  if (!Array.isArray(told) || told.length > most)
    return { ok: false, status: 400, problem: 'expected a JSON array of receipts' };
  return { ok: true, receipts: told.flatMap((one: Json) => (isJsonObject(one) ? receiptsOf(one) : [])) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function receiptsOf({ eventTime, eventType, messageId, param, registrationIds }: JsonObject): Receipt[] {
  if (eventType !== arrived || typeof registrationIds !== 'string') return [];
  const shared = {
    pushId: textOf(param),
    messageId: textOf(messageId),
    event: 'delivered' as const,
    code: arrived,
    atMs: timeOf(eventTime),
  };
  return registrationIds
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '')
    .map((address) => ({ ...shared, address }));
}

const textOf = (value: Json | undefined): string | null =>
  typeof value === 'string' && value !== '' ? value : null;

/** Epoch milliseconds, as a text or a number. */
const timeOf = (value: Json | undefined): number | null => {
  const time = typeof value === 'number' || typeof value === 'string' ? Number(value) : Number.NaN;
  return Number.isSafeInteger(time) && time > 0 ? time : null;
};
