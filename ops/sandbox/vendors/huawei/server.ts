/** Huawei Push Kit gateway, v1 and v3, with its token call (protocol/huawei.md). */
import { systemClock } from '../../../../shared/clock.ts';
import { type SandboxGateway, type SandboxOptions, startGateway, TokenIssuer } from '../../http/server.ts';
import { createHuaweiApp, type HuaweiApp } from './credentials.ts';
import { type HuaweiReceipt, huaweiReceipt, type ReceiptKey } from './receipts.ts';
import { type HuaweiMemory, huaweiRules } from './rules.ts';

export { createHuaweiApp, type HuaweiApp } from './credentials.ts';
export { type HuaweiReceipt, huaweiReceipt } from './receipts.ts';

export interface HuaweiOptions extends SandboxOptions {
  /** App that it accepts; absent: a new one. */
  app?: HuaweiApp;
  devicesPerSecond?: number;
  testsPerDay?: number;
}

export interface HuaweiGateway extends SandboxGateway {
  /** State of the gateway; changes take effect at once. */
  memory: HuaweiMemory;
  /** Sends receipts as Huawei does; returns the HTTP status and the body of the reply. */
  sendReceipt(
    url: string,
    receipts: readonly HuaweiReceipt[],
    signing?: ReceiptKey,
  ): Promise<{ status: number; body: string }>;
}

/** Starts the gateway of one app; resolves when it listens. */
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
