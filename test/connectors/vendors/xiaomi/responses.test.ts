import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { xiaomi, xiaomiConnector } from '../../../../connectors/vendors/xiaomi/index.ts';
import { responseRules } from '../../../../connectors/vendors/xiaomi/responses.ts';
import {
  startXiaomiGateway,
  type XiaomiGateway,
} from '../../../../ops/sandbox/vendors/xiaomi/server.ts';
import { reason } from '../../../../shared/domain/reasons.ts';
import { defaultHttpTiming } from '../../../../shared/http/client.ts';
import { aContext, aMessage, kinds } from '../../../support/gateways/apns.ts';
import {
  messageIdOf,
  receiptsDuring,
  statusMeanings,
  vendorFixture,
} from '../../../support/gateways/vendor-fixture.ts';
import { regId, xiaomiApp } from './fixture.ts';

let gateway: XiaomiGateway;

beforeAll(async () => {
  gateway = await startXiaomiGateway({ ...xiaomiApp, channels: ['news', 'orders'] });
});
afterAll(() => gateway.close());
afterEach(() => {
  gateway.behave();
  gateway.forget();
  gateway.deadTokens.clear();
  gateway.illegalTokens.clear();
  gateway.offlineTokens.clear();
});

const { makeRecipients, push } = vendorFixture<XiaomiGateway>({
  connector: xiaomi,
  vendor: 'mi',
  deviceToken: regId,
  gateway: () => gateway,
  profile: () => xiaomiApp,
});

const answer = (body: object, status = 200) => gateway.misbehave({ kind: 'answer', status, body });
const lastForm = () => new URLSearchParams(gateway.requests.at(-1)?.body.toString());

/** Results by code, for one device and for three devices (protocol/xiaomi.md#codes). */
const meanings: [string, string, string][] = [
  ['0', 'sent', 'sent'],
  ...['-1', '1', '10001', '10002', '10003', '20607', '26003', '65029', '10037'].map(
    (code): [string, string, string] => [code, 'retry', 'retry'],
  ),
  ...['10027', '200002', '26004', '10030', '10032', '10035', '10039'].map(
    (code): [string, string, string] => [code, 'retry', 'retry'],
  ),
  ['200001', 'capped', 'capped'],
  ['10034', 'capped', 'capped'],
  ...['10008', '10012', '10016', '10017', '10041', '21305', '65011'].map(
    (code): [string, string, string] => [code, 'failed', 'failed'],
  ),
  ...['65009', '65014', '65015', '65036', '65037', '65038'].map(
    (code): [string, string, string] => [code, 'failed', 'failed'],
  ),
  ...['21301', '21302', '21303', '10036', '22000', '22006', '22007', '22022', '10031', '10033'].map(
    (code): [string, string, string] => [code, 'profile_error', 'profile_error'],
  ),
  ['27001', 'profile_error', 'profile_error'],
  ['26006', 'profile_error', 'profile_error'],
  // With several devices, the request is halved down to single devices.
  ['10029', 'invalid_token', 'invalid_token'],
  ['66007', 'invalid_token', 'invalid_token'],
  ['20301', 'failed', 'failed'],
  ['20301 no valid target', 'invalid_token', 'invalid_token'],
  ['65003', 'failed', 'failed'],
  ['4711', 'failed', 'failed'],
];

