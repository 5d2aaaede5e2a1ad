/**
 * Receipts of Xiaomi (protocol/xiaomi.md#receipts): a form with one field `data`, which contains
 * JSON by message id. Calls are not signed.
 */
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts';
import type {
  Receipt,
  ReceiptCall,
  ReceiptEvent,
  ReceiptsResult,
} from '../../contract/connector.ts';
import { deviceTokensIn, epochMsOf, textOf } from '../../kit/receipts.ts';
import { parseObject } from '../../kit/values.ts';

/**
 * Xiaomi also sends this receipt for devices of another region. So it is requested only if the
 * region is certain.
 */
export const deadToken = 16;

/** Events by receipt type. The types are bits. */
const events: ReadonlyMap<number, ReceiptEvent> = new Map([
  [1, 'delivered'],
  [2, 'clicked'],
  [deadToken, 'dead_token'],
  [32, 'suspended'],
  [64, 'undelivered'],
  [128, 'undelivered'],
  [1024, 'undelivered'],
]);

/**
 * `extra.callback.type`: the sum of the requested events. A wrong sum disables all events
 * (protocol/xiaomi.md#receipts). The event 1024, expiry of a message, is known from a single source
 * and not requested.
 */
export const requestedReceipts = 1 + 2 + deadToken + 32 + 64 + 128;

/** Parses a call; ignores entries that are not receipts. */
export function readXiaomiReceipts({ body }: ReceiptCall): ReceiptsResult {
  const messages = parseObject(new URLSearchParams(body).get('data') ?? '');
  if (!messages)
    return { ok: false, status: 400, error: 'expected a form with a field data of JSON' };
  const receipts = Object.entries(messages).flatMap(([messageId, receipt]) =>
    isJsonObject(receipt) ? receiptsOf(messageId, receipt) : [],
  );
  return { ok: true, receipts };
}

function receiptsOf(messageId: string, receipt: JsonObject): Receipt[] {
  const { barStatus, param, targets, timestamp } = receipt;
  const type = Number(receipt.type);
  const event = events.get(type);
  if (event === undefined || typeof targets !== 'string') return [];
  const shared = {
    objectId: textOf(param),
    messageId,
    code: String(type),
    atMs: epochMsOf(timestamp),
  };
  return deviceTokensIn(targets).flatMap((deviceToken) => [
    { ...shared, deviceToken, event },
    // Notifications are off, so the message was delivered but not shown.
    ...(event === 'delivered' && barStatus === 'Disable'
      ? [{ ...shared, deviceToken, event: 'suspended' as const, code: 'Disable' }]
      : []),
  ]);
}
