import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { EqualRefusals } from '../../../../connectors/contract/attempt-result.ts';
import type { AttemptResult } from '../../../../connectors/contract/connector.ts';
import { isFailure } from '../../../../connectors/contract/gateway-health.ts';
import { meizu, meizuConnector } from '../../../../connectors/vendors/meizu/index.ts';
import { callRules, targetRules } from '../../../../connectors/vendors/meizu/responses.ts';
import {
  type MeizuGateway,
  startMeizuGateway,
} from '../../../../ops/sandbox/vendors/meizu/server.ts';
import { systemClock } from '../../../../shared/clock.ts';
import { defaultHttpTiming } from '../../../../shared/http/client.ts';
import { aContext, aMessage, kinds, movableClock } from '../../../support/gateways/apns.ts';
import { MemoryQuota } from '../../../support/gateways/sender-context.ts';
import {
  messageIdOf,
  receiptsDuring,
  statusMeanings,
  vendorFixture,
} from '../../../support/gateways/vendor-fixture.ts';
import { meizuApp, pushIdOf } from './fixture.ts';

let gateway: MeizuGateway;

beforeAll(async () => {
  gateway = await startMeizuGateway({ ...meizuApp, receiptToken: 'of-the-console' });
});
afterAll(() => gateway.close());
afterEach(() => {
  gateway.behave();
  gateway.forget();
  gateway.deadTokens.clear();
  gateway.targetCodes.clear();
});

const { makeRecipients, open, push } = vendorFixture<MeizuGateway>({
  connector: meizu,
  vendor: 'mz',
  deviceToken: pushIdOf,
  gateway: () => gateway,
  profile: () => meizuApp,
});

const answer = (body: object, count?: number) =>
  gateway.misbehave({
    kind: 'answer',
    status: 200,
    body,
    ...(count === undefined ? {} : { count }),
  });
const lastMessage = () =>
  JSON.parse(
    new URLSearchParams(gateway.requests.at(-1)?.body.toString()).get('messageJson') ?? '',
  );
const resultOf = (attempt: Awaited<ReturnType<typeof push>>['attempts'][number] | undefined) =>
  attempt?.kind === 'rejected' ? attempt.outcome : attempt?.kind;

/** Results by code of a whole call (protocol/meizu.md#codes). */
const ofCalls: [string, string][] = [
  ['200', 'sent'],
  ['500', 'retry'],
  ['1001', 'retry'],
  ['1003', 'retry'],
  ['110010', 'retry'],
  ['110032', 'retry'],
  ['300', 'retry'],
  ['1005', 'failed'],
  ['110004', 'failed'],
  ['110053', 'failed'],
  // These codes concern devices that the reply does not name.
  ['110002', 'failed'],
  ['110003', 'failed'],
  ['1006', 'profile_error'],
  ['110000', 'profile_error'],
  ['110001', 'profile_error'],
  ['110031', 'profile_error'],
  ['110033', 'profile_error'],
  ['110009', 'profile_error'],
  ['110019', 'capped'],
  ['110051', 'capped'],
  ['4711', 'failed'],
];

/** Results by code of one device within a successful call. */
const ofTargets: [string, string][] = [
  ['200', 'sent'],
  ['201', 'failed'],
  ['501', 'retry'],
  ['513', 'retry'],
  ['518', 'retry'],
  ['519', 'retry'],
  ['520', 'dropped'],
  ['110002', 'invalid_token'],
  ['110003', 'invalid_token'],
  ['110005', 'failed'],
  ['110010', 'failed'],
  ['110011', 'capped'],
  ['4711', 'failed'],
];

