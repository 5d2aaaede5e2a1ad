import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type {
  AttemptResult,
  PushMessage,
  Recipient,
} from '../../../connectors/contract/connector.ts';
import { systemClock } from '../../../shared/clock.ts';
import { reason } from '../../../shared/domain/reasons.ts';
import { defaultHttpTiming, type HttpTiming } from '../../../shared/http/client.ts';
import {
  aContext,
  aMessage,
  kinds,
  movableClock,
  recipients,
  sendAll,
} from '../../support/gateways/apns.ts';
import type { TestContext } from '../../support/gateways/sender-context.ts';
import {
  attemptFor,
  type ExampleGateway,
  exampleVendor,
  startExampleGateway,
} from './example-vendor.ts';

let gateway: ExampleGateway;

beforeAll(async () => {
  gateway = await startExampleGateway();
});
afterAll(() => gateway.close());
afterEach(() => {
  gateway.behave();
  gateway.forget();
  gateway.deadTokens.clear();
  gateway.targetCodes.clear();
  gateway.ambiguousTokens.clear();
});

/** Short response timeout, for tests without a response. */
const shortTiming = { ...defaultHttpTiming, requestMs: 300 };

async function push(
  to: Recipient[],
  options: {
    context?: TestContext;
    message?: PushMessage;
    secret?: string;
    signal?: AbortSignal;
    timing?: HttpTiming;
  } = {},
) {
  const {
    context = aContext(),
    message,
    secret = 'right',
    signal,
    timing = defaultHttpTiming,
  } = options;
  const profile = { appId: 'app', secret, endpoint: gateway.url, ca: gateway.ca };
  const sender = exampleVendor(timing).open(profile, context);
  const outcome = await sendAll(sender, to, message, signal);
  await sender.close();
  return { ...outcome, context };
}

const answer = (code: number, count?: number) =>
  gateway.misbehave({
    kind: 'answer',
    status: 200,
    body: { code },
    ...(count === undefined ? {} : { count }),
  });

