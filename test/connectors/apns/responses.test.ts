import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { parseError, responseRules } from '../../../connectors/apns/responses.ts';
import type { AttemptResult } from '../../../connectors/contract/connector.ts';
import type { ApnsGateway } from '../../../ops/sandbox/apns/server.ts';
import { httpReason } from '../../../shared/domain/reasons.ts';
import {
  type ApnsFixture,
  aMessage,
  deviceToken,
  kinds,
  recipients,
  sendAll,
  startApnsFixture,
} from '../../support/gateways/apns.ts';

describe('over HTTP/2', () => {
  let bench: ApnsFixture;
  let gateway: ApnsGateway;

  beforeAll(async () => {
    bench = await startApnsFixture();
    gateway = bench.gateway;
  });
  afterAll(() => bench.close());
  afterEach(() => {
    gateway.behave();
    gateway.forget();
  });

  /** Returns the result of a single recipient if the gateway always sends this reply. */
  async function attemptFor(status: number, reason: string): Promise<AttemptResult | undefined> {
    const sender = bench.open();
    gateway.misbehave({ kind: 'answer', status, reason });
    const { attempts } = await sendAll(sender, recipients(1));
    await sender.close();
    return attempts[0];
  }

  /**
   * Expected result of each reason (protocol/apns.md#answers). The list is independent of the
   * connector's table.
   */
  const expected: [number, string, AttemptResult['kind']][] = [
    [400, 'BadCollapseId', 'rejected'],
    [400, 'BadDeviceToken', 'invalid_token'],
    [400, 'BadExpirationDate', 'rejected'],
    [400, 'BadMessageId', 'rejected'],
    [400, 'BadPriority', 'rejected'],
    [400, 'BadTopic', 'profile_error'],
    [400, 'DeviceTokenNotForTopic', 'rejected'],
    [400, 'DuplicateHeaders', 'rejected'],
    [400, 'IdleTimeout', 'retry'],
    [400, 'InvalidPushType', 'rejected'],
    [400, 'MissingDeviceToken', 'rejected'],
    [400, 'MissingTopic', 'profile_error'],
    [400, 'PayloadEmpty', 'rejected'],
    [400, 'TopicDisallowed', 'profile_error'],
    [403, 'BadCertificate', 'profile_error'],
    [403, 'BadCertificateEnvironment', 'profile_error'],
    [403, 'ExpiredProviderToken', 'profile_error'],
    [403, 'Forbidden', 'profile_error'],
    [403, 'InvalidProviderToken', 'profile_error'],
    [403, 'MissingProviderToken', 'profile_error'],
    [403, 'UnrelatedKeyIdInToken', 'retry'],
    [403, 'BadEnvironmentKeyIdInToken', 'profile_error'],
    [403, 'BadEnvironmentKeyInToken', 'profile_error'],
    [404, 'BadPath', 'rejected'],
    [405, 'MethodNotAllowed', 'profile_error'],
    [410, 'Unregistered', 'invalid_token'],
    [410, 'ExpiredToken', 'invalid_token'],
    [413, 'PayloadTooLarge', 'rejected'],
    [429, 'TooManyProviderTokenUpdates', 'retry'],
    [429, 'TooManyRequests', 'retry'],
    [500, 'InternalServerError', 'retry'],
    [503, 'ServiceUnavailable', 'retry'],
    [503, 'Shutdown', 'retry'],
  ];

  describe('a reply of APNs', () => {
    test.each(expected)('%i %s → %s', async (status, reason, kind) => {
      expect(await attemptFor(status, reason)).toMatchObject({ kind, status, reason });
    });

    test('every row of the table is in this list', () => {
      expect(responseRules.map(({ status, reason }) => `${status} ${reason}`).sort()).toEqual(
        expected.map(([status, reason]) => `${status} ${reason}`).sort(),
      );
    });

    test.each([
      [400, 'SomethingNew', 'rejected'],
      [403, 'SomethingNew', 'profile_error'],
      [410, 'SomethingNew', 'rejected'],
      [418, '', 'rejected'],
      [429, 'SomethingNew', 'retry'],
      [502, '', 'retry'],
    ])(
      '%i with an unknown reason is judged by its status and invalidates no token',
      async (status, reason, kind) => {
        expect(await attemptFor(status, reason)).toMatchObject({
          kind,
          status,
          reason: httpReason(status),
        });
      },
    );

    test('that is not JSON, or is unknown JSON, gets the result of its status', () => {
      for (const body of ['<html>', '[]', 'null', '{"reason":5}', '{"reason":"Unregistered"'])
        expect(
          parseError({ kind: 'response', status: 410, body, retryAfterMs: null, seconds: 0 }),
        ).toMatchObject({ reaction: 'retry', reason: httpReason(410) });
    });
  });

  describe('an invalid token', () => {
    test('is reported with the time since when it is invalid', async () => {
      gateway.deadTokens.set(deviceToken(1), 1_700_000_000_123);
      const outcome = await sendAll(bench.sender, recipients(3));
      gateway.deadTokens.clear();
      expect(outcome.attempts[1]).toEqual({
        kind: 'invalid_token',
        status: 410,
        reason: 'Unregistered',
        invalidSinceMs: 1_700_000_000_123,
        isProof: true,
      });
      expect(kinds(outcome)).toEqual({ sent: 2, invalid_token: 1 });
    });

    test('of another app is kept', async () => {
      gateway.tokenTopics.set(deviceToken(0), 'com.somebody.else');
      const { attempts } = await sendAll(bench.sender, recipients(1));
      gateway.tokenTopics.clear();
      expect(attempts[0]).toMatchObject({
        kind: 'rejected',
        outcome: 'failed',
        reason: 'DeviceTokenNotForTopic',
      });
    });
  });

  describe('the rest of a batch', () => {
    test('is not sent after a reply about the whole push', async () => {
      const sender = bench.open();
      gateway.misbehave({ kind: 'answer', status: 400, reason: 'BadPriority' });
      const outcome = await sendAll(sender, recipients(300));
      await sender.close();
      expect(kinds(outcome)).toEqual({ rejected: 300 });
      expect(gateway.total).toBe(1);
    });

    test('is not sent after the credentials were refused', async () => {
      const sender = bench.open();
      gateway.misbehave({ kind: 'answer', status: 403, reason: 'Forbidden' });
      const outcome = await sendAll(sender, recipients(300));
      await sender.close();
      expect(kinds(outcome)).toEqual({ profile_error: 300 });
      expect(gateway.total).toBe(1);
    });

    test('is sent if a few tokens are invalid or busy', async () => {
      gateway.misbehave({
        kind: 'answer',
        status: 429,
        reason: 'TooManyRequests',
        retryAfter: '7',
        count: 5,
      });
      const outcome = await sendAll(bench.sender, recipients(100));
      expect(kinds(outcome)).toEqual({ sent: 95, retry: 5 });
      expect(outcome.attempts.find(({ kind }) => kind === 'retry')).toMatchObject({
        afterMs: 7000,
      });
    });
  });

  describe('503 Shutdown', () => {
    test('moves later requests to another connection', async () => {
      await sendAll(bench.sender, recipients(1));
      const { connections } = gateway;
      gateway.misbehave({ kind: 'answer', status: 503, reason: 'Shutdown', count: 1 });
      await sendAll(bench.sender, recipients(1));
      const outcome = await sendAll(bench.sender, recipients(10), aMessage());
      expect(kinds(outcome)).toEqual({ sent: 10 });
      expect(gateway.connections).toBe(connections + 1);
    });
  });
});
