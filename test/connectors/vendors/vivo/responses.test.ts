import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { PushMessage } from '../../../../connectors/contract/connector.ts';
import { vivo, vivoConnector } from '../../../../connectors/vendors/vivo/index.ts';
import { responseRules, userRules } from '../../../../connectors/vendors/vivo/responses.ts';
import { startVivoGateway, type VivoGateway } from '../../../../ops/sandbox/vendors/vivo/server.ts';
import { systemClock } from '../../../../shared/clock.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { reason } from '../../../../shared/domain/reasons.ts';
import { defaultHttpTiming } from '../../../../shared/http/client.ts';
import {
  aContext,
  aMessage,
  kinds,
  movableClock,
  sendAll,
} from '../../../support/gateways/apns.ts';
import {
  messageIdOf,
  receiptsDuring,
  statusMeanings,
  vendorFixture,
} from '../../../support/gateways/vendor-fixture.ts';
import { vivoId } from './fixture.ts';

let gateway: VivoGateway;

beforeAll(async () => {
  gateway = await startVivoGateway();
});
afterAll(() => gateway.close());
afterEach(() => {
  gateway.behave();
  gateway.forget();
  gateway.deadTokens.clear();
  const { memory } = gateway;
  memory.statuses.clear();
  memory.testDevices.clear();
  Object.assign(memory, { hasSendingHours: false, refusesTestTexts: false });
  const any = Number.POSITIVE_INFINITY;
  Object.assign(memory, { devicesPerSecond: any, tokensPerSecond: any, savesPerDay: any });
  Object.assign(memory, { operationsPerDay: any, systemPerDay: any });
});

const { makeRecipients, open, push } = vendorFixture<VivoGateway>({
  connector: vivo,
  vendor: 'vivo',
  deviceToken: vivoId,
  gateway: () => gateway,
  profile: ({ memory }) => memory.app,
});

const system = (data: JsonObject = {}) =>
  aMessage({ alert: 'Hello', vivo: { classification: 1, ...data } });
const paths = () => gateway.requests.map(({ path }) => path);
const bodyOf = (at: number): JsonObject =>
  JSON.parse(gateway.requests.at(at)?.body.toString() ?? '');
/** Makes messages and lists get this reply. Saves still succeed. */
const answer = (body: object | string) => {
  for (const path of ['/message/send', '/message/pushToList'])
    gateway.misbehave({ kind: 'answer', status: 200, body, path });
};

const all = (codes: string[], meaning: string): [string, string][] =>
  codes.map((code) => [code, meaning]);

/** Results by code, for one device and for three devices (protocol/vivo.md#codes). */
const meanings: [string, string][] = [
  ['0', 'sent'],
  ...all(
    ['10000', '10094', '10207', '10043', '10045', '10082', '10051', '10096', '10097'],
    'profile_error',
  ),
  ...all(['10200', '10201', '10202', '10203', '10204', '10205', '10206'], 'profile_error'),
  // A list is halved down to single devices.
  ['10302', 'invalid_token'],
  ['10311', 'failed'],
  ...all(['10070', '10073', '10252', '10254'], 'capped'),
  ...all(['10071', '10072', '10155'], 'retry'),
  ...all(['10050', '10054', '10055', '10056', '10057', '10058', '10059', '10060'], 'failed'),
  ...all(['10065', '10067', '10095', '10304', '10305', '10306', '10352', '10353'], 'failed'),
  ...all(
    ['10085', '10104', '10103', '10150', '10151', '10152', '10153', '10800', '10801'],
    'failed',
  ),
  ['4711', 'failed'],
];

