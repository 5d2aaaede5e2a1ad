import { createHmac, randomUUID } from 'node:crypto';
import { systemClock } from '../../../../shared/clock.ts';

/** One status of a receipt; with `pushType` in the form of the v3 API. */
export interface HuaweiReceipt {
  token: string;
  status: number;
  biTag?: string;
  requestId?: string;
  pushType?: number;
  timestamp?: number;
}

/** Signing key of receipt calls: key and user name of AppGallery Connect. */
export interface ReceiptKey {
  key: string;
  user?: string;
  /** Epoch milliseconds; now by default. */
  signedAtMs?: number;
}

/** Builds headers and body of a receipt call (protocol/huawei.md#receipts). */
export function huaweiReceipt(
  appid: string,
  receipts: readonly HuaweiReceipt[],
  signing?: ReceiptKey,
): { headers: Record<string, string>; body: string } {
  const statuses = receipts.map(({ pushType, status, timestamp = systemClock.now(), ...rest }) =>
    pushType === undefined
      ? { ...rest, appid, status, timestamp }
      : {
          ...rest,
          appPackageName: 'com.example.app',
          pushType,
          deliveryStatus: { result: status, timestamp },
        },
  );
  const headers: Record<string, string> = { 'content-type': 'application/json; charset=UTF-8' };
  if (signing) headers['x-huawei-callback-id'] = signature(signing);
  return { headers, body: JSON.stringify({ statuses }) };
}

function signature({ key, user = '', signedAtMs = systemClock.now() }: ReceiptKey): string {
  const timestamp = String(signedAtMs);
  const nonce = randomUUID();
  const value = createHmac('sha256', key).update(`${timestamp}${nonce}${user}`).digest('base64');
  return `timestamp=${timestamp}; nonce=${nonce}; value=${value}`;
}
