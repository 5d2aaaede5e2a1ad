import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type {
  AttemptResult,
  PushMessage,
  Recipient,
} from '../../../../connectors/contract/connector.ts';
import { huawei } from '../../../../connectors/vendors/huawei/index.ts';
import { responseRules } from '../../../../connectors/vendors/huawei/responses.ts';
import {
  type HuaweiGateway,
  startHuaweiGateway,
} from '../../../../ops/sandbox/vendors/huawei/server.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { reason } from '../../../../shared/domain/reasons.ts';
import { aContext, aMessage, kinds, recipients, sendAll } from '../../../support/gateways/apns.ts';
import type { TestContext } from '../../../support/gateways/sender-context.ts';
import { huaweiToken } from './fixture.ts';

let gateway: HuaweiGateway;

beforeAll(async () => {
  gateway = await startHuaweiGateway();
});
afterAll(() => gateway.close());
afterEach(() => {
  gateway.behave();
  gateway.forget();
  gateway.deadTokens.clear();
  for (const tokens of [
    gateway.memory.refusedTokens,
    gateway.memory.harmonyTokens,
    gateway.memory.androidTokens,
  ])
    tokens.clear();
  Object.assign(gateway.memory, { devicesPerSecond: Number.POSITIVE_INFINITY, testsPerDay: 500 });
});

const older = (count: number): Recipient[] =>
  recipients(count, { deviceType: 'android' }).map((one) => ({
    ...one,
    deviceToken: huaweiToken(one.index),
  }));
const newer = (count: number, deviceType = 'android'): Recipient[] =>
  older(count).map((one) => ({ ...one, deviceType, deviceToken: `MAMz${one.deviceToken}` }));

interface PushOptions {
  message?: PushMessage;
  context?: TestContext;
  /** Overrides of the profile's members. Null removes a member. */
  profile?: Record<string, unknown>;
}

async function push(
  to: Recipient[],
  { message, context = aContext(), profile = {} }: PushOptions = {},
) {
  const { appId, appSecret, serviceAccount } = gateway.memory.app;
  const base = { appId, appSecret, serviceAccount };
  const near = { endpoint: gateway.url, authEndpoint: gateway.url, ca: gateway.ca };
  const sender = huawei.open(huawei.credentials.parse({ ...base, ...near, ...profile }), context);
  const outcome = await sendAll(sender, to, message);
  await sender.close();
  return { ...outcome, context };
}

const answer = (
  code: string,
  options: { status?: number; msg?: string; count?: number; path?: string } = {},
) =>
  gateway.misbehave({
    kind: 'answer',
    status: options.status ?? 200,
    body: { code, msg: options.msg ?? 'refused', requestId: '157' },
    ...(options.count === undefined ? {} : { count: options.count }),
    ...(options.path === undefined ? {} : { path: options.path }),
  });

const attemptOfOne = async (to = older(1)): Promise<AttemptResult | undefined> =>
  (await push(to)).attempts[0];