describe('requests with many targets', () => {
  test('contain as many devices as the gateway accepts, each once', async () => {
    const outcome = await push(recipients(95));
    expect(kinds(outcome)).toEqual({ sent: 95 });
    expect(gateway.total).toBe(10);
    expect(gateway.violations).toEqual([]);
    const ids = new Set(outcome.attempts.map((one) => one.kind === 'sent' && one.messageId));
    expect(ids.size).toBe(10);
    expect(outcome.context.calls).toHaveLength(10);
  });

  test('name a device with two installations once; both get its result', async () => {
    const [one, two, three] = recipients(3);
    if (!one || !two || !three) throw new Error('three');
    gateway.deadTokens.add(one.deviceToken);
    const { attempts } = await push([one, { ...two, deviceToken: one.deviceToken }, three]);
    expect(attempts.map(({ kind }) => kind)).toEqual(['invalid_token', 'invalid_token', 'sent']);
    expect(gateway.seen(one.deviceToken)).toBe(1);
  });

  test('report the result of each device', async () => {
    const to = recipients(30);
    for (const [n, code] of [
      [3, 8],
      [4, 1],
      [5, 9],
      [16, 7],
    ] as const)
      gateway.targetCodes.set(to[n]?.deviceToken ?? '', code);
    const { attempts } = await push(to);
    expect(attempts[3]).toEqual({ kind: 'invalid_token', status: 200, reason: 'unregistered' });
    expect(attempts[4]).toEqual({ kind: 'retry', status: 200, reason: 'busy', afterMs: 2500 });
    expect(attempts[5]).toMatchObject({ kind: 'rejected', outcome: 'dropped', reason: 'folded' });
    expect(attempts[16]).toMatchObject({ kind: 'rejected', outcome: 'failed', reason: 'bad_text' });
    // A single refused device does not end the push.
    expect(attempts.filter(({ kind }) => kind === 'sent')).toHaveLength(26);
  });

  test('invalidate no device if the whole request was refused', async () => {
    answer(8);
    expect(kinds(await push(recipients(10)))).toEqual({ rejected: 10 });
    expect(kinds(await push(recipients(1)))).toEqual({ invalid_token: 1 });
  });

  test('are halved until the invalid device is found', async () => {
    const to = recipients(40);
    gateway.ambiguousTokens.add(to[17]?.deviceToken ?? '');
    const outcome = await push(to);
    expect(outcome.attempts[17]).toMatchObject({
      kind: 'invalid_token',
      reason: 'no_valid_target',
    });
    expect(kinds(outcome)).toEqual({ sent: 39, invalid_token: 1 });
    expect(to.every(({ deviceToken }) => gateway.delivered(deviceToken) <= 1)).toBe(true);
    expect(gateway.total).toBeLessThan(15);
  });

  test('are halved up to a limit, even if all are refused', async () => {
    answer(6);
    const outcome = await push(recipients(1000));
    expect(outcome.reports.every((count) => count === 1)).toBe(true);
    expect(gateway.total).toBeLessThanOrEqual(100 + 64);
    expect(kinds(outcome).rejected).toBeGreaterThan(900);
  });

  test('stop if the reply concerns the whole push', async () => {
    answer(7);
    const outcome = await push(recipients(300));
    expect(kinds(outcome)).toEqual({ rejected: 300 });
    expect(gateway.total).toBeLessThanOrEqual(4);
  });

  test('all wait after a rate limit of the gateway', async () => {
    gateway.misbehave({ kind: 'answer', status: 503, retryAfter: '9' });
    const { attempts } = await push(recipients(300));
    expect(attempts.every((one) => one.kind === 'retry' && one.afterMs === 9000)).toBe(true);
    expect(gateway.total).toBeLessThanOrEqual(4);
  });

  test('with an unreadable reply have an unknown result', async () => {
    gateway.misbehave({ kind: 'answer', status: 200, body: '<html>' });
    const { attempts } = await push(recipients(3));
    expect(attempts[0]).toEqual({
      kind: 'unknown',
      reason: 'unreadable_reply',
      isRepeatHidden: true,
    });
  });

  test('that are unsent when the push is stopped stay unsent', async () => {
    gateway.misbehave({ kind: 'slow', delayMs: 100 });
    const stop = new AbortController();
    const sent = push(recipients(200), { signal: stop.signal });
    await gateway.waitFor(1);
    stop.abort();
    const outcome = await sent;
    expect(outcome.reports.every((count) => count === 1)).toBe(true);
    expect(kinds(outcome).retry).toBeGreaterThanOrEqual(150);
    expect(kinds(outcome).sent).toBe(gateway.accepted);
  });
});

describe('a daily quota that is used up', () => {
  test('caps the message class for every sender that shares the state', async () => {
    answer(5, 1);
    const { attempts, context } = await push(recipients(10));
    expect(attempts[0]).toEqual({
      kind: 'rejected',
      outcome: 'capped',
      status: 200,
      reason: 'day_quota',
    });
    const { total } = gateway;
    const second = await push(recipients(10), { context });
    expect(second.attempts[0]).toEqual({
      kind: 'rejected',
      outcome: 'capped',
      status: 0,
      reason: 'day_quota',
    });
    expect(gateway.total).toBe(total);
  });
});