describe('a reply of Xiaomi', () => {
  test('is tested for every code of the documentation, and for no other', () => {
    const tested = meanings.map(([code]) => code).filter((code) => code !== '4711');
    expect(tested.sort()).toEqual(responseRules.map(({ code }) => code).sort());
  });

  test.each(meanings)(
    '%s means %s for one device and %s for three',
    async (code, ofOne, ofThree) => {
      const reason = code.includes('target') ? 'No valid targets!' : 'why';
      answer({
        result: code === '0' ? 'ok' : 'error',
        code: Number.parseInt(code, 10),
        reason,
        trace_id: 'x',
      });
      for (const [count, expected] of [
        [1, ofOne],
        [3, ofThree],
      ] as const) {
        const { attempts, context } = await push({ to: makeRecipients(count) });
        for (const attempt of attempts)
          expect(attempt.kind === 'rejected' ? attempt.outcome : attempt.kind).toBe(expected);
        if (expected === 'profile_error')
          expect(attempts[0]).toMatchObject({ hint: expect.stringMatching(/^xiaomi[A-Z]/) });
        expect(context.quota.reasons.has('default')).toBe(expected === 'capped');
      }
      // Only a refusal because of a token halves the request.
      if (ofThree !== 'invalid_token' && !['20301', '65003'].includes(code))
        expect(gateway.total).toBe(2);
    },
  );

  test('with an unknown code invalidates no token and shows the code', async () => {
    answer({ result: 'error', code: 4711 });
    expect((await push()).attempts[0]).toMatchObject({
      reason: reason('unknown_code', { vendorCode: '4711' }),
    });
  });

  test.each(statusMeanings)(
    'without a body of its own is judged by its status: %i is %s',
    async (status, kind) => {
      gateway.misbehave({ kind: 'answer', status, body: '<html>' });
      expect(kinds(await push())).toEqual({ [kind]: 3 });
    },
  );

  test('that is unreadable is an unknown result with a hidden repeat', async () => {
    gateway.misbehave({ kind: 'answer', status: 200, body: '<html>' });
    expect((await push()).attempts[0]).toEqual({
      kind: 'unknown',
      reason: 'unreadable_reply',
      isRepeatHidden: true,
    });
    const silent = await push({ message: aMessage({ silent: true, k: 1 }) });
    expect(silent.attempts[0]).toMatchObject({ kind: 'unknown', isRepeatHidden: false });
  });

  test.each(['bad_regids', 'bad_regIds'])(
    'names invalid devices within a success, under %s',
    async (name) => {
      answer({ result: 'ok', code: 0, data: { id: 'sdm1', [name]: `${regId(1)},${regId(2)}` } });
      const { attempts } = await push({ to: makeRecipients(4) });
      expect(attempts.map(({ kind }) => kind)).toEqual([
        'sent',
        'invalid_token',
        'invalid_token',
        'sent',
      ]);
      expect(attempts[0]).toEqual({ kind: 'sent', messageId: 'sdm1' });
    },
  );

  test('records the trace id if there is no message id', async () => {
    answer({ result: 'ok', code: 0, trace_id: 'Xdm7' });
    expect((await push()).attempts[0]).toEqual({ kind: 'sent', messageId: 'Xdm7' });
  });

  test('that counts devices above the category’s quota caps that many', async () => {
    answer({
      result: 'ok',
      code: 0,
      data: { id: 'i', bad_regids: regId(0), channel_exceed_quota: 'no_channel:2 a:1' },
    });
    const outcome = await push({ to: makeRecipients(10) });
    expect(kinds(outcome)).toEqual({ sent: 6, invalid_token: 1, rejected: 3 });
    expect(
      outcome.attempts.filter((one) => one.kind === 'rejected' && one.outcome === 'capped'),
    ).toHaveLength(3);
    expect(outcome.context.quota.reasons.size).toBe(0);
    gateway.behave();
    answer({ result: 'ok', code: 0, data: { channel_exceed_quota: 'no_channel:10' } });
    const none = await push({ to: makeRecipients(10) });
    expect(none.context.quota.reasons.get('default')).toBe('channel_quota_exceeded');
  });
});