/** HTTP statuses, codes, and the result of a recipient (protocol/huawei.md#answers). */
const table: [number, string, Partial<Record<string, unknown>>][] = [
  [200, '80000000', { kind: 'sent', messageId: '157' }],
  [400, '80100001', { kind: 'rejected', reason: 'bad_parameter' }],
  [200, '80100002', { kind: 'rejected', reason: 'one_token_only' }],
  [200, '80100003', { kind: 'rejected', reason: 'bad_message' }],
  [200, '80100004', { kind: 'rejected', reason: 'ttl_in_the_past' }],
  [200, '80100013', { kind: 'rejected', reason: 'bad_collapse_key' }],
  [200, '80100016', { kind: 'rejected', reason: 'sensitive_words' }],
  [200, '80100017', { kind: 'retry', reason: 'too_many_topic_tasks', afterMs: 60_000 }],
  [200, '80100018', { kind: 'rejected', reason: 'bad_review_signature' }],
  [200, '80100022', { kind: 'rejected', reason: 'image_not_verified' }],
  [401, '80200001', { kind: 'profile_error', reason: 'auth_failed' }],
  [401, '80200003', { kind: 'profile_error', reason: 'token_expired' }],
  [401, '80200005', { kind: 'profile_error', reason: 'jwt_expired' }],
  [200, '80300002', { kind: 'profile_error', reason: 'no_permission' }],
  [200, '80300007', { kind: 'invalid_token', reason: 'illegal_token' }],
  [200, '80300008', { kind: 'rejected', reason: 'body_too_large' }],
  [200, '80300010', { kind: 'rejected', reason: 'token_count' }],
  [200, '80300011', { kind: 'profile_error', reason: 'no_high_priority' }],
  [200, '80300013', { kind: 'profile_error', reason: 'bad_receipt_id' }],
  [200, '80300029', { kind: 'retry', reason: 'test_rate' }],
  [200, '80300030', { kind: 'rejected', reason: 'test_token_count' }],
  [200, '80300036', { kind: 'profile_error', reason: 'jwt_too_long' }],
  [200, '80300037', { kind: 'profile_error', reason: 'app_penalised' }],
  [200, '80600003', { kind: 'retry', reason: 'auth_service_failed' }],
  [500, '81000001', { kind: 'retry', reason: 'internal' }],
  // Without a list of the refused tokens, the outcome is unknown.
  [200, '80100020', { kind: 'rejected', reason: 'partial_unreadable' }],
  [200, '80000001', { kind: 'retry', reason: 'internal' }],
  [200, '80300017', { kind: 'rejected', reason: 'tokens_of_several_apps' }],
  [200, '80300028', { kind: 'rejected', reason: 'token_of_other_app' }],
  [200, '80300032', { kind: 'rejected', reason: 'no_recall_right' }],
  ...Array.from({ length: 13 }, (_, i): [number, string, object] => [
    200,
    String(82_000_001 + i),
    { kind: 'rejected', reason: i < 11 ? 'device_group_or_topic' : 'data_storage_location' },
  ]),
];

describe('every code of Huawei', () => {
  test('has a row in this table', () => {
    const known = responseRules.map(({ code }) => code).filter((code) => code !== '80100000');
    expect(table.map(([, code]) => code)).toEqual(known);
  });

  test.each(table)('%i %s', async (status, code, expected) => {
    answer(code, { status });
    const attempt = await attemptOfOne();
    expect(attempt).toMatchObject(expected);
    if (attempt?.kind === 'profile_error') expect(attempt.hint).toMatch(/^huawei[A-Z]/);
    if (attempt?.kind === 'rejected') expect(attempt.outcome).toBe('failed');
  });

  test.each<[number, Partial<AttemptResult>]>([
    [404, { kind: 'retry' }],
    [500, { kind: 'retry' }],
    [502, { kind: 'retry' }],
    [503, { kind: 'retry' }],
    [401, { kind: 'retry' }],
    [400, { kind: 'retry' }],
  ])('a %i without a code fails nothing', async (status, expected) => {
    gateway.misbehave({ kind: 'answer', status, body: '<html>' });
    expect(await attemptOfOne()).toMatchObject({ ...expected, status });
  });

  test('flow control stops the rest of the send, whatever the body contains', async () => {
    answer('80000000', { status: 503 });
    expect(kinds(await push(older(3000)))).toEqual({ retry: 3000 });
    expect(gateway.total).toBeLessThanOrEqual(3);
  });

  test('an unknown code is shown, and deletes nothing', async () => {
    answer('80999999');
    expect(await attemptOfOne()).toMatchObject({
      kind: 'rejected',
      reason: reason('unknown_code', { vendorCode: '80999999' }),
    });
  });

  test('an unreadable success is an unknown result', async () => {
    gateway.misbehave({ kind: 'answer', status: 200, body: 'OK' });
    expect(await attemptOfOne()).toMatchObject({ kind: 'unknown', isRepeatHidden: true });
  });
});