describe('a reply of vivo', () => {
  test('is tested for every code of the documentation, and for no other', () => {
    const tested = meanings.map(([code]) => code).filter((code) => code !== '4711');
    expect(tested.sort()).toEqual(responseRules.map(({ code }) => code).sort());
  });

  test.each(meanings)('%s means %s, for one device and for three', async (code, meaning) => {
    answer({ result: Number(code), desc: 'why' });
    for (const count of [1, 3]) {
      const { attempts, context } = await push({ to: makeRecipients(count) });
      for (const attempt of attempts)
        expect(attempt.kind === 'rejected' ? attempt.outcome : attempt.kind).toBe(meaning);
      if (attempts[0]?.kind === 'profile_error') expect(attempts[0].hint).toMatch(/^vivo[A-Z]/);
      const closed = [...context.quota.reasons.keys()];
      const own = code === '10252' ? 'saveListPayload' : 'operation';
      expect(closed).toEqual(meaning === 'capped' ? [own] : []);
    }
    expect(gateway.violations).toEqual([]);
  });

  test('with an unknown code invalidates no token and shows the code', async () => {
    answer({ result: 4711, desc: 'why' });
    expect((await push()).attempts[0]).toMatchObject({
      reason: reason('unknown_code', { vendorCode: '4711' }),
    });
  });

  test.each(statusMeanings)(
    'without a body of its own is judged by its status: %i is %s',
    async (status, kind) => {
      gateway.misbehave({ kind: 'answer', status, body: '<html>' });
      expect(kinds(await push())).toEqual({ [kind]: 3 });
      expect(kinds(await push({ to: makeRecipients(1) }))).toEqual({ [kind]: 1 });
    },
  );

  test('that is unreadable is an unknown result, and a repeat is hidden', async () => {
    answer('<html>');
    for (const count of [1, 3])
      expect((await push({ to: makeRecipients(count) })).attempts[0]).toEqual({
        kind: 'unknown',
        reason: 'unreadable_reply',
        isRepeatHidden: true,
      });
    gateway.behave();
    gateway.misbehave({ kind: 'hang', path: '/message/pushToList' });
    const { attempts } = await push({
      connector: vivoConnector({ ...defaultHttpTiming, requestMs: 300 }),
    });
    expect(attempts[0]).toEqual({ kind: 'unknown', reason: 'timeout', isRepeatHidden: true });
  });

  test.each<[number, string]>([
    [1, 'invalid_token'],
    [2, 'invalid_token'],
    [3, 'rejected'],
    [4, 'rejected'],
    [5, 'rejected'],
    [9, 'rejected'],
  ])(
    'names single devices with the status %i: %s, in a single message and in a list',
    async (status, kind) => {
      gateway.memory.statuses.set(vivoId(0), status);
      const alone = await push({ to: makeRecipients(1) });
      const listed = await push();
      expect(alone.attempts[0]?.kind).toBe(kind);
      expect(listed.attempts.map((one) => one.kind)).toEqual([kind, 'sent', 'sent']);
      expect(listed.attempts[0]).toMatchObject({
        reason:
          userRules.find(({ code }) => code === String(status))?.reason ??
          expect.stringContaining('user_status'),
      });
    },
  );

  test('contains the id of its task', async () => {
    const [alone] = (await push({ to: makeRecipients(1) })).attempts;
    expect(alone).toMatchObject({
      kind: 'sent',
      messageId: expect.stringMatching(/^342982232646/),
    });
    const listed = await push();
    expect(listed.attempts[2]).toEqual({ kind: 'sent', messageId: bodyOf(-1).taskId });
  });
});

