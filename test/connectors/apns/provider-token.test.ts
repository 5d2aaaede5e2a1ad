import { afterEach, describe, expect, test } from 'vitest';
import { ProviderTokens } from '../../../connectors/apns/provider-token.ts';
import { createApnsCredentials, recordToken } from '../../../ops/sandbox/apns/server.ts';
import { TokenVerifier, type ValidToken } from '../../../ops/sandbox/apns/tokens.ts';
import {
  type ApnsFixture,
  aMessage,
  kinds,
  movableClock,
  recipients,
  sendAll,
  startApnsFixture,
} from '../../support/gateways/apns.ts';

const minuteMs = 60_000;
/** Time at a half-hour boundary, 11:30 on some day. */
const halfPastMs = Date.UTC(2026, 10, 21, 11, 30);

describe('provider tokens', () => {
  const key = createApnsCredentials();

  test('are accepted by the gateway', () => {
    const clock = movableClock(halfPastMs);
    const { authorization } = new ProviderTokens(key, clock).current();
    expect(new TokenVerifier([key]).check(authorization, clock.now())).toMatchObject({ key });
  });

  test('have the same issue time in every process, between 5 and 35 minutes ago', () => {
    const clock = movableClock(halfPastMs);
    const one = new ProviderTokens(key, clock);
    for (let minute = 0; minute < 120; minute += 1) {
      const another = new ProviderTokens(key, clock).current();
      const { issuedAtS } = one.current();
      expect(another.issuedAtS).toBe(issuedAtS);
      const ageMinutes = (clock.now() / 1000 - issuedAtS) / 60;
      expect(ageMinutes).toBeGreaterThanOrEqual(5);
      expect(ageMinutes).toBeLessThanOrEqual(35);
      clock.moveMs(minuteMs);
    }
  });

  test('change at most every 20 minutes, even after an early replacement', () => {
    const clock = movableClock(halfPastMs);
    const tokens = new ProviderTokens(key, clock);
    clock.moveMs(25 * minuteMs);
    const replaced = tokens.replace(tokens.current());
    expect(replaced?.issuedAtS).toBe(clock.now() / 1000);
    clock.moveMs(19 * minuteMs);
    expect(tokens.current()).toBe(replaced);
    expect(replaced && tokens.replace(replaced)).toBeNull();
    clock.moveMs(20 * minuteMs);
    expect(tokens.current()).not.toBe(replaced);
  });

  test('are replaced once for all refusals of the same token', () => {
    const tokens = new ProviderTokens(key, movableClock(halfPastMs));
    const refused = tokens.current();
    const first = tokens.replace(refused);
    expect(tokens.replace(refused)).toBe(first);
  });

  test('are replaced after the clock was set back', () => {
    const clock = movableClock(halfPastMs);
    const tokens = new ProviderTokens(key, clock);
    tokens.current();
    clock.moveMs(-180 * minuteMs);
    expect(tokens.current().issuedAtS).toBeLessThan(clock.now() / 1000);
  });
});

describe('the sandbox gateway', () => {
  test.each([
    [19, 'refuses'],
    [20, 'takes'],
    [-30, 'refuses'],
  ])('%s minutes after the first token of a connection, %s another token on it', (minutes, act) => {
    const key = createApnsCredentials();
    const tokenOf = (minute: number): ValidToken => ({
      authorization: `bearer ${minute}`,
      key,
      issuedAtS: halfPastMs / 1000 + minute * 60,
    });
    const connection = { token: tokenOf(0) };
    const refusal = recordToken(connection, tokenOf(minutes));
    expect(refusal?.reason).toBe(act === 'takes' ? undefined : 'TooManyProviderTokenUpdates');
  });
});

describe('the next provider token', () => {
  test('is used on a connection that was opened a minute before', async () => {
    const clock = movableClock(halfPastMs + 4 * minuteMs);
    const bench = await startApnsFixture({ gateway: { clock }, clock });
    const message = aMessage({ alert: 'a' }, { expiresAtMs: halfPastMs + 60 * minuteMs });
    expect(kinds(await sendAll(bench.sender, recipients(10), message))).toEqual({ sent: 10 });
    clock.moveMs(2 * minuteMs);
    expect(kinds(await sendAll(bench.sender, recipients(10), message))).toEqual({ sent: 10 });
    expect(bench.gateway.connections).toBe(1);
    await bench.close();
  });
});

describe('a refused provider token', () => {
  let bench: ApnsFixture;
  afterEach(() => bench.close());

  test('that is expired at the gateway is replaced, and the batch is sent once', async () => {
    // The gateway's clock is 57 minutes ahead, so that the token is more than an hour old there.
    bench = await startApnsFixture({
      gateway: { clock: movableClock(halfPastMs + 57 * minuteMs) },
      clock: movableClock(halfPastMs),
    });
    const { gateway, sender } = bench;
    const expiresAtMs = halfPastMs + 60 * minuteMs;
    const to = recipients(500);
    const message = aMessage({ alert: 'a' }, { expiresAtMs });
    const outcome = await sendAll(sender, to, message);
    expect(kinds(outcome)).toEqual({ sent: 500 });
    expect(gateway.refusals('ExpiredProviderToken')).toBe(1);
    expect(gateway.accepted).toBe(500);
    expect(gateway.connections).toBe(2);
  });

  test('in many concurrent requests is replaced once, on a new connection', async () => {
    bench = await startApnsFixture();
    const { gateway, sender } = bench;
    await sendAll(sender, recipients(1));
    gateway.misbehave({ kind: 'answer', status: 403, reason: 'ExpiredProviderToken', count: 40 });
    const outcomes = await Promise.all([
      sendAll(sender, recipients(300)),
      sendAll(sender, recipients(300)),
    ]);
    expect(outcomes.map(kinds)).toEqual([{ sent: 300 }, { sent: 300 }]);
    expect(gateway.connections).toBe(2);
  });

  test('that stays invalid is a profile error after one more attempt', async () => {
    bench = await startApnsFixture();
    const other = createApnsCredentials();
    const sender = bench.open({ keyId: other.keyId, privateKey: other.privateKey });
    const outcome = await sendAll(sender, recipients(200));
    expect(kinds(outcome)).toEqual({ profile_error: 200 });
    expect(bench.gateway.refusals('InvalidProviderToken')).toBe(2);
  });

  test('after too many updates is not replaced: the key pauses', async () => {
    bench = await startApnsFixture();
    const { gateway, sender } = bench;
    gateway.misbehave({
      kind: 'answer',
      status: 429,
      reason: 'TooManyProviderTokenUpdates',
      count: 1,
    });
    const first = await sendAll(sender, recipients(100));
    expect(kinds(first)).toEqual({ retry: 100 });
    expect(gateway.total).toBe(1);
    const second = await sendAll(sender, recipients(2));
    expect(second.attempts[0]).toMatchObject({
      kind: 'retry',
      reason: 'TooManyProviderTokenUpdates',
    });
    expect(gateway.total).toBe(1);
  });

  test('of a key unrelated to the connection is repeated on a new connection', async () => {
    bench = await startApnsFixture();
    const { gateway, sender } = bench;
    gateway.misbehave({ kind: 'answer', status: 403, reason: 'UnrelatedKeyIdInToken', count: 1 });
    expect(kinds(await sendAll(sender, recipients(50)))).toEqual({ sent: 50 });
    expect(gateway.connections).toBe(2);
  });
});