describe('a partial success', () => {
  test('applies to the named devices, and is not repeated', async () => {
    const to = older(1000);
    for (const n of [3, 500, 999]) gateway.deadTokens.add(huaweiToken(n));
    const { attempts } = await push(to);
    for (const [n, attempt] of attempts.entries())
      expect(attempt.kind).toBe([3, 500, 999].includes(n) ? 'invalid_token' : 'sent');
    // Only the refused devices are tried with the other API.
    expect(gateway.requests.map(({ path, tokens }) => [path.slice(0, 3), tokens.length])).toEqual([
      ['/v1', 1000],
      ['/v3', 3],
    ]);
  });

  test('is parsed in the other spelling too', async () => {
    const bad = huaweiToken(1);
    answer('80100000', { msg: JSON.stringify({ success: 1, failure: 1, illegalTokens: [bad] }) });
    expect((await push(older(2))).attempts.map(({ kind }) => kind)).toEqual([
      'sent',
      'invalid_token',
    ]);
  });

  test.each(['', 'no JSON', '{}', '{"success":1,"failure":1}', '{"illegal_tokens":"x"}'])(
    'without names (%j) deletes no token and is not repeated',
    async (msg) => {
      answer('80100000', { msg });
      const { attempts } = await push(older(2));
      for (const attempt of attempts)
        expect(attempt).toMatchObject({ kind: 'rejected', reason: 'partial_unreadable' });
      expect(gateway.total).toBe(1);
    },
  );

  test('without any success applies to every device of the request', async () => {
    for (const { deviceToken } of older(3)) gateway.deadTokens.add(deviceToken);
    expect(kinds(await push(older(3)))).toEqual({ invalid_token: 3 });
  });

  test('does not invalidate a newer device that v1 cannot reach', async () => {
    const { attempts } = await push([...newer(1), ...older(2).slice(1)], {
      profile: { serviceAccount: undefined },
    });
    expect(attempts[0]).toMatchObject({ kind: 'rejected', reason: 'needs_service_account' });
    expect(attempts[1]?.kind).toBe('sent');
    expect(kinds(await push(newer(1), { profile: { serviceAccount: undefined } }))).toEqual({
      rejected: 1,
    });
  });
});

describe('HarmonyOS devices', () => {
  test('are sent to by v3 with a JWT, the others by v1 with an access token', async () => {
    const to = [...newer(600), ...older(1000).slice(600)];
    expect(kinds(await push(to))).toEqual({ sent: 1000 });
    expect(gateway.violations).toEqual([]);
    const byPath = Object.groupBy(gateway.requests, ({ path }) => path.slice(0, 3));
    expect(byPath['/v1']?.map(({ tokens }) => tokens.length)).toEqual([400]);
    expect(byPath['/v3']?.map(({ tokens }) => tokens.length)).toEqual([600]);
  });

  test('are recognised by type too; without a service account the result says so', async () => {
    const [one] = newer(1, 'HarmonyOS');
    if (!one) throw new Error('one');
    const { attempts } = await push([one], { profile: { serviceAccount: undefined } });
    expect(attempts[0]).toMatchObject({ kind: 'rejected', reason: reason('noServiceAccount') });
    expect(gateway.total).toBe(0);
    expect(kinds(await push([one]))).toEqual({ sent: 1 });
  });

  test.each<[string, string, string]>([
    ['tokenFormatError', 'invalid_token', 'token_format_error'],
    ['tokenPlatformNotSupport', 'invalid_token', 'token_platform_not_supported'],
    ['noRight', 'invalid_token', 'no_right'],
    ['noPushTypeRight', 'rejected', 'no_push_type_right'],
    ['atomicUnableSendUnsubscribedMsg', 'rejected', 'atomic_service_not_subscribed'],
    ['countryNotSupport', 'rejected', 'country_not_supported'],
    ['disableSendHuaweiMsgBecauseOfPenalty', 'profile_error', 'app_penalised'],
    ['differentImgVerifyPolicy', 'rejected', 'image_verified_for_other_type'],
    ['appinfoError', 'rejected', 'app_not_created'],
    ['notSupportPlayVoice', 'rejected', 'play_voice_not_supported'],
    ['noRightToSendThisLiveNotificationEvent', 'rejected', 'no_live_view_right'],
    ['aReasonToCome', 'rejected', 'unknown_reason'],
  ])('are refused with a reason for each: %s', async (reason, kind, expectedReason) => {
    const to = newer(3);
    gateway.memory.refusedTokens.set(to[1]?.deviceToken ?? '', reason);
    const { attempts } = await push(to);
    expect(attempts.map((one) => one.kind)).toEqual(['sent', kind, 'sent']);
    expect(attempts[1]).toMatchObject({ reason: expectedReason });
  });

  test('are not invalidated if the project has no right to any of them', async () => {
    const to = newer(3);
    for (const { deviceToken } of to) gateway.memory.refusedTokens.set(deviceToken, 'noRight');
    const { attempts } = await push(to);
    for (const attempt of attempts)
      expect(attempt).toMatchObject({ kind: 'rejected', reason: 'no_right' });
  });

  test('are not invalidated if all are refused without a reason', async () => {
    answer('80300007', { msg: 'All the tokens are invalid' });
    expect(kinds(await push(newer(2)))).toEqual({ rejected: 2 });
    const byType = older(2).map((one) => ({ ...one, deviceType: 'harmony' }));
    expect(kinds(await push(byType))).toEqual({ rejected: 2 });
  });

  test('get one new JWT if theirs has expired; a second refusal is a profile error', async () => {
    answer('80200005', { status: 401, count: 1 });
    expect(kinds(await push(newer(2)))).toEqual({ sent: 2 });
    expect(gateway.total).toBe(2);
    const own = { ...gateway.memory.app.serviceAccount, key_id: 'another' };
    const { attempts } = await push(newer(2), { profile: { serviceAccount: own } });
    expect(attempts[0]).toMatchObject({ kind: 'profile_error', reason: 'auth_failed' });
  });
});