describe('a reply of Meizu', () => {
  test('is tested for every code of the documentation, in both places', () => {
    const known = (meanings: [string, string][]) =>
      meanings.map(([code]) => code).filter((code) => code !== '4711');
    expect(known(ofCalls).sort()).toEqual(callRules.map(({ code }) => code).sort());
    expect(known(ofTargets).sort()).toEqual(targetRules.map(({ code }) => code).sort());
  });

  test.each(ofCalls)('%s for a call is %s, and invalidates no token', async (code, expected) => {
    answer({ code, message: '', value: '', redirect: '' });
    for (const count of [1, 3]) {
      const { attempts, context } = await push({ to: makeRecipients(count) });
      for (const attempt of attempts) expect(resultOf(attempt)).toBe(expected);
      if (expected === 'profile_error')
        expect(attempts[0]).toMatchObject({ hint: expect.stringMatching(/^meizu[A-Z]/) });
      expect(context.quota.reasons.has('public')).toBe(expected === 'capped');
    }
  });

  test.each(ofTargets)(
    '%s for one device is %s, and the others are sent',
    async (code, expected) => {
      gateway.targetCodes.set(pushIdOf(1), Number(code));
      const { attempts, context } = await push();
      expect(attempts.map(resultOf)).toEqual(['sent', expected, 'sent']);
      // The code of a device caps no other device.
      expect(context.quota.reasons.size).toBe(0);
    },
  );

  test('has two meanings of 110010: the rate of a call, or the user’s setting', async () => {
    gateway.targetCodes.set(pushIdOf(0), 110010);
    expect((await push()).attempts[0]).toMatchObject({
      outcome: 'failed',
      reason: 'notifications_off',
    });
    answer({ code: '110010', value: '' });
    expect((await push()).attempts[0]).toMatchObject({ kind: 'retry', reason: 'rate_exceeded' });
  });

  test('may list codes by device, as one text, or as numbers', async () => {
    answer({ code: 200, msgId: 'm1', value: { [pushIdOf(0)]: 110002, 110003: `${pushIdOf(1)}` } });
    const { attempts } = await push();
    expect(attempts.map(resultOf)).toEqual(['invalid_token', 'invalid_token', 'sent']);
    expect(attempts[2]).toEqual({ kind: 'sent', messageId: 'm1' });
  });

  test.each([[''], [{}], [null], ['odd'], [[1]]])(
    'with %j for devices means that all are sent',
    async (value) => {
      answer({ code: '200', value });
      expect(kinds(await push())).toEqual({ sent: 3 });
    },
  );

  test.each(statusMeanings)(
    'without a body of its own is judged by its status: %i is %s',
    async (status, kind) => {
      gateway.misbehave({ kind: 'answer', status, body: '<html>' });
      expect(kinds(await push())).toEqual({ [kind]: 3 });
    },
  );

  test('that is unreadable or missing is an unknown result; a repeat is hidden', async () => {
    gateway.misbehave({ kind: 'answer', status: 200, body: '<html>' });
    const unknown = { kind: 'unknown', isRepeatHidden: true };
    expect((await push()).attempts[0]).toMatchObject({ ...unknown, reason: 'unreadable_reply' });
    gateway.behave();
    gateway.misbehave({ kind: 'hang' });
    const shortTimeout = meizuConnector({ ...defaultHttpTiming, requestMs: 300 });
    expect((await push({ connector: shortTimeout })).attempts[0]).toMatchObject({
      ...unknown,
      reason: 'timeout',
    });
  });

  test('with a redirect is followed once, to hosts of Meizu only', async () => {
    const to = (redirect: string) => ({ code: '300', message: '', value: '', redirect });
    answer(to(`${gateway.url}/garcia/api/server/push/varnished/pushByPushId`), 1);
    expect(kinds(await push())).toEqual({ sent: 3 });
    expect(gateway.total).toBe(2);
    gateway.forget();
    const other = await startMeizuGateway(meizuApp);
    for (const url of [
      `${other.url}/x`,
      'http://meizu.com/',
      'https://evil-meizu.com/',
      'https://meizu.com.evil/',
      'x',
    ]) {
      answer(to(url), 1);
      expect((await push()).attempts[0]).toMatchObject({ kind: 'retry', reason: 'redirected' });
    }
    expect(other.total).toBe(0);
    await other.close();
    answer(to(`${gateway.url}/garcia/api/server/push/varnished/pushByPushId`));
    gateway.forget();
    expect(kinds(await push())).toEqual({ retry: 3 });
    expect(gateway.total).toBe(2);
  });
});