describe('the gateway itself', () => {
  test('gets a single message for one device, and one save for lists of a thousand', async () => {
    const to = makeRecipients(2001);
    gateway.deadTokens.add(vivoId(3));
    gateway.deadTokens.add(vivoId(2000));
    const outcome = await push({ to });
    expect(kinds(outcome)).toEqual({ sent: 1999, invalid_token: 2 });
    expect(outcome.attempts[3]).toMatchObject({ reason: 'uninstalled_or_unsubscribed' });
    expect(outcome.attempts[2000]?.kind).toBe('invalid_token');
    expect(paths().sort()).toEqual(
      [
        '/message/saveListPayload',
        '/message/pushToList',
        '/message/pushToList',
        '/message/send',
      ].sort(),
    );
    expect(to.every(({ deviceToken }) => gateway.seen(deviceToken) === 1)).toBe(true);
    expect(gateway.violations).toEqual([]);
  });

  test('gets the app, an id for each call, and the URL for receipts', async () => {
    const callback = 'https://push.example.com/callbacks/vendor/app/secret';
    await push({ to: makeRecipients(1) });
    await push();
    const [single, saved, listed] = [bodyOf(0), bodyOf(1), bodyOf(2)];
    const appId = Number(gateway.memory.app.appId);
    for (const body of [single, saved, listed])
      expect(body).toMatchObject({ appId, requestId: expect.stringMatching(/^[\w-]{10,64}$/) });
    expect(new Set([single.requestId, saved.requestId, listed.requestId]).size).toBe(3);
    for (const body of [single, saved])
      expect(body).toMatchObject({ extra: { callback, 'callback.param': 'PushRecord000001' } });
    expect(listed).toMatchObject({ regIds: [vivoId(0), vivoId(1), vivoId(2)], pushMode: 0 });
    // The same devices cause the same call in another attempt.
    await push();
    expect(bodyOf(-1).requestId).toBe(listed.requestId);
    await push({
      to: makeRecipients(1),
      message: system({ extra: { callback: 'https://own.example/r' } }),
    });
    expect(bodyOf(-1).extra).toEqual({ callback: 'https://own.example/r' });
    const far = aContext(systemClock, {
      callbackUrl: `https://push.example.com/${'x'.repeat(128)}`,
    });
    await push({ to: makeRecipients(1), context: far });
    expect(bodyOf(-1)).not.toHaveProperty('extra');
    expect(gateway.violations).toEqual([]);
  });

  test('gets only single messages if the profile says so', async () => {
    await push({ to: makeRecipients(1), message: system({ profileId: 'p' }) });
    expect(bodyOf(-1)).toMatchObject({ profileId: 'p' });
    expect(kinds(await push({ message: system({ profileId: 'p' }) }))).toEqual({ sent: 3 });
    expect(gateway.violations).toEqual([]);
  });

  test('sends tests only to test devices, and invalidates no other device', async () => {
    gateway.memory.testDevices.add(vivoId(1));
    const message = system({ pushMode: 1 });
    gateway.memory.systemPerDay = 0;
    const { attempts, context } = await push({ message });
    expect(attempts.map(({ kind }) => kind)).toEqual(['rejected', 'sent', 'rejected']);
    expect(attempts[0]).toMatchObject({ outcome: 'failed', reason: 'no_test_user' });
    expect((await push({ message, to: makeRecipients(1) })).attempts[0]).toMatchObject({
      reason: 'no_test_user',
    });
    expect(bodyOf(0)).not.toHaveProperty('extra');
    expect(bodyOf(1)).toMatchObject({ pushMode: 1 });
    expect(context.quota.reasons.size).toBe(0);
    expect(gateway.violations).toEqual([]);
  });

  test('refuses texts that look like a test', async () => {
    gateway.memory.refusesTestTexts = true;
    const alert = (text: string) => push({ message: aMessage({ alert: text }) });
    for (const text of ['test', '12345', '!!!', '订单测试', 'a {b}'])
      expect((await alert(text)).attempts[0]).toMatchObject({
        outcome: 'failed',
        reason: 'looks_like_a_test',
      });
    expect(kinds(await alert('您的订单已发货'))).toEqual({ sent: 3 });
  });

  test('limits devices per second', async () => {
    gateway.memory.devicesPerSecond = 2;
    expect((await push()).attempts[0]).toMatchObject({ kind: 'retry', reason: 'too_fast' });
  });

  test('caps operation messages at their daily quota; system messages continue', async () => {
    gateway.memory.operationsPerDay = 2;
    const context = aContext();
    const first = await push({ context });
    expect(first.attempts[0]).toMatchObject({
      outcome: 'capped',
      reason: 'operation_quota_exceeded',
    });
    const { total } = gateway;
    for (const count of [1, 3])
      expect((await push({ context, to: makeRecipients(count) })).attempts[0]).toMatchObject({
        outcome: 'capped',
        status: 0,
      });
    expect(gateway.total).toBe(total);
    expect(kinds(await push({ context, message: system() }))).toEqual({ sent: 3 });
    gateway.memory.systemPerDay = 0;
    expect((await push({ context, message: system() })).attempts[0]).toMatchObject({
      reason: 'system_quota_exceeded',
    });
  });

  test('still sends single messages if the saves of the day are used up', async () => {
    gateway.memory.savesPerDay = 0;
    const context = aContext();
    expect((await push({ context })).attempts[0]).toMatchObject({
      outcome: 'capped',
      reason: 'list_quota_exceeded',
    });
    const { total } = gateway;
    expect((await push({ context, message: system() })).attempts[0]).toMatchObject({
      outcome: 'capped',
      status: 0,
    });
    expect(gateway.total).toBe(total);
    expect(kinds(await push({ context, to: makeRecipients(1) }))).toEqual({ sent: 1 });
  });

  test('gets no invalid message', async () => {
    expect((await push({ message: aMessage({ silent: true }) })).attempts[0]).toMatchObject({
      outcome: 'dropped',
    });
    expect(
      (await push({ message: aMessage({ alert: 'x'.repeat(101) }) })).attempts[0],
    ).toMatchObject({
      outcome: 'failed',
      status: 0,
    });
    expect(gateway.total).toBe(0);
  });
});

