import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type {
  AttemptResult,
  PushMessage,
  Recipient,
} from '../../../../connectors/contract/connector.ts';
import { isFailure } from '../../../../connectors/contract/gateway-health.ts';
import { honor } from '../../../../connectors/vendors/honor/index.ts';
import { responseRules } from '../../../../connectors/vendors/honor/responses.ts';
import {
  type HonorGateway,
  startHonorGateway,
} from '../../../../ops/sandbox/vendors/honor/server.ts';
import { systemClock } from '../../../../shared/clock.ts';
import { reasonText } from '../../../../shared/domain/reasons.ts';
import {
  aContext,
  aMessage,
  kinds,
  movableClock,
  recipients,
  sendAll,
} from '../../../support/gateways/apns.ts';
import { MemoryTokens, type TestContext } from '../../../support/gateways/sender-context.ts';
import { honorToken } from './fixture.ts';

let gateway: HonorGateway;

beforeAll(async () => {
  gateway = await startHonorGateway();
});
afterAll(() => gateway.close());
afterEach(() => {
  gateway.behave();
  gateway.forget();
  gateway.deadTokens.clear();
  gateway.memory.failTokens.clear();
  gateway.memory.ambiguousTokens.clear();
  gateway.memory.devicesPerSecond = Number.POSITIVE_INFINITY;
});

const devices = (count: number): Recipient[] =>
  recipients(count, { deviceType: 'android' }).map((one) => ({
    ...one,
    deviceToken: honorToken(one.index),
  }));

function open(context: TestContext, profile: Record<string, unknown> = {}) {
  const near = { endpoint: gateway.url, authEndpoint: gateway.url, ca: gateway.ca };
  return honor.open(
    honor.credentials.parse({ ...gateway.memory.app, ...near, ...profile }),
    context,
  );
}

async function push(
  to: Recipient[],
  options: { message?: PushMessage; profile?: Record<string, unknown>; context?: TestContext } = {},
) {
  const sender = open(options.context ?? aContext(), options.profile);
  const outcome = await sendAll(sender, to, options.message);
  await sender.close();
  return outcome;
}

const answer = (
  code: number,
  options: { status?: number; message?: string; count?: number } = {},
) =>
  gateway.misbehave({
    kind: 'answer',
    status: options.status ?? 200,
    body: { code, message: options.message ?? 'refused', data: { requestId: 'h7' } },
    ...(options.count === undefined ? {} : { count: options.count }),
  });

/** Codes, and the result of a recipient (protocol/honor.md#answers). */
const table: [number, Partial<Record<string, unknown>>][] = [
  [200, { kind: 'sent', messageId: 'h7' }],
  [401, { kind: 'profile_error', reason: 'auth_failed', hint: 'honorTokenRefused' }],
  [429, { kind: 'retry', reason: 'too_fast' }],
  [500, { kind: 'retry', reason: 'internal' }],
  [502, { kind: 'retry', reason: 'bad_gateway' }],
  [503, { kind: 'retry', reason: 'unavailable' }],
  [504, { kind: 'retry', reason: 'gateway_timeout' }],
];

describe('every code of Honor', () => {
  test('has a row in this table', () => {
    expect(table.map(([code]) => String(code))).toEqual(responseRules.map(({ code }) => code));
  });

  test.each(table)('%i in the body', async (code, expected) => {
    answer(code);
    expect((await push(devices(1))).attempts[0]).toMatchObject(expected);
  });

  test.each(table.filter(([status]) => status > 401))(
    '%i as the status',
    async (status, expected) => {
      gateway.misbehave({ kind: 'answer', status, body: '<html>' });
      expect((await push(devices(1))).attempts[0]).toMatchObject({ ...expected, status });
    },
  );

  test.each<[number, number, AttemptResult['kind'], string]>([
    [200, 400, 'rejected', 'unknown code 400'],
    [200, 403, 'rejected', 'unknown code 403'],
    [200, 404, 'rejected', 'unknown code 404'],
    [200, 80_300_007, 'rejected', 'unknown code 80300007'],
    [200, 80_100_000, 'rejected', 'unknown code 80100000'],
    [400, 40_000_001, 'rejected', 'unknown code 40000001'],
    [403, 403, 'profile_error', 'http_403'],
    [404, 404, 'profile_error', 'http_404'],
    [500, 200, 'retry', 'internal'],
    [400, 200, 'retry', 'http_400'],
  ])('status %i with code %i deletes no token: %s', async (status, code, kind, reason) => {
    answer(code, { status });
    const { attempts } = await push(devices(3));
    for (const attempt of attempts) {
      expect(attempt.kind).toBe(kind);
      expect('reason' in attempt && reasonText(attempt.reason)).toBe(reason);
    }
  });

  test('an unreadable success is an unknown result', async () => {
    gateway.misbehave({ kind: 'answer', status: 200, body: '{"message":"success"}' });
    expect((await push(devices(1))).attempts[0]).toMatchObject({
      kind: 'unknown',
      isRepeatHidden: true,
    });
  });

  test('a success with sendResult false is not a success', async () => {
    const body = { code: 200, message: 'success', data: { sendResult: false } };
    gateway.misbehave({ kind: 'answer', status: 200, body });
    expect((await push(devices(1))).attempts[0]).toMatchObject({
      kind: 'rejected',
      reason: 'send_result_false',
    });
  });
});