describe('access tokens', () => {
  test('are fetched once for all senders and used until they expire', async () => {
    const context = aContext();
    await Promise.all([1, 2, 3, 4].map(() => push(recipients(20), { context })));
    expect(gateway.tokenCalls).toBe(1);
  });

  test('that the gateway refuses are replaced once, and requests are repeated', async () => {
    const context = aContext();
    await push(recipients(1), { context });
    gateway.tokenIssuer.expireAll();
    gateway.forget();
    const outcome = await push(recipients(200), { context });
    expect(kinds(outcome)).toEqual({ sent: 200 });
    expect(gateway.tokenCalls).toBe(1);
  });

  test('that are refused after a renewal end the push with a hint', async () => {
    answer(3);
    const context = aContext();
    const first = await push(recipients(100), { context });
    const second = await push(recipients(100), { context });
    for (const { attempts } of [first, second])
      for (const attempt of attempts)
        expect(attempt).toMatchObject({ kind: 'profile_error', hint: 'credentialsUnfit' });
    expect(gateway.tokenCalls).toBe(2);
  });

  test('are renewed before they expire, while sending continues', async () => {
    const clock = movableClock(systemClock.now());
    const context = aContext(clock);
    await push(recipients(1), {
      context,
      message: aMessage(undefined, { expiresAtMs: clock.now() + 9e7 }),
    });
    clock.moveMs(56 * 60_000);
    await push(recipients(1), {
      context,
      message: aMessage(undefined, { expiresAtMs: clock.now() + 9e7 }),
    });
    expect(gateway.tokenCalls).toBe(2);
  });

  test('that cannot be fetched lead to a retry, because the gateway may recover', async () => {
    gateway.misbehave({ kind: 'answer', status: 503, path: '/token', retryAfter: '4' });
    const { attempts } = await push(recipients(2));
    expect(attempts[0]).toEqual({
      kind: 'retry',
      status: 503,
      reason: 'token_call_refused',
      afterMs: 4000,
    });
    gateway.behave();
    gateway.misbehave({ kind: 'hang', path: '/token' });
    expect((await push(recipients(2), { timing: shortTiming })).attempts[0]).toMatchObject({
      kind: 'retry',
      reason: 'timeout',
    });
    gateway.behave();
    gateway.misbehave({ kind: 'answer', status: 200, body: 'no JSON', path: '/token' });
    expect((await push(recipients(2))).attempts[0]).toMatchObject({
      kind: 'retry',
      reason: 'token_reply_unreadable',
    });
    expect(gateway.total).toBe(0);
  });

  test('that cannot be fetched are not requested again at once', async () => {
    let monotonicMs = 0;
    const clock = { now: () => systemClock.now(), monotonicMs: () => monotonicMs };
    const context = aContext(clock);
    const profile = { appId: 'app', secret: 'right', endpoint: gateway.url, ca: gateway.ca };
    const sender = exampleVendor(defaultHttpTiming).open(profile, context);
    const answer = { kind: 'answer', status: 429, isTokenCall: true } as const;
    const asks = async () => {
      const before = gateway.tokenCalls;
      const results = await Promise.all([1, 2, 3].map(() => sendAll(sender, recipients(2))));
      for (const { attempts } of results)
        expect(kinds({ attempts, reports: [] })).toEqual({ retry: 2 });
      return gateway.tokenCalls - before;
    };
    gateway.misbehave({ ...answer, retryAfter: '0' });
    expect(await asks()).toBe(1);
    expect(await asks()).toBe(0);
    monotonicMs += 1001;
    gateway.behave();
    gateway.misbehave({ ...answer, retryAfter: '40' });
    expect(await asks()).toBe(1);
    // The back-off has grown, and the gateway requests a longer pause.
    monotonicMs += 39_000;
    expect(await asks()).toBe(0);
    gateway.behave();
    monotonicMs += 3_000;
    expect(kinds(await sendAll(sender, recipients(2)))).toEqual({ sent: 2 });
    await sender.close();
  });

  test('refused for the credentials end the push with a hint without secrets', async () => {
    const { attempts } = await push(recipients(2), { secret: 'wrong' });
    expect(attempts[0]).toMatchObject({
      kind: 'profile_error',
      status: 401,
      reason: 'credentials_refused',
    });
    expect(JSON.stringify(attempts)).not.toContain('wrong');
    expect(gateway.total).toBe(0);
  });
});

describe('a table of codes', () => {
  test.each<[string, AttemptResult['kind']]>([
    ['0', 'sent'],
    ['1', 'retry'],
    ['2', 'retry'],
    ['3', 'profile_error'],
    ['4', 'profile_error'],
    ['5', 'rejected'],
    ['6', 'rejected'],
    ['7', 'rejected'],
    ['8', 'invalid_token'],
    ['9', 'rejected'],
  ])('%s → %s', (code, kind) => {
    expect(attemptFor(code).kind).toBe(kind);
  });

  test('deletes nothing for an unknown code, and shows the code', () => {
    expect(attemptFor(4711)).toEqual({
      kind: 'rejected',
      outcome: 'failed',
      status: 200,
      reason: reason('unknown_code', { vendorCode: '4711' }),
    });
    expect(attemptFor('<script>').kind).toBe('rejected');
  });
});