describe('a saved message', () => {
  test('is saved again if its task has expired', async () => {
    const sender = open();
    expect(kinds(await sendAll(sender, makeRecipients(3)))).toEqual({ sent: 3 });
    gateway.memory.saved.clear();
    expect((await sendAll(sender, makeRecipients(3))).attempts[0]).toMatchObject({
      kind: 'retry',
      reason: 'task_expired',
    });
    expect(kinds(await sendAll(sender, makeRecipients(3)))).toEqual({ sent: 3 });
    await sender.close();
    expect(paths().filter((path) => path === '/message/saveListPayload')).toHaveLength(2);
  });

  test.each([
    [3600, 3590, 1],
    [3600, 1800, 2],
    [60, 86_400, 2],
  ])('for %i s serves a message for %i s with %i saves', async (firstS, secondS, saves) => {
    const clock = movableClock(Date.UTC(2027, 0, 1, 4));
    const own = await startVivoGateway({ clock });
    const sender = open({ by: own, context: aContext(clock) });
    for (const seconds of [firstS, secondS]) {
      const expiresAtMs = clock.now() + seconds * 1000;
      await sendAll(sender, makeRecipients(3), aMessage({ alert: 'a' }, { expiresAtMs }));
    }
    const lives = own.requests
      .filter(({ path }) => path === '/message/saveListPayload')
      .map(({ body }) => JSON.parse(body.toString()).timeToLive);
    expect(lives).toEqual([firstS, secondS].slice(0, saves));
    expect(own.accepted).toBe(6);
    await sender.close();
    await own.close();
  });

  test.each<[string, object | string, string]>([
    ['no task', { result: 0 }, 'retry'],
    ['an HTML page', '<html>', 'retry'],
    ['speed', { result: 10072 }, 'retry'],
    ['the day', { result: 10070 }, 'rejected'],
    ['its category', { result: 10096 }, 'profile_error'],
    ['its text', { result: 10103 }, 'rejected'],
  ])('that is not saved because of %s counts as not sent', async (_, body, kind) => {
    gateway.misbehave({ kind: 'answer', status: 200, body, path: '/message/saveListPayload' });
    expect(kinds(await push())).toEqual({ [kind]: 3 });
    expect(gateway.accepted).toBe(0);
  });

  test('that is refused for its access token is saved once more for all lists', async () => {
    const path = '/message/saveListPayload';
    gateway.misbehave({ kind: 'answer', status: 200, body: { result: 10000 }, path, count: 1 });
    expect(kinds(await push({ to: makeRecipients(3500) }))).toEqual({ sent: 3500 });
    expect(paths().filter((one) => one === path)).toHaveLength(2);
    expect(gateway.tokenCalls).toBe(2);
  });

  test('without a reply may be saved again', async () => {
    gateway.misbehave({ kind: 'reset', path: '/message/saveListPayload' });
    expect(kinds(await push())).toEqual({ retry: 3 });
  });
});