describe('devices named within a success', () => {
  test('are invalid if expired, and retried if failed; the others are sent', async () => {
    const to = devices(1000);
    gateway.deadTokens.add(honorToken(3));
    gateway.memory.failTokens.add(honorToken(7));
    const outcome = await push(to);
    expect(outcome.attempts[3]).toMatchObject({ kind: 'invalid_token', reason: 'expired_token' });
    expect(outcome.attempts[7]).toMatchObject({ kind: 'retry', reason: 'failed_this_time' });
    expect(kinds(outcome)).toEqual({ sent: 998, invalid_token: 1, retry: 1 });
    expect(gateway.total).toBe(1);
    expect(gateway.violations).toEqual([]);
  });

  test('may be all of them', async () => {
    for (const { deviceToken } of devices(2)) gateway.deadTokens.add(deviceToken);
    expect(kinds(await push(devices(2)))).toEqual({ invalid_token: 2 });
  });
});

describe('an error about a token', () => {
  test('renews the access token once, and sends if that was the cause', async () => {
    answer(1234, { message: 'Token expired', count: 1 });
    expect(kinds(await push(devices(5)))).toEqual({ sent: 5 });
    expect(gateway.tokenCalls).toBe(2);
  });

  test('concerns a device if a new token does not help, and deletes none', async () => {
    gateway.memory.ambiguousTokens.add(honorToken(0));
    const sender = open(aContext());
    for (const count of [1000, 900]) {
      const outcome = await sendAll(sender, devices(count));
      expect(kinds(outcome)).toEqual({ sent: count - 1, rejected: 1 });
      expect(outcome.attempts[0]).toMatchObject({ kind: 'rejected', reason: 'auth_message' });
    }
    await sender.close();
    expect(gateway.tokenCalls).toBe(2);
  });

  test('concerns a device also if another thread has just renewed the access token', async () => {
    gateway.memory.ambiguousTokens.add(honorToken(0));
    const context = aContext();
    for (const count of [1000, 900]) {
      const outcome = await push(devices(count), { context });
      expect(kinds(outcome)).toEqual({ sent: count - 1, rejected: 1 });
    }
    expect(gateway.tokenCalls).toBe(2);
  });

  test('ends the push with a hint if no recipient succeeds', async () => {
    answer(1234, { message: 'no authority' });
    const { attempts } = await push(devices(1000));
    expect(attempts.at(-1)).toMatchObject({
      kind: 'profile_error',
      hint: 'honorTokenRefused',
    });
    expect(attempts.some(({ kind }) => kind === 'invalid_token')).toBe(false);
    expect(gateway.total).toBeLessThan(30);
  });
});

test('a device that is named twice gets the message once', async () => {
  const [one, two] = devices(2);
  if (!one || !two) throw new Error('two');
  expect(kinds(await push([one, { ...two, deviceToken: one.deviceToken }]))).toEqual({ sent: 2 });
  expect(gateway.seen(one.deviceToken)).toBe(1);
});

test('devices above the limit per second wait', async () => {
  gateway.memory.devicesPerSecond = 1000;
  const outcome = await push(devices(4000));
  expect((kinds(outcome).sent ?? 0) + (kinds(outcome).retry ?? 0)).toBe(4000);
  expect(kinds(outcome).retry).toBeGreaterThan(0);
});

describe('the call', () => {
  test('contains the current time, and the app in its path', async () => {
    const clock = movableClock(systemClock.now());
    clock.moveMs(5000);
    await push(devices(1), { context: aContext(clock), message: aMessage() });
    const [call] = gateway.requests;
    expect(call?.headers.timestamp).toBe(String(clock.now()));
    expect(call?.path).toBe(`/api/v1/${gateway.memory.app.appId}/sendMessage`);
    expect(gateway.violations).toEqual([]);
  });

  test('is not made without our database, and the gateway is not blamed', async () => {
    const tokens = new MemoryTokens();
    tokens.read = () => Promise.reject(new Error('no database'));
    const { attempts } = await push(devices(2), { context: aContext(systemClock, { tokens }) });
    for (const attempt of attempts) {
      expect(attempt).toMatchObject({ kind: 'retry', reason: 'token_store_unavailable' });
      expect(isFailure(attempt)).toBeNull();
    }
    expect(gateway.total).toBe(0);
  });

  test('is not made if the push expires while the access token is fetched', async () => {
    const clock = movableClock(systemClock.now());
    const tokens = new MemoryTokens(clock);
    const claim = tokens.claim.bind(tokens);
    tokens.claim = (credential, leaseMs) => {
      clock.moveMs(60_000);
      return claim(credential, leaseMs);
    };
    const message = aMessage({ alert: 'a' }, { expiresAtMs: clock.now() + 60_000 });
    const context = aContext(clock, { tokens });
    const { attempts } = await push(devices(1), { context, message });
    expect(attempts[0]).toMatchObject({ kind: 'rejected', outcome: 'expired' });
    expect(gateway.total).toBe(0);
  });

  test.each<[string, Record<string, string>]>([
    ['a wrong secret', { clientSecret: 'another' }],
    ['a wrong client', { clientId: 'another' }],
  ])('is not made without an access token, for %s', async (_, profile) => {
    const { attempts } = await push(devices(2), { profile });
    expect(attempts[0]).toMatchObject({ kind: 'profile_error', reason: 'credentials_refused' });
    expect(JSON.stringify(attempts)).not.toContain('another');
    expect(gateway.total).toBe(0);
  });

  test('contains the activity of the profile with a badge', async () => {
    const message = aMessage({ alert: 'a', badge: 'Increment' });
    await push(devices(1), { message, profile: { badgeClass: 'com.example.Main' } });
    expect(
      JSON.parse(gateway.requests[0]?.body.toString() ?? '').android.notification.badge,
    ).toEqual({
      addNum: 1,
      badgeClass: 'com.example.Main',
    });
  });
});
