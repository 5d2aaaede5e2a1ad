/**
 * Receipts of Huawei (protocol/huawei.md#receipts). Version 1 has a plain status; version 2 is for
 * messages of the v3 API. Calls are signed if a key is set in AppGallery Connect.
 */
import { createHmac } from 'node:crypto';
import { minuteMs } from '../../../shared/clock.ts';
import { equalInConstantTime } from '../../../shared/crypto.ts';
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts';
import type {
  Receipt,
  ReceiptCall,
  ReceiptEvent,
  ReceiptsResult,
} from '../../contract/connector.ts';
import { epochMsOf, textOf } from '../../kit/receipts.ts';
import { parseObject } from '../../kit/values.ts';

/** Events by status (protocol/huawei.md#receipts). */
const events: ReadonlyMap<string, ReceiptEvent> = new Map<string, ReceiptEvent>([
  ['0', 'delivered'],
  // The app was uninstalled, or another user of the device has it.
  ['2', 'dead_token'],
  ['5', 'dead_token'],
  // Notifications are turned off, the device was offline for 30 days, or Huawei withheld the
  // message.
  ['6', 'suspended'],
  ['10', 'suspended'],
  ['201', 'suspended'],
  // The message was replaced by its collapse key, the app process was not running, or the device
  // got too many messages.
  ['15', 'undelivered'],
  ['27', 'undelivered'],
  ['102', 'undelivered'],
  ['256', 'undelivered'],
]);

/** Older documentation of Huawei says that a call contains up to 1000 statuses. */
const maxStatuses = 1000;

/** Members of a profile that Huawei signs its calls with. */
interface SigningKey {
  callbackKey?: string | undefined;
  callbackUser?: string | undefined;
}

/**
 * Parses the receipts of one call. Refuses the call if profiles have keys and no key matches the
 * signature.
 */
export function readReceipts(call: ReceiptCall, profiles: readonly SigningKey[]): ReceiptsResult {
  if (!isSigned(call, profiles))
    return {
      ok: false,
      status: 401,
      error: 'the signature of the receipts is missing, wrong or too old',
    };
  const statuses = parseObject(call.body)?.statuses;
  if (!Array.isArray(statuses) || statuses.length > maxStatuses)
    return {
      ok: false,
      status: 400,
      error: `expected statuses, an array of at most ${maxStatuses}`,
    };
  const receipts = statuses.flatMap((one) => (isJsonObject(one) ? (receiptOf(one) ?? []) : []));
  return { ok: true, receipts, reply: { code: '0', message: 'success' } };
}

function receiptOf(status: JsonObject): Receipt | null {
  const { biTag, deliveryStatus, requestId, token } = status;
  const result = isJsonObject(deliveryStatus)
    ? { code: deliveryStatus.result, atMs: deliveryStatus.timestamp }
    : { code: status.status, atMs: status.timestamp };
  if (typeof token !== 'string' || token === '') return null;
  if (typeof result.code !== 'number' && typeof result.code !== 'string') return null;
  const code = String(result.code).slice(0, 24);
  const event = events.get(code) ?? 'undelivered';
  return {
    // The user or the app may come back (protocol/huawei.md#receipts).
    ...(event === 'dead_token' ? { needsConfirmation: true } : {}),
    objectId: typeof biTag === 'string' && /^[A-Za-z0-9]{16}$/.test(biTag) ? biTag : null,
    messageId: textOf(requestId),
    deviceToken: token,
    event,
    code,
    atMs: epochMsOf(result.atMs),
  };
}

/**
 * Maximum age of a signature. The signature covers neither the body nor the URL, so a recorded
 * signature would be valid forever for any receipts.
 */
const maxAgeMs = 15 * minuteMs;
/** Tolerated clock error: Huawei's clock may be this much ahead. */
const clockSkewMs = 5 * minuteMs;

function isRecent(timestamp: string | undefined, receivedAtMs: number): boolean {
  const signedAtMs = /^\d{1,16}$/.test(timestamp ?? '') ? Number(timestamp) : Number.NaN;
  return receivedAtMs - signedAtMs <= maxAgeMs && signedAtMs - receivedAtMs <= clockSkewMs;
}

/**
 * Checks the signature and its age. If no profile has a key, only the secret in the URL protects
 * the call.
 */
function isSigned(
  { headers, receivedAtMs }: ReceiptCall,
  profiles: readonly SigningKey[],
): boolean {
  const keyed = profiles.filter(({ callbackKey }) => callbackKey !== undefined);
  if (keyed.length === 0) return true;
  const members = new Map(
    (headers['x-huawei-callback-id'] ?? '').split(';').map((part) => {
      const [name = '', ...value] = part.trim().split('=');
      return [name, value.join('=')] as const;
    }),
  );
  if (receivedAtMs !== undefined && !isRecent(members.get('timestamp'), receivedAtMs)) return false;
  const signed = `${members.get('timestamp') ?? ''}${members.get('nonce') ?? ''}`;
  return keyed
    .map(({ callbackKey = '', callbackUser = '' }) =>
      equalInConstantTime(
        createHmac('sha256', callbackKey).update(`${signed}${callbackUser}`).digest('base64'),
        members.get('value') ?? '',
      ),
    )
    .includes(true);
}
