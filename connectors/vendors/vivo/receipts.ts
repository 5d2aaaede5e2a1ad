/** Receipts of vivo (protocol/vivo.md#receipts): a JSON object by task. Calls are not signed. */
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import type {
  Receipt,
  ReceiptCall,
  ReceiptEvent,
  ReceiptsResult,
} from '../../contract/connector.ts';
import { deviceTokensIn, epochMsOf, textOf } from '../../kit/receipts.ts';
import { parseObject } from '../../kit/values.ts';

/** Events by code. All other codes mean that the message does not arrive. */
const events: ReadonlyMap<string, ReceiptEvent> = new Map([
  ['0', 'delivered'],
  // The registration id is invalid, the app is not subscribed, or the user is unknown.
  ['2183', 'dead_token'],
  ['20001', 'dead_token'],
  ['20002', 'dead_token'],
  // The device was offline for 14 days.
  ['20006', 'suspended'],
]);

/** Parses a call; ignores entries that are not receipts. */
export function readVivoReceipts({ body }: ReceiptCall): ReceiptsResult {
  const tasks = parseObject(body);
  if (!tasks)
    return { ok: false, status: 400, error: 'expected a JSON object of receipts by task' };
  const receipts = Object.entries(tasks).flatMap(([taskId, receipt]) =>
    isJsonObject(receipt) ? receiptsOf(taskId, receipt) : [],
  );
  return { ok: true, receipts };
}

function receiptsOf(
  messageId: string,
  { ackTime, ackType, param, targets }: JsonObject,
): Receipt[] {
  if (typeof targets !== 'string') return [];
  // The older format reports only arrivals and has no code.
  const code = ackType === undefined || ackType === null ? '0' : codeOf(ackType);
  if (code === null) return [];
  const shared = {
    objectId: textOf(param),
    messageId,
    event: events.get(code) ?? ('undelivered' as const),
    code: code.slice(0, 24),
    atMs: epochMsOf(ackTime),
  };
  return deviceTokensIn(targets).map((deviceToken) => ({ ...shared, deviceToken }));
}

const codeOf = (value: Json): string | null =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : null;
