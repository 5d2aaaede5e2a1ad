/**
 * Receipts of Meizu (protocol/meizu.md#receipts): a form with the field `cb`, which contains JSON
 * by message and type. `access_token` is the token entered in the console (`receiptToken` of a
 * profile).
 */
import { equalInConstantTime } from '../../../shared/crypto.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import type {
  Receipt,
  ReceiptCall,
  ReceiptEvent,
  ReceiptsResult,
} from '../../contract/connector.ts';
import { textOf } from '../../kit/receipts.ts';
import { parseObject } from '../../kit/values.ts';

const events: ReadonlyMap<number, ReceiptEvent> = new Map([
  [1, 'delivered'],
  [2, 'clicked'],
]);

/** Requests both events. */
export const requestedReceipts = '3';

/** Member of a profile that Meizu sends with its calls. */
interface ReceiptKey {
  receiptToken?: string | undefined;
}

/**
 * Parses a call. If a profile has a token, the call must contain the token of a profile. Ignores
 * entries that are not receipts.
 */
export function readMeizuReceipts(
  { body }: ReceiptCall,
  profiles: readonly ReceiptKey[],
): ReceiptsResult {
  const form = new URLSearchParams(body);
  if (!isFromMeizu(form.get('access_token') ?? '', profiles))
    return { ok: false, status: 401, error: 'access_token is not the one of any profile' };
  const messages = parseObject(form.get('cb') ?? '');
  if (!messages)
    return { ok: false, status: 400, error: 'expected a form with a field cb of JSON' };
  const receipts = Object.entries(messages).flatMap(([key, receipt]) =>
    isJsonObject(receipt) ? receiptsOf(key, receipt) : [],
  );
  return { ok: true, receipts };
}

function isFromMeizu(given: string, profiles: readonly ReceiptKey[]): boolean {
  const tokens = profiles.flatMap(({ receiptToken }) => receiptToken ?? []);
  return (
    tokens.length === 0 || tokens.map((token) => equalInConstantTime(token, given)).includes(true)
  );
}

function receiptsOf(key: string, receipt: JsonObject): Receipt[] {
  // The key consists of the message id, a hyphen and the type.
  const [, messageId = key, typeOfKey] = /^(.*)-(\d+)$/s.exec(key) ?? [];
  const type = Number(receipt.type ?? typeOfKey);
  const event = events.get(type);
  if (event === undefined) return [];
  const shared = {
    objectId: textOf(receipt.param),
    messageId,
    event,
    code: String(type),
    atMs: null,
  };
  return deviceTokensIn(receipt.targets).map((deviceToken) => ({ ...shared, deviceToken }));
}

const deviceTokensIn = (targets: Json | undefined): string[] => {
  const all =
    typeof targets === 'string' ? targets.split(',') : Array.isArray(targets) ? targets : [];
  return all.flatMap((one) => (typeof one === 'string' && one.trim() !== '' ? [one.trim()] : []));
};