describe('at night', () => {
  /** 02:00 in China. */
  const night = Date.UTC(2027, 0, 1, 18);
  const nightly = (more: Partial<PushMessage> = {}) =>
    aMessage({ alert: 'Hello' }, { createdAtMs: night, expiresAtMs: night + 86_400_000, ...more });

  test('operation messages wait for the morning after one refused request', async () => {
    const clock = movableClock(night);
    const own = await startVivoGateway({ clock });
    own.memory.hasSendingHours = true;
    const sender = open({ by: own, context: aContext(clock) });
    const hour = 3_600_000;
    const first = await sendAll(sender, makeRecipients(3), nightly());
    expect(first.attempts[0]).toEqual({
      kind: 'retry',
      status: 200,
      reason: 'outside_sending_hours',
      afterMs: 5 * hour,
    });
    const { total } = own;
    clock.moveMs(hour);
    const second = await sendAll(sender, makeRecipients(3), nightly());
    expect(second.attempts[2]).toMatchObject({ kind: 'retry', status: 0, afterMs: 4 * hour });
    expect(second.reports).toEqual([1, 1, 1]);
    expect(own.total).toBe(total);
    // System messages and tests are sent at any hour. Expired messages do not wait.
    const classed = (vivo: JsonObject) => nightly({ data: { alert: 'a', vivo } });
    expect(kinds(await sendAll(sender, makeRecipients(3), classed({ classification: 1 })))).toEqual(
      {
        sent: 3,
      },
    );
    own.memory.testDevices.add(vivoId(0));
    expect(kinds(await sendAll(sender, makeRecipients(1), classed({ pushMode: 1 })))).toEqual({
      sent: 1,
    });
    const ended = await sendAll(sender, makeRecipients(1), nightly({ expiresAtMs: night }));
    expect(ended.attempts[0]).toMatchObject({ outcome: 'expired' });
    clock.moveMs(4 * hour);
    expect(kinds(await sendAll(sender, makeRecipients(3), nightly()))).toEqual({ sent: 3 });
    await sender.close();
    await own.close();
  });

  test('if vivo reports a night during the day, a retry follows soon', async () => {
    const clock = movableClock(night + 8 * 3_600_000);
    const own = await startVivoGateway({ clock });
    own.misbehave({ kind: 'answer', status: 200, body: { result: 10071 }, count: 1 });
    const sender = open({ by: own, context: aContext(clock) });
    const { attempts } = await sendAll(sender, makeRecipients(1), nightly());
    expect(attempts[0]).toMatchObject({ kind: 'retry', afterMs: 900_000 });
    expect(kinds(await sendAll(sender, makeRecipients(1), nightly()))).toEqual({ sent: 1 });
    await sender.close();
    await own.close();
  });
});

describe('an access token', () => {
  test.each<[string, object, string]>([
    ['a wrong secret', { appSecret: 'another' }, 'sign_invalid'],
    ['a wrong key', { appKey: 'another' }, 'app_key_invalid'],
    ['a wrong app', { appId: '1' }, 'app_id_invalid'],
  ])(
    'is not issued for %s: the result is a hint, and no message is sent',
    async (_, more, reason) => {
      const { attempts } = await push({ more });
      expect(attempts[0]).toMatchObject({
        kind: 'profile_error',
        reason,
        hint: expect.stringMatching(/^vivo[A-Z]/),
      });
      expect(JSON.stringify(attempts)).not.toContain('another');
      expect(gateway.total).toBe(0);
    },
  );

  test('is not issued if the clock is wrong by more than ten minutes', async () => {
    const { attempts } = await push({
      context: aContext(movableClock(systemClock.now() - 700_000)),
    });
    expect(attempts[0]).toMatchObject({ kind: 'profile_error', hint: 'vivoTime' });
  });

  test.each<[string, unknown, string]>([
    ['speed', { result: 10072 }, 'retry'],
    ['bad arguments', { result: 10304 }, 'profile_error'],
    ['no token', { result: 0 }, 'retry'],
    ['an HTML page', '<html>', 'retry'],
  ])('that is not issued because of %s invalidates no device', async (_, body, kind) => {
    gateway.misbehave({ kind: 'answer', status: 200, body, path: '/message/auth' });
    expect(kinds(await push())).toEqual({ [kind]: 3 });
  });

  test('of another app stops the push with a hint', async () => {
    answer({ result: 10094, desc: 'why' });
    expect((await push()).attempts[0]).toMatchObject({
      kind: 'profile_error',
      hint: 'vivoTokenApp',
    });
  });

  test('is shared by concurrent sends, and is renewed once if it is refused', async () => {
    // vivo allows ten calls per second, and this call is the first.
    const by = await startVivoGateway();
    const context = aContext();
    await Promise.all(Array.from({ length: 12 }, () => push({ by, context })));
    expect(by.tokenCalls).toBe(1);
    by.memory.tokenIssuer.expireAll();
    expect(kinds(await push({ by, context }))).toEqual({ sent: 3 });
    expect(kinds(await push({ by, context, to: makeRecipients(1) }))).toEqual({ sent: 1 });
    expect(by.tokenCalls).toBe(2);
    await by.close();
  });

  test('is renewed every two hours although it is valid for a day', async () => {
    const clock = movableClock(systemClock.now());
    const own = await startVivoGateway({ clock });
    const sender = open({ by: own, context: aContext(clock) });
    const message = () => aMessage({ alert: 'a' }, { expiresAtMs: clock.now() + 3_600_000 });
    for (const minutes of [0, 60, 50, 20]) {
      clock.moveMs(minutes * 60_000);
      expect(kinds(await sendAll(sender, makeRecipients(2), message()))).toEqual({ sent: 2 });
    }
    expect(own.tokenCalls).toBe(2);
    await sender.close();
    await own.close();
  });
});