describe('a token whose form does not reveal its system', () => {
  const token = (text: string) => older(1).map((one) => ({ ...one, deviceToken: text }));
  const typed = (text: string, deviceType: string) =>
    token(text).map((one) => ({ ...one, deviceType }));
  const paths = () => gateway.requests.map(({ path }) => path.slice(0, 3));
  const forms = ['IQAAAACy0001_-', 'MAAALgE4G98BAAAAst01', 'AAWWHI94sgUR2RU5', 'IQAAAasdMAMz', 'x'];

  test.each(forms)('%s of HarmonyOS is reached by v3 if the type says so', async (text) => {
    gateway.memory.harmonyTokens.add(text);
    for (const type of ['harmony', 'harmonyos', 'ohos', 'openharmony']) {
      gateway.forget();
      expect(kinds(await push(typed(text, type)))).toEqual({ sent: 1 });
      expect(paths()).toEqual(['/v3']);
    }
  });

  test.each(forms)(
    '%s of an upgraded device is reached by v3 after v1 refused it',
    async (text) => {
      gateway.memory.harmonyTokens.add(text);
      const { attempts } = await push([...older(3).slice(1), ...token(text)]);
      expect(attempts.map(({ kind }) => kind)).toEqual(['sent', 'sent', 'sent']);
      expect(paths()).toEqual(['/v1', '/v3']);
    },
  );

  test('MAMz of Android is reached by v1 after v3 refused it', async () => {
    gateway.memory.androidTokens.add('MAMzAndroid');
    expect(kinds(await push(token('MAMzAndroid')))).toEqual({ sent: 1 });
    expect(paths()).toEqual(['/v3', '/v1']);
  });

  test('is invalid if both APIs refuse it; successes are counted per API', async () => {
    const [dead = ''] = forms;
    gateway.deadTokens.add(dead);
    const [alone] = (await push(token(dead))).attempts;
    expect(alone).toEqual({
      kind: 'invalid_token',
      status: 200,
      reason: 'illegal_token',
      form: 'v1',
    });
    gateway.deadTokens.clear();
    gateway.memory.refusedTokens.set(dead, 'noRight');
    gateway.memory.harmonyTokens.add(dead);
    // The v3 API has no right to the token, because its project may be another one.
    const [unclear] = (await push(token(dead))).attempts;
    expect(unclear).toMatchObject({ kind: 'invalid_token', form: 'v1+v3' });
    const { attempts } = await push([...newer(1), ...older(2).slice(1)]);
    expect(attempts).toMatchObject([
      { kind: 'sent', form: 'v3' },
      { kind: 'sent', form: 'v1' },
    ]);
  });

  test('stays valid if the other API refuses our credentials or message', async () => {
    const [text = ''] = forms;
    gateway.memory.harmonyTokens.add(text);
    const to = [...older(3).slice(1), ...token(text)];
    const own = { ...gateway.memory.app.serviceAccount, key_id: 'another' };
    const wrong = await push(to, { profile: { serviceAccount: own } });
    expect(wrong.attempts.map(({ kind }) => kind)).toEqual(['rejected', 'sent', 'sent']);
    answer('80100003', { path: '/v3' });
    expect((await push(to)).attempts.map(({ kind }) => kind)).toEqual(['rejected', 'sent', 'sent']);
    gateway.behave();
    answer('81000001', { path: '/v3' });
    expect((await push(to)).attempts.map(({ kind }) => kind)).toEqual(['retry', 'sent', 'sent']);
  });

  test('of the old system is judged by v1 alone without a service account', async () => {
    const [text = ''] = forms;
    gateway.deadTokens.add(text);
    const { attempts } = await push(token(text), { profile: { serviceAccount: undefined } });
    expect(attempts[0]).toEqual({ kind: 'invalid_token', status: 200, reason: 'illegal_token' });
  });
});

