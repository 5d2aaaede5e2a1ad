/** Honor Push gateway with its token call (protocol/honor.md). */
import { randomBytes, randomInt } from 'node:crypto';
import { systemClock } from '../../../../shared/clock.ts';
import { TokenIssuer } from '../../http/access-tokens.ts';
import { type SandboxGateway, type SandboxOptions, startGateway } from '../../http/server.ts';
import { type HonorApp, type HonorMemory, honorRules } from './rules.ts';

export type { HonorApp } from './rules.ts';

export interface HonorOptions extends SandboxOptions {
  /** App that it accepts; absent: a new one. */
  app?: HonorApp;
  devicesPerSecond?: number;
  testsPerDay?: number;
}

/** One status of a receipt (protocol/honor.md#receipts). */
export interface HonorReceipt {
  token: string;
  status: number;
  biTag?: string;
  requestId?: string;
  timestamp?: number;
}

export interface HonorGateway extends SandboxGateway {
  /** State of the gateway; changes take effect at once. */
  memory: HonorMemory;
  /** Sends receipts as Honor does; returns the HTTP status and the body of the reply. */
  sendReceipt(url: string, receipts: readonly HonorReceipt[]): Promise<{ status: number; body: string }>;
}

/** Creates an app. Its secret has characters that a form must escape. */
export const createHonorApp = (): HonorApp => ({
  appId: String(randomInt(104_000_000, 105_000_000)),
  clientId: randomBytes(16).toString('hex'),
  clientSecret: `${randomBytes(24).toString('base64')}+/=&`,
});

/** Starts the gateway of one app; resolves when it listens. */
export async function startHonorGateway(options: HonorOptions = {}): Promise<HonorGateway> {
  const { app = createHonorApp(), devicesPerSecond = Number.POSITIVE_INFINITY, testsPerDay = 1000 } = options;
  const clock = options.clock ?? systemClock;
  const tokenIssuer = new TokenIssuer(() => clock.now());
  const lists = { failTokens: new Set<string>(), ambiguousTokens: new Set<string>() };
  const memory: HonorMemory = { app, tokenIssuer, ...lists, devicesPerSecond, testsPerDay };
  const gateway = await startGateway(options, (state) => honorRules(memory, state));
  const sendReceipt: HonorGateway['sendReceipt'] = async (url, receipts) => {
    const reply = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json; charset=UTF-8' },
      body: honorReceiptBody(app.appId, receipts),
    });
    return { status: reply.status, body: await reply.text() };
  };
  return Object.assign(gateway, { memory, sendReceipt });
}

/** Builds the body of a receipt call. */
export function honorReceiptBody(appid: string, receipts: readonly HonorReceipt[]): string {
  const statuses = receipts.map(({ timestamp = systemClock.now(), ...rest }) => ({
    ...rest,
    appid,
    timestamp,
  }));
  return JSON.stringify({ statuses });
}