describe('receipts of vivo', () => {
  const read = (body: unknown) =>
    vivo.receipts?.(
      { headers: {}, body: typeof body === 'string' ? body : JSON.stringify(body) },
      [],
    );

  test('arrive at the URL of the message, with device and event', async () => {
    let messageId = '';
    const receipts = await receiptsDuring(read, async (callbackUrl) => {
      const [first] = (await push({ context: aContext(undefined, { callbackUrl }) })).attempts;
      messageId = messageIdOf(first);
      expect(await gateway.sendReceipt([vivoId(0), vivoId(1)], '0')).toEqual([200]);
      expect(await gateway.sendReceipt([vivoId(2)], '2183')).toEqual([200]);
      expect(await gateway.sendReceipt([vivoId(9)], '0')).toEqual([]);
    });
    const shared = { objectId: 'PushRecord000001', messageId, atMs: expect.any(Number) };
    expect(receipts).toEqual([
      { ...shared, deviceToken: vivoId(0), event: 'delivered', code: '0' },
      { ...shared, deviceToken: vivoId(1), event: 'delivered', code: '0' },
      { ...shared, deviceToken: vivoId(2), event: 'dead_token', code: '2183' },
    ]);
  });

  test.each([
    ['0', 'delivered'],
    ['2183', 'dead_token'],
    ['20001', 'dead_token'],
    ['20002', 'dead_token'],
    ['20006', 'suspended'],
    ['2161', 'undelivered'],
    ['2162', 'undelivered'],
    ['11001', 'undelivered'],
    ['12000', 'undelivered'],
    ['10012', 'undelivered'],
    ['4711', 'undelivered'],
  ])('with the code %s have the event %s', (ackType, event) => {
    const receipt = { param: 'p', targets: 'a, b', ackType, ackTime: 1_585_203_103_625 };
    expect(read({ t1: receipt })).toMatchObject({
      ok: true,
      receipts: [
        {
          deviceToken: 'a',
          event,
          code: ackType,
          messageId: 't1',
          objectId: 'p',
          atMs: 1_585_203_103_625,
        },
        { deviceToken: 'b', event },
      ],
    });
  });

  test('in the older form report arrivals', () => {
    expect(read({ t: { param: 'p', targets: 'a' } })).toMatchObject({
      receipts: [{ deviceToken: 'a', event: 'delivered', atMs: null }],
    });
  });

  test('that are invalid are refused, or ignored among valid ones', () => {
    for (const body of ['', '5', '[]', '{', 'null'])
      expect(read(body)).toMatchObject({ ok: false, status: 400 });
    const invalid = {
      a: 5,
      b: { targets: ['x'] },
      c: { targets: 'x', ackType: {} },
      d: { targets: 'y', ackType: 0 },
    };
    expect(read(invalid)).toMatchObject({
      receipts: [{ deviceToken: 'y', objectId: null, event: 'delivered' }],
    });
  });
});
