/**
 * vivo's push gateway on loopback. It is as strict as the original (protocol/vivo.md), its
 * misbehaviour can be configured, and it sends receipts.
 */
import { randomInt, randomUUID } from 'node:crypto';
import { systemClock } from '../../../../shared/clock.ts';
import {
  ReceiptLog,
  type ReceiptPost,
  type ReceiptRequest,
  type SandboxGateway,
  type SandboxOptions,
  startGateway,
  TokenIssuer,
} from '../../http/server.ts';
import { type VivoApp, type VivoMemory, VivoRules } from './rules.ts';

export type { VivoApp } from './rules.ts';

export interface VivoGatewayOptions extends SandboxOptions {
  /** App that the gateway accepts. A new app by default. */
  app?: VivoApp;
}

export interface VivoGateway extends SandboxGateway {
  /** State of the gateway. Changes take effect at once. */
  readonly memory: VivoMemory;
  /**
   * Sends receipts with one code for these devices to the URLs of their messages, one call per
   * message. Without a code, uses the older form. Returns the HTTP statuses.
   */
  sendReceipt(tokens: readonly string[], ackType?: string): Promise<number[]>;
}

/** Creates an app. */
export const createVivoApp = (): VivoApp => ({
  appId: String(randomInt(10_000, 999_999_999)),
  appKey: randomUUID(),
  appSecret: randomUUID(),
});

const dayMs = 86_400_000;
const any = Number.POSITIVE_INFINITY;

/**
 * Starts the gateway of one app. Resolves when it listens. By default, it has no limits and no
 * sending hours.
 */
export async function startVivoGateway(options: VivoGatewayOptions = {}): Promise<VivoGateway> {
  const clock = options.clock ?? systemClock;
  const memory: VivoMemory = {
    app: options.app ?? createVivoApp(),
    tokenIssuer: new TokenIssuer(() => clock.now(), dayMs),
    statuses: new Map(),
    testDevices: new Set(),
    hasSendingHours: false,
    refusesTestTexts: false,
    devicesPerSecond: any,
    tokensPerSecond: 10,
    operationsPerDay: any,
    systemPerDay: any,
    savesPerDay: any,
    receipts: new ReceiptLog(20_000),
    saved: new Map(),
  };
  const gateway = await startGateway(options, (state) => new VivoRules(memory, state));
  return Object.assign(gateway, {
    memory,
    sendReceipt: (tokens: readonly string[], ackType?: string) =>
      memory.receipts.send(tokens, (message, targets) =>
        receiptOf(message, { targets, ackType, nowMs: clock.now() }),
      ),
  });
}

/**
 * Builds a JSON object by task (protocol/vivo.md#receipts). The older form has no code and no time.
 */
function receiptOf(
  { id, param }: ReceiptRequest,
  { ackType, nowMs, targets }: { targets: string[]; ackType: string | undefined; nowMs: number },
): ReceiptPost {
  const receipt = {
    param,
    targets: targets.join(','),
    ...(ackType === undefined ? {} : { ackType, ackTime: nowMs }),
  };
  return {
    headers: { 'content-type': 'application/json; charset=UTF-8' },
    body: JSON.stringify({ [id]: receipt }),
  };
}
