/** Huawei Push Kit gateway for v1 and v3, with its token call (protocol/huawei.md). */

import { createHmac, randomUUID } from 'node:crypto';
import { systemClock } from '../../../../shared/clock.ts';
import {
  type SandboxGateway,
  type SandboxOptions,
  startGateway,
  TokenIssuer,
} from '../../http/server.ts';
import { createHuaweiApp, type HuaweiApp, type HuaweiMemory, huaweiRules } from './rules.ts';

/** One status of a receipt. With `pushType`, it has the form of the v3 API. */
export interface HuaweiReceipt {
  token: string;
  status: number;
  biTag?: string;
  requestId?: string;
  pushType?: number;
  timestamp?: number;
}

/** Signing key of receipt calls: key and user name from AppGallery Connect. */
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

export { createHuaweiApp, type HuaweiApp } from './rules.ts';

export interface HuaweiOptions extends SandboxOptions {
  /** App that the gateway accepts. A new app by default. */
  app?: HuaweiApp;
  devicesPerSecond?: number;
  testsPerDay?: number;
}

export interface HuaweiGateway extends SandboxGateway {
  /** State of the gateway. Changes take effect at once. */
  memory: HuaweiMemory;
  /** Sends receipts like Huawei. Returns HTTP status and body of the reply. */
  sendReceipt(
    url: string,
    receipts: readonly HuaweiReceipt[],
    signing?: ReceiptKey,
  ): Promise<{ status: number; body: string }>;
}

/** Starts the gateway of one app. Resolves when it listens. */
export async function startHuaweiGateway(options: HuaweiOptions = {}): Promise<HuaweiGateway> {
  const { app = createHuaweiApp(), ...rest } = options;
  const { devicesPerSecond = Number.POSITIVE_INFINITY, testsPerDay = 500 } = options;
  const clock = options.clock ?? systemClock;
  const tokenIssuer = new TokenIssuer(() => clock.now());
  const memory = {
    app,
    tokenIssuer,
    refusedTokens: new Map<string, string>(),
    harmonyTokens: new Set<string>(),
    androidTokens: new Set<string>(),
    devicesPerSecond,
    testsPerDay,
  };
  const gateway = await startGateway(rest, (state) => huaweiRules(memory, state));
  const sendReceipt: HuaweiGateway['sendReceipt'] = async (url, receipts, signing) => {
    const call = huaweiReceipt(app.appId, receipts, signing);
    const reply = await fetch(url, { method: 'POST', ...call });
    return { status: reply.status, body: await reply.text() };
  };
  return Object.assign(gateway, { memory, sendReceipt });
}