describe('the gateway itself', () => {
  test('gets a hundred devices per request, each once, and names the invalid ones', async () => {
    const to = makeRecipients(250);
    for (const n of [7, 120, 249]) gateway.deadTokens.add(pushIdOf(n));
    const outcome = await push({ to });
    expect(kinds(outcome)).toEqual({ sent: 247, invalid_token: 3 });
    for (const n of [7, 120, 249]) expect(outcome.attempts[n]?.kind).toBe('invalid_token');
    expect(gateway.requests.map(({ tokens }) => tokens.length).sort()).toEqual([100, 100, 50]);
    expect(gateway.violations).toEqual([]);
  });

  test('gets no request after the push expired, although earlier requests took long', async () => {
    const clock = movableClock(systemClock.now());
    const context = aContext(clock, { onCall: () => clock.moveMs(60_000) });
    const message = aMessage({ alert: 'a' }, { expiresAtMs: clock.now() + 60_000 });
    const { attempts } = await push({ to: makeRecipients(600), context, message });
    // Four requests run at the same time.
    expect(attempts.map(resultOf)).toEqual([
      ...Array(400).fill('sent'),
      ...Array(200).fill('expired'),
    ]);
    expect(gateway.total).toBe(4);
  });

  test('gets no device token that it would read as two', async () => {
    const to = makeRecipients(3, {}, (n) =>
      n === 1 ? `${pushIdOf(7)},${pushIdOf(8)}` : pushIdOf(n),
    );
    const { attempts } = await push({ to });
    expect(attempts.map(({ kind }) => kind)).toEqual(['sent', 'rejected', 'sent']);
    expect(gateway.seen(pushIdOf(7))).toBe(0);
  });

  test('gets the rest of a batch after a response with equal refusals and successes', async () => {
    for (let n = 0; n < 25; n += 1) gateway.targetCodes.set(pushIdOf(n), 4711);
    const sender = open();
    const refusals = new EqualRefusals();
    const attempts: AttemptResult[] = [];
    const report = (_: number, attempt: AttemptResult) => void attempts.push(attempt);
    const { signal } = new AbortController();
    const all = makeRecipients(200);
    for (const part of [all.slice(0, 100), all.slice(100)])
      await sender.send({
        pushId: 1,
        message: aMessage(),
        recipients: part,
        report,
        signal,
        refusals,
      });
    expect(kinds({ attempts, reports: [] })).toEqual({ rejected: 25, sent: 175 });
    await sender.close();
  });

  test('caps public messages for the day at their quota; private ones continue', async () => {
    const strict = await startMeizuGateway({ ...meizuApp, devicesPerDay: 2, messagesPerMinute: 5 });
    const context = aContext();
    const by = (mz: object = {}) =>
      push({
        by: strict,
        context,
        to: makeRecipients(2),
        message: aMessage({ alert: 'a', mz: { ...mz } }),
      });
    expect(kinds(await by())).toEqual({ sent: 2 });
    expect((await by()).attempts[0]).toMatchObject({
      outcome: 'capped',
      reason: 'day_quota_exceeded',
    });
    const { total } = strict;
    expect((await by()).attempts[0]).toMatchObject({ outcome: 'capped', status: 0 });
    expect(strict.total).toBe(total);
    expect(kinds(await by({ noticeMsgType: 1 }))).toEqual({ sent: 2 });
    await strict.close();
  });

  test('is not blamed if our database does not respond', async () => {
    const quota = new MemoryQuota();
    quota.closed = () => Promise.reject(new Error('no database'));
    const { attempts } = await push({ context: aContext(undefined, { quota }) });
    for (const attempt of attempts) {
      expect(attempt).toMatchObject({ kind: 'retry', reason: 'quota_unavailable' });
      expect(isFailure(attempt)).toBeNull();
    }
    expect(gateway.total).toBe(0);
  });

  test('drops messages that are too frequent for a device; they are not retried', async () => {
    const strict = await startMeizuGateway({ ...meizuApp, messagesPerMinute: 1 });
    expect(kinds(await push({ by: strict }))).toEqual({ sent: 3 });
    expect((await push({ by: strict })).attempts[0]).toMatchObject({
      outcome: 'dropped',
      reason: 'folded',
    });
    await strict.close();
  });

  test('names unknown apps and wrong signatures; no report shows a secret', async () => {
    expect((await push({ more: { appId: '5' } })).attempts[0]).toMatchObject({
      reason: 'bad_app_id',
    });
    const wrong = await push({ more: { appSecret: 'sesame' } });
    expect(wrong.attempts[0]).toMatchObject({ kind: 'profile_error', reason: 'signature_refused' });
    expect(JSON.stringify(wrong.attempts)).not.toContain('sesame');
    expect(gateway.requests.every(({ body }) => !body.toString().includes('sesame'))).toBe(true);
  });

  test('gets a signature that covers the packages of the caller', async () => {
    const mz = { restrictedPackageNames: 'com.example.a,com.example.b' };
    expect(kinds(await push({ message: aMessage({ alert: 'a &=+% é', mz }) }))).toEqual({
      sent: 3,
    });
    expect(gateway.violations).toEqual([]);
  });

  test('gets no invalid message; silent messages are dropped', async () => {
    const { attempts } = await push({ message: aMessage({ alert: 'a', silent: true }) });
    expect(attempts[0]).toMatchObject({ kind: 'rejected', outcome: 'dropped', status: 0 });
    expect(gateway.total).toBe(0);
  });
});

