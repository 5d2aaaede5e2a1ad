import { type ApnsTuning, defaultTuning } from '../../../connectors/apns/client.ts';
import { apnsCredentials } from '../../../connectors/apns/credentials.ts';
import { apnsConnector } from '../../../connectors/apns/index.ts';
import type {
  AttemptResult,
  GatewayCall,
  PushMessage,
  Recipient,
  Sender,
} from '../../../connectors/contract/connector.ts';
import {
  type ApnsGateway,
  type ApnsGatewayOptions,
  createApnsCredentials,
  startApnsGateway,
} from '../../../ops/sandbox/apns/server.ts';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { loopbackIdentity } from './identity.ts';
import { aContext } from './sender-context.ts';

export { aContext } from './sender-context.ts';

export const topic = 'com.example.app';

/** Default timeouts, but with a short wait at the end. */
export const calmTuning: ApnsTuning = {
  ...defaultTuning,
  timing: { ...defaultTuning.timing, drainMs: 500 },
};

/** Short response timeout, for tests without a response. */
export const shortTimeoutTuning: ApnsTuning = {
  ...calmTuning,
  timing: { ...calmTuning.timing, requestMs: 300 },
};

export function aMessage(
  data: JsonObject = { alert: 'Hello' },
  more: Partial<PushMessage> = {},
): PushMessage {
  const createdAtMs = systemClock.now();
  return {
    objectId: 'PushRecord000001',
    data,
    prod: 'prod',
    expiresAtMs: createdAtMs + 3_600_000,
    createdAtMs,
    ...more,
  };
}

/** Returns device token number `n`. */
export const deviceToken = (n: number): string => n.toString(16).padStart(64, '0');

export function recipients(count: number, more: Partial<Recipient> = {}): Recipient[] {
  return Array.from({ length: count }, (_, index) => ({
    index,
    id: 1000 + index,
    deviceToken: deviceToken(index),
    deviceType: 'ios',
    topic: null,
    teamId: null,
    badge: null,
    ...more,
  }));
}

/** Results that `send` reported for each recipient, and how often each was reported. */
export interface Outcome {
  attempts: AttemptResult[];
  reports: number[];
}

export async function sendAll(
  sender: Sender,
  to: Recipient[],
  message: PushMessage = aMessage(),
  signal: AbortSignal = new AbortController().signal,
): Promise<Outcome> {
  const outcome: Outcome = { attempts: [], reports: to.map(() => 0) };
  const report = (index: number, attempt: AttemptResult) => {
    outcome.attempts[index] = attempt;
    outcome.reports[index] = (outcome.reports[index] ?? 0) + 1;
  };
  await sender.send({ pushId: 1, message, recipients: to, report, signal });
  return outcome;
}

/** Counts the results by kind. */
export function kinds({ attempts }: Outcome): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { kind } of attempts) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}

export interface ApnsFixture {
  gateway: ApnsGateway;
  sender: Sender;
  calls: GatewayCall[];
  /** Opens another sender to the same gateway. */
  open(more?: JsonObject): Sender;
  close(): Promise<void>;
}

export interface ApnsFixtureOptions {
  gateway?: ApnsGatewayOptions;
  tuning?: ApnsTuning;
  clock?: Clock;
  topics?: string[];
  /** Members in addition to the token credentials. */
  credentials?: JsonObject;
}

/** Starts a gateway on loopback and opens a token sender to it. */
export async function startApnsFixture(options: ApnsFixtureOptions = {}): Promise<ApnsFixture> {
  const { publicKey, ...token } = createApnsCredentials(options.topics ?? [topic]);
  const identity = await loopbackIdentity();
  const gateway = await startApnsGateway({
    keys: [{ ...token, publicKey }],
    ...identity,
    ...options.gateway,
  });
  const context = aContext(options.clock);
  const connector = apnsConnector(options.tuning ?? calmTuning);
  const senders: Sender[] = [];
  const open = (more: JsonObject = {}) => {
    const base = { auth: 'token', ...token, endpoint: gateway.url, ca: gateway.ca };
    const credentials = apnsCredentials.parse({ ...base, ...options.credentials, ...more });
    const sender = connector.open(credentials, context);
    senders.push(sender);
    return sender;
  };
  return {
    gateway,
    sender: open(),
    calls: context.calls,
    open,
    close: async () => {
      await Promise.all(senders.map((sender) => sender.close()));
      await gateway.close();
    },
  };
}

/** Creates a clock that stands still at the given epoch time until it is moved. */
export function movableClock(nowMs: number): Clock & { moveMs(ms: number): void } {
  let at = nowMs;
  return {
    now: () => at,
    monotonicMs: () => systemClock.monotonicMs(),
    moveMs: (ms) => {
      at += ms;
    },
  };
}