describe('the gateway itself', () => {
  test('names invalid devices; illegal and offline ones are found by halving', async () => {
    const to = makeRecipients(1000);
    for (const n of [3, 500]) gateway.deadTokens.add(regId(n));
    gateway.illegalTokens.add(regId(700));
    gateway.offlineTokens.add(regId(20));
    const outcome = await push({ to });
    expect(kinds(outcome)).toEqual({ sent: 996, invalid_token: 3, rejected: 1 });
    for (const n of [3, 500, 700]) expect(outcome.attempts[n]?.kind).toBe('invalid_token');
    expect(outcome.attempts[20]).toMatchObject({ outcome: 'failed', reason: 'device_not_found' });
    expect(to.every(({ deviceToken }) => gateway.delivered(deviceToken) <= 1)).toBe(true);
    expect(gateway.violations).toEqual([]);
  });

  test('gets no device token that it would read as two', async () => {
    const to = makeRecipients(3, {}, (n) => (n === 1 ? `${regId(7)},${regId(8)}` : regId(n)));
    const { attempts } = await push({ to });
    expect(attempts.map(({ kind }) => kind)).toEqual(['sent', 'rejected', 'sent']);
    expect(attempts[1]).toMatchObject({ reason: reason('registrationMalformed') });
    expect(gateway.seen(regId(7))).toBe(0);
  });

  test('reports each token if all are invalid', async () => {
    for (const { deviceToken } of makeRecipients(3)) gateway.deadTokens.add(deviceToken);
    expect(kinds(await push())).toEqual({ invalid_token: 3 });
  });

  test('gets the secret, the package and the receipt URL with every message', async () => {
    await push();
    expect(gateway.requests[0]).toMatchObject({
      path: '/v3/message/regid',
      headers: { authorization: `key=${xiaomiApp.appSecret}` },
    });
    expect(Object.fromEntries(lastForm())).toMatchObject({
      restricted_package_name: 'com.example.app',
      'extra.callback': 'https://push.example.com/callbacks/vendor/app/secret',
      'extra.callback.param': 'PushRecord000001',
      'extra.callback.type': '243',
    });
    await push({
      message: aMessage({ alert: 'a', mi: { extra: { callback: 'https://own.example/r' } } }),
    });
    expect(Object.fromEntries(lastForm())).toMatchObject({
      'extra.callback': 'https://own.example/r',
    });
    expect(lastForm().get('extra.callback.param')).toBeNull();
  });

  test('caps a category for the day if its quota is used up, and no other', async () => {
    const strict = await startXiaomiGateway({
      ...xiaomiApp,
      devicesPerDay: 2,
      requestsPerSecond: 100,
    });
    const context = aContext();
    const on = (channel?: string) =>
      push({
        by: strict,
        context,
        to: makeRecipients(2),
        message: aMessage({ alert: 'a' }, channel ? { notificationChannel: channel } : {}),
      });
    expect(kinds(await on('news'))).toEqual({ sent: 2 });
    expect((await on('news')).attempts[0]).toMatchObject({
      outcome: 'capped',
      reason: 'day_quota_exceeded',
    });
    const { total } = strict;
    expect((await on('news')).attempts[0]).toMatchObject({ outcome: 'capped', status: 0 });
    expect(strict.total).toBe(total);
    expect(kinds(await on('orders'))).toEqual({ sent: 2 });
    expect(kinds(await on())).toEqual({ sent: 2 });
    expect(strict.violations).toEqual([]);
    await strict.close();
  });

  test('names unknown categories, packages and secrets', async () => {
    const unknownChannel = await push({
      message: aMessage({ alert: 'a' }, { notificationChannel: 'unknown' }),
    });
    expect(unknownChannel.attempts[0]).toMatchObject({
      kind: 'profile_error',
      reason: 'invalid_channel',
    });
    const other = await push({ more: { packageName: 'com.example.other' } });
    expect(other.attempts[0]).toMatchObject({ kind: 'profile_error', reason: 'bad_package_name' });
    const wrong = await push({ more: { appSecret: 'sesame' } });
    expect(wrong.attempts[0]).toMatchObject({ kind: 'profile_error', reason: 'auth_failed' });
    expect(JSON.stringify(wrong.attempts)).not.toContain('sesame');
    expect(gateway.violations).toEqual([]);
  });

  test('gets no invalid message', async () => {
    const { attempts } = await push({ message: aMessage({ alert: 'x'.repeat(128) }) });
    expect(attempts[0]).toMatchObject({ kind: 'rejected', outcome: 'failed', status: 0 });
    expect(gateway.total).toBe(0);
  });

  test('that does not answer makes the result unknown', async () => {
    gateway.misbehave({ kind: 'hang' });
    const shortTimeout = xiaomiConnector({ ...defaultHttpTiming, requestMs: 300 });
    const { attempts } = await push({ connector: shortTimeout });
    expect(attempts[0]).toEqual({ kind: 'unknown', reason: 'timeout', isRepeatHidden: true });
    expect(gateway.accepted).toBe(3);
  });
});

