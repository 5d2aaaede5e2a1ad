/**
 * Receipts of Honor (protocol/honor.md#receipts): unsigned calls to the URL that is registered with
 * Honor. Only one status is known, from a single source. The others are not public, so no receipt
 * marks a token as dead.
 */
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts';
import type { Receipt, ReceiptCall, ReceiptsResult } from '../../contract/connector.ts';
import { epochMsOf, textOf } from '../../kit/receipts.ts';
import { parseObject } from '../../kit/values.ts';

const delivered = '40000002';
const maxStatuses = 1000;

/** Parses the receipts of one call. */
export function readReceipts({ body }: ReceiptCall): ReceiptsResult {
  const statuses = parseObject(body)?.statuses;
  if (!Array.isArray(statuses) || statuses.length > maxStatuses)
    return {
      ok: false,
      status: 400,
      error: `expected statuses, an array of at most ${maxStatuses}`,
    };
  const receipts = statuses.flatMap((one) => (isJsonObject(one) ? (receiptOf(one) ?? []) : []));
  return { ok: true, receipts, reply: { code: 200, message: 'success' } };
}

function receiptOf({ biTag, requestId, status, timestamp, token }: JsonObject): Receipt | null {
  if (typeof token !== 'string' || token === '') return null;
  if (typeof status !== 'number' && typeof status !== 'string') return null;
  const code = String(status).slice(0, 24);
  return {
    objectId: typeof biTag === 'string' && /^[A-Za-z0-9]{16}$/.test(biTag) ? biTag : null,
    messageId: textOf(requestId),
    deviceToken: token,
    event: code === delivered ? 'delivered' : 'undelivered',
    code,
    atMs: epochMsOf(timestamp),
  };
}