describe('limits of the gateway', () => {
  test('devices per second: the others wait', async () => {
    gateway.memory.devicesPerSecond = 1000;
    const outcome = await push(older(4000));
    expect(outcome.reports.every((count) => count === 1)).toBe(true);
    expect((kinds(outcome).sent ?? 0) + (kinds(outcome).retry ?? 0)).toBe(4000);
    expect(kinds(outcome).retry).toBeGreaterThan(0);
  });

  test('tests: ten devices per request', async () => {
    const message = aMessage({ alert: 'a', hms: { target_user_type: 1 } });
    expect(kinds(await push(newer(25), { message }))).toEqual({ sent: 25 });
    expect(gateway.total).toBe(3);
    gateway.memory.testsPerDay = 0;
    expect((await push(newer(2), { message })).attempts[0]).toMatchObject({
      kind: 'retry',
      reason: 'test_rate',
    });
  });

  test('too many tokens for this kind of message: the request is halved', async () => {
    answer('80300010', { count: 1 });
    expect(kinds(await push(older(4)))).toEqual({ sent: 4 });
    expect(gateway.requests.map(({ tokens }) => tokens.length)).toEqual([4, 2, 2]);
  });
});

describe('an access token', () => {
  test.each<[string, JsonObject]>([
    ['a wrong secret', { appSecret: 'another' }],
    ['a wrong app', { appId: '1' }],
  ])('is not issued for %s: the result is a hint, and no message is sent', async (_, profile) => {
    const { attempts } = await push(older(2), { profile });
    expect(attempts[0]).toMatchObject({ kind: 'profile_error', reason: 'credentials_refused' });
    expect(JSON.stringify(attempts)).not.toContain('another');
    expect(gateway.total).toBe(0);
  });

  test('that is refused in a body of status 200 is refused', async () => {
    const body = { error: 1101, sub_error: 20044, error_description: 'no' };
    gateway.misbehave({ kind: 'answer', status: 200, body, path: '/oauth2' });
    const { attempts } = await push(older(1));
    expect(attempts[0]).toMatchObject({ kind: 'profile_error', hint: 'huaweiToken' });
  });

  test('is parsed from JSON with escaped slashes', async () => {
    expect(kinds(await push(older(1)))).toEqual({ sent: 1 });
    expect(gateway.requests[0]?.headers.authorization).toMatch(/^Bearer DQEBA\/[\w-]+$/);
    expect(gateway.requests[0]?.path).toBe(`/v1/${gateway.memory.app.appId}/messages:send`);
  });
});