describe('devices abroad', () => {
  const mixed = () => [...makeRecipients(2), ...makeRecipients(4, { vendor: 'mi-intl' }).slice(2)];

  test('are in separate requests from those in China', async () => {
    expect(kinds(await push({ to: mixed() }))).toEqual({ sent: 4 });
    expect(gateway.requests.map(({ tokens }) => [...tokens]).sort()).toEqual(
      [
        [regId(0), regId(1)],
        [regId(2), regId(3)],
      ].sort(),
    );
  });

  test('are not invalidated if their region is uncertain', async () => {
    for (const { deviceToken } of mixed()) gateway.deadTokens.add(deviceToken);
    const { attempts } = await push({ to: mixed() });
    expect(attempts.map(({ kind }) => kind)).toEqual([
      'invalid_token',
      'invalid_token',
      'rejected',
      'rejected',
    ]);
    gateway.deadTokens.delete(regId(3));
    const partly = await push({
      to: mixed()
        .slice(2)
        .map((one, index) => ({ ...one, index })),
    });
    expect(partly.attempts[0]).toMatchObject({ outcome: 'failed', reason: 'unknown_in_region' });
    expect(partly.attempts[1]).toMatchObject({ kind: 'sent' });
    // The request does not ask for receipts of invalid tokens either.
    expect(lastForm().get('extra.callback.type')).toBe('227');
    const certain = await push({ to: mixed(), more: { region: 'india' } });
    expect(kinds(certain)).toEqual({ invalid_token: 3, sent: 1 });
    expect(lastForm().get('extra.callback.type')).toBe('243');
  });
});

describe('receipts of Xiaomi', () => {
  const read = (body: string) => xiaomi.receipts?.({ headers: {}, body }, []);
  const form = (data: unknown) => new URLSearchParams({ data: JSON.stringify(data) }).toString();

  test('arrive at the URL of the message, with device and event', async () => {
    let messageId = '';
    const receipts = await receiptsDuring(read, async (callbackUrl) => {
      const [first] = (await push({ context: aContext(undefined, { callbackUrl }) })).attempts;
      messageId = messageIdOf(first);
      expect(await gateway.sendReceipt(1, [regId(0), regId(1)])).toEqual([200]);
      expect(await gateway.sendReceipt(16, [regId(2)])).toEqual([200]);
      // The request did not ask for receipts of invalid tokens.
      expect(await gateway.sendReceipt(1024, [regId(0)])).toEqual([]);
    });
    const shared = { objectId: 'PushRecord000001', messageId, atMs: expect.any(Number) };
    expect(receipts).toEqual([
      { ...shared, deviceToken: regId(0), event: 'delivered', code: '1' },
      { ...shared, deviceToken: regId(1), event: 'delivered', code: '1' },
      { ...shared, deviceToken: regId(2), event: 'dead_token', code: '16' },
    ]);
  });

  test.each([
    [1, 'delivered'],
    [2, 'clicked'],
    [16, 'dead_token'],
    [32, 'suspended'],
    [64, 'undelivered'],
    [128, 'undelivered'],
    [1024, 'undelivered'],
  ])('of type %i have the event %s', (type, event) => {
    const parsed = read(
      form({ m1: { param: 'p', type, targets: 'a, b', timestamp: '1585203103625' } }),
    );
    expect(parsed).toMatchObject({
      ok: true,
      receipts: [
        { deviceToken: 'a', event, messageId: 'm1', objectId: 'p', atMs: 1_585_203_103_625 },
        { deviceToken: 'b', event },
      ],
    });
  });

  test('report disabled notifications in addition to the delivery', () => {
    const parsed = read(form({ m: { type: 1, targets: 'a', barStatus: 'Disable' } }));
    expect(parsed?.ok && parsed.receipts.map(({ event }) => event)).toEqual([
      'delivered',
      'suspended',
    ]);
  });

  test('that are invalid are refused, or ignored among valid ones', () => {
    for (const body of ['', 'data=', 'data=5', '{"a":1}', 'data=%7B', '%%%'])
      expect(read(body)).toMatchObject({ ok: false, status: 400 });
    const invalid = {
      a: 5,
      b: { type: 4, targets: 'x' },
      c: { type: 1, targets: ['x'] },
      d: { type: 1, targets: 'y' },
    };
    expect(read(form(invalid))).toMatchObject({
      receipts: [{ deviceToken: 'y', objectId: null, atMs: null }],
    });
    // A receipt about the quota names aliases, and belongs to a push of another sender.
    const quota = {
      axo: { extra: { ack: '5', quota: '5' }, type: 128, targets: 'alias', timestamp: 1 },
    };
    expect(read(form(quota))).toMatchObject({
      receipts: [{ event: 'undelivered', objectId: null }],
    });
  });
});
