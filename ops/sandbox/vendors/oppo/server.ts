/**
 * OPPO's push gateway on loopback. It is as strict as the original (protocol/oppo.md), its
 * misbehaviour can be configured, and it sends receipts.
 */
import { randomBytes } from 'node:crypto';
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
import { type OppoMemory, OppoRules } from './rules.ts';

export interface OppoGatewayOptions extends SandboxOptions {
  /** App that the gateway accepts. A new app by default. */
  app?: { appKey: string; masterSecret: string };
  /** Limits. Unlimited by default. */
  devicesPerSecond?: number;
  devicesPerDay?: number;
  savesPerDay?: number;
  categories?: readonly string[];
}

export interface OppoGateway extends SandboxGateway {
  /** State of the gateway. Changes take effect at once. */
  readonly memory: OppoMemory;
  /**
   * Sends receipts of an event for these devices to the URLs of their messages, one call per
   * message. Returns the HTTP statuses.
   */
  sendReceipt(tokens: readonly string[], eventType?: string): Promise<number[]>;
}

/** Creates an app. */
export const createOppoApp = (): { appKey: string; masterSecret: string } => ({
  appKey: randomBytes(16).toString('hex'),
  masterSecret: randomBytes(16).toString('hex'),
});

const dayMs = 86_400_000;

/** Starts the gateway of one app. Resolves when it listens. */
export async function startOppoGateway(options: OppoGatewayOptions = {}): Promise<OppoGateway> {
  const clock = options.clock ?? systemClock;
  const any = Number.POSITIVE_INFINITY;
  const {
    app = createOppoApp(),
    devicesPerDay = any,
    devicesPerSecond = any,
    savesPerDay = any,
  } = options;
  const memory: OppoMemory = {
    app,
    tokenIssuer: new TokenIssuer(() => clock.now(), dayMs),
    unsubscribed: new Set(),
    ambiguousTokens: new Set(),
    devicesPerSecond,
    devicesPerDay,
    savesPerDay,
    categories: options.categories,
    receipts: new ReceiptLog(20_000),
    saved: new Map(),
    sent: new Set(),
  };
  const gateway = await startGateway(options, (state) => new OppoRules(memory, state));
  return Object.assign(gateway, {
    memory,
    sendReceipt: (tokens: readonly string[], eventType = 'push_arrive') =>
      memory.receipts.send(tokens, (message, [target = '']) =>
        receiptOf(message, { eventType, nowMs: clock.now(), target }),
      ),
  });
}

/** Builds a JSON array (protocol/oppo.md#receipts). Its time is a string. */
function receiptOf(
  { id, param }: ReceiptRequest,
  { eventType, nowMs, target }: { eventType: string; nowMs: number; target: string },
): ReceiptPost {
  const receipt = {
    messageId: id,
    appId: '1',
    taskId: id,
    registrationIds: target,
    eventType,
    param,
  };
  return {
    headers: { 'content-type': 'application/json; charset=UTF-8' },
    body: JSON.stringify([{ ...receipt, eventTime: String(nowMs) }]),
  };
}