describe('receipts of Meizu', () => {
  const read = (body: string, profiles: { receiptToken?: string }[] = []) =>
    meizu.receipts?.(
      { headers: {}, body },
      profiles.map((one) => ({ ...meizuApp, ...one })),
    );
  const form = (cb: unknown, token = '') =>
    new URLSearchParams({ cb: JSON.stringify(cb), access_token: token }).toString();

  test('are requested at a URL of up to 128 bytes, unless the caller names one', async () => {
    await push();
    expect(lastMessage().extra).toEqual({
      callback: 'https://push.example.com/callbacks/vendor/app/secret',
      'callback.param': 'PushRecord000001',
      'callback.type': '3',
    });
    const long = aContext(undefined, {
      callbackUrl: `https://push.example.com/${'x'.repeat(128)}`,
    });
    await push({ context: long });
    expect(lastMessage().extra).toBeUndefined();
    const extra = { callback: 'https://own.example/r', 'callback.param': 'p' };
    await push({ message: aMessage({ alert: 'a', mz: { extra } }) });
    expect(lastMessage().extra).toEqual(extra);
    expect(gateway.violations).toEqual([]);
  });

  test('arrive at the URL of the message, with the token of the console', async () => {
    let messageId = '';
    const readAll = (body: string) =>
      read(body, [{ receiptToken: 'other' }, { receiptToken: 'of-the-console' }]);
    const receipts = await receiptsDuring(readAll, async (callbackUrl) => {
      const [first] = (await push({ context: aContext(undefined, { callbackUrl }) })).attempts;
      messageId = messageIdOf(first);
      expect(await gateway.sendReceipt(1, [pushIdOf(0), pushIdOf(1)])).toEqual([200]);
      expect(await gateway.sendReceipt(2, [pushIdOf(1)])).toEqual([200]);
    });
    const shared = { objectId: 'PushRecord000001', messageId, atMs: null };
    expect(receipts).toEqual([
      { ...shared, deviceToken: pushIdOf(0), event: 'delivered', code: '1' },
      { ...shared, deviceToken: pushIdOf(1), event: 'delivered', code: '1' },
      { ...shared, deviceToken: pushIdOf(1), event: 'clicked', code: '2' },
    ]);
  });

  test('need the token of a profile, or the secret of the URL if no profile has a token', () => {
    const body = form({ 'm-1': { param: 'p', type: 1, targets: ['a'] } }, 'right');
    expect(read(body, [{ receiptToken: 'right' }])).toMatchObject({ ok: true });
    for (const profiles of [[{ receiptToken: 'wrong' }], [{}, { receiptToken: 'wrong' }]])
      expect(read(body, profiles)).toMatchObject({ ok: false, status: 401 });
    expect(read(body, [{}])).toMatchObject({ ok: true });
  });

  test('are parsed in the form of Meizu’s own example', () => {
    const parsed = read(
      form({
        'msgId2-1': { param: 'param2', type: 1, targets: ['pushId3', 'pushId2'] },
        'msgId1-2': { param: 'param1', type: 2, targets: ['alias2'] },
      }),
    );
    expect(parsed?.ok && parsed.receipts.map(({ atMs: _, code: __, ...one }) => one)).toEqual([
      { objectId: 'param2', messageId: 'msgId2', deviceToken: 'pushId3', event: 'delivered' },
      { objectId: 'param2', messageId: 'msgId2', deviceToken: 'pushId2', event: 'delivered' },
      { objectId: 'param1', messageId: 'msgId1', deviceToken: 'alias2', event: 'clicked' },
    ]);
  });

  test('that are invalid are refused, or ignored among valid ones', () => {
    for (const body of ['', 'cb=', 'cb=5', '{"a":1}', 'cb=%7B', '%%%'])
      expect(read(body)).toMatchObject({ ok: false, status: 400 });
    const invalid = {
      a: 5,
      'b-9': { type: 9, targets: ['x'] },
      'c-1': { targets: 5 },
      'd-2': { targets: 'y, z' },
    };
    expect(read(form(invalid))).toMatchObject({
      receipts: [
        { deviceToken: 'y', event: 'clicked', objectId: null, messageId: 'd' },
        { deviceToken: 'z' },
      ],
    });
  });
});
