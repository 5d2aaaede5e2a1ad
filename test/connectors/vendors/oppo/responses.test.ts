import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { oppo, oppoConnector } from '../../../../connectors/vendors/oppo/index.ts';
import { responseRules } from '../../../../connectors/vendors/oppo/responses.ts';
import { type OppoGateway, startOppoGateway } from '../../../../ops/sandbox/vendors/oppo/server.ts';
import { systemClock } from '../../../../shared/clock.ts';
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
import { oppoId } from './fixture.ts';

let gateway: OppoGateway;

beforeAll(async () => {
  gateway = await startOppoGateway({ categories: ['ORDER', 'NEWS'] });
});
afterAll(() => gateway.close());
afterEach(() => {
  gateway.behave();
  gateway.forget();
  gateway.deadTokens.clear();
  gateway.memory.unsubscribed.clear();
  gateway.memory.ambiguousTokens.clear();
  gateway.memory.devicesPerSecond = Number.POSITIVE_INFINITY;
});

const { makeRecipients, open, push } = vendorFixture<OppoGateway>({
  connector: oppo,
  vendor: 'oppo',
  deviceToken: oppoId,
  gateway: () => gateway,
  profile: ({ memory }) => memory.app,
});

const answer = (body: object, status = 200) => gateway.misbehave({ kind: 'answer', status, body });
const callsTo = (path: string) => gateway.requests.filter((one) => one.path.endsWith(path));
const formOf = (at: number) => new URLSearchParams(gateway.requests.at(at)?.body.toString());

/**
 * Results by code: for one device, for three devices, and for one device within a success
 * (protocol/oppo.md#codes).
 */
const meanings: [number, string, string, string][] = [
  [0, 'sent', 'sent', 'sent'],
  ...[-1, -2, -3, 13, 55, 31].map((code): [number, string, string, string] => [
    code,
    'retry',
    'retry',
    'retry',
  ]),
  ...[11, 29, 14, 15, 16, 17, 18, 19, 26, 27, 28, 30, 54, 67, 69].map(
    (code): [number, string, string, string] => [
      code,
      'profile_error',
      'profile_error',
      'profile_error',
    ],
  ),
  ...[12, 20, 21, 22, 23, 24, 25, 40, 34, 51, 59].map((code): [number, string, string, string] => [
    code,
    'failed',
    'failed',
    'failed',
  ]),
  [33, 'capped', 'capped', 'capped'],
  [42, 'capped', 'capped', 'capped'],
  // Unknown whether this code is about the message or a device.
  [41, 'failed', 'failed', 'failed'],
  // With several devices, the request is halved down to single devices.
  [10000, 'invalid_token', 'invalid_token', 'invalid_token'],
  [10001, 'invalid_token', 'invalid_token', 'invalid_token'],
  [10004, 'sent', 'sent', 'sent'],
  [32, 'sent', 'sent', 'sent'],
  [10999, 'failed', 'failed', 'failed'],
];

describe('a reply of OPPO', () => {
  test('is tested for every code of the documentation, and for no other', () => {
    const tested = meanings.map(([code]) => String(code)).filter((code) => code !== '10999');
    expect(tested.sort()).toEqual(responseRules.map(({ code }) => code).sort());
  });

  test.each(meanings)(
    '%i means %s for one device, %s for three, %s within a success',
    async (code, ...expected) => {
      const item = {
        messageId: 'm',
        registrationId: oppoId(1),
        errorCode: code,
        errorMessage: 'why',
      };
      const resultOf = async (count: number, body: object, at: number) => {
        gateway.behave();
        answer(body);
        const { attempts, context } = await push({ to: makeRecipients(count) });
        const attempt = attempts[at];
        if (attempt?.kind === 'profile_error') expect(attempt.hint).toMatch(/^oppo[A-Z]/);
        return {
          attempt,
          attempts,
          context,
          outcome: attempt?.kind === 'rejected' ? attempt.outcome : attempt?.kind,
        };
      };
      const one = await resultOf(1, { code, message: 'why' }, 0);
      const three = await resultOf(3, { code, message: 'why' }, 2);
      const within = await resultOf(3, { code: 0, message: '', data: [item] }, 1);
      expect([one.outcome, three.outcome, within.outcome]).toEqual(expected);
      expect(within.attempts[0]?.kind).toBe('sent');
      expect(three.context.quota.reasons.has('default')).toBe(expected[1] === 'capped');
      // The cap of a device caps no other device.
      expect(within.context.quota.reasons.size).toBe(0);
    },
  );

  test('with an unknown code invalidates no token and shows the code', async () => {
    answer({ code: 10999, message: 'why' });
    expect((await push()).attempts[0]).toMatchObject({
      reason: reason('unknown_code', { vendorCode: '10999' }),
    });
    expect(gateway.total).toBe(1);
  });

  test('41 for one device after the other concerns the message: the rest is not sent', async () => {
    answer({ code: 41, message: 'sensitive words' });
    const outcome = await push({ to: makeRecipients(1000) });
    expect(kinds(outcome)).toEqual({ rejected: 1000 });
    expect(gateway.total).toBeLessThan(40);
  });

  test.each(statusMeanings)(
    'without a body of its own is judged by its status: %i is %s',
    async (status, kind) => {
      gateway.misbehave({ kind: 'answer', status, body: '<html>' });
      expect(kinds(await push())).toEqual({ [kind]: 3 });
    },
  );

  test('that is unreadable or missing is an unknown result; OPPO drops a repeat', async () => {
    gateway.misbehave({ kind: 'answer', status: 200, body: '<html>' });
    expect((await push()).attempts[0]).toEqual({
      kind: 'unknown',
      reason: 'unreadable_reply',
      isRepeatHidden: true,
    });
    gateway.behave();
    gateway.misbehave({ kind: 'hang' });
    const shortTimeout = oppoConnector({ ...defaultHttpTiming, requestMs: 300 });
    const context = aContext();
    const { attempts } = await push({ connector: shortTimeout, context });
    expect(attempts[0]).toEqual({ kind: 'unknown', reason: 'timeout', isRepeatHidden: true });
    gateway.behave();
    expect(kinds(await push({ context }))).toEqual({ sent: 3 });
    expect(makeRecipients(3).map(({ deviceToken }) => gateway.delivered(deviceToken))).toEqual([
      1, 1, 1,
    ]);
  });

  test('contains an id for each message', async () => {
    const { attempts } = await push();
    const ids = attempts.map((one) => (one.kind === 'sent' ? one.messageId : undefined));
    expect(new Set(ids).size).toBe(3);
    for (const id of ids) expect(id).toMatch(/^622ff7cf/);
    const [alone] = (
      await push({
        to: makeRecipients(5)
          .slice(4)
          .map((one) => ({ ...one, index: 0 })),
      })
    ).attempts;
    expect(alone).toMatchObject({ kind: 'sent', messageId: expect.stringMatching(/^622ff7cf/) });
  });
});

describe('the gateway itself', () => {
  test('names invalid devices among a thousand; an unnamed one is found by halving', async () => {
    const to = makeRecipients(1000);
    gateway.deadTokens.add(oppoId(3));
    gateway.memory.unsubscribed.add(oppoId(500));
    gateway.memory.ambiguousTokens.add(oppoId(700));
    const outcome = await push({ to });
    expect(kinds(outcome)).toEqual({ sent: 997, invalid_token: 2, rejected: 1 });
    expect(outcome.attempts[3]).toMatchObject({ reason: 'registration_id_invalid' });
    expect(outcome.attempts[500]).toMatchObject({ reason: 'unsubscribed' });
    expect(outcome.attempts[700]).toMatchObject({ outcome: 'failed', reason: 'argument_invalid' });
    expect(to.every(({ deviceToken }) => gateway.delivered(deviceToken) <= 1)).toBe(true);
    expect(gateway.violations).toEqual([]);
  });

  test('gets a single message for one device, and a batch for several', async () => {
    await push({ to: makeRecipients(1) });
    await push({ to: makeRecipients(2) });
    expect(gateway.requests.map(({ path }) => path.split('/').at(-1))).toEqual([
      'unicast',
      'unicast_batch',
    ]);
    const message = JSON.parse(formOf(0).get('message') ?? '');
    expect(message).toMatchObject({
      target_type: 2,
      target_value: oppoId(0),
      notification: {
        title: 'Hello',
        call_back_url: 'https://push.example.com/callbacks/vendor/app/secret',
        call_back_parameter: 'PushRecord000001',
      },
    });
    // The remaining time may be one second less in the second request.
    const alike = {
      ...message,
      notification: { ...message.notification, off_line_ttl: expect.any(Number) },
    };
    expect(JSON.parse(formOf(1).get('messages') ?? '')).toEqual([
      alike,
      { ...alike, target_value: oppoId(1) },
    ]);
    const own = { call_back_url: 'https://own.example/r' };
    await push({
      to: makeRecipients(1),
      message: aMessage({ alert: 'a', oppo: own }, { objectId: 'Other' }),
    });
    const { notification } = JSON.parse(formOf(2).get('message') ?? '');
    expect(notification).toMatchObject(own);
    expect(notification).not.toHaveProperty('call_back_parameter');
    const far = aContext(systemClock, {
      callbackUrl: `https://push.example.com/${'x'.repeat(200)}`,
    });
    expect(
      kinds(await push({ context: far, message: aMessage({ alert: 'a' }, { objectId: 'B' }) })),
    ).toEqual({
      sent: 3,
    });
    expect(gateway.violations).toEqual([]);
  });

  test('gets texts with special characters unchanged', async () => {
    const data = { alert: `a&b=c+d%20"'\\ ☃\u{1f600}`, title: '100% + <>', k: 'x;y&z' };
    expect(kinds(await push({ message: aMessage(data) }))).toEqual({ sent: 3 });
    const [{ notification }] = JSON.parse(formOf(0).get('messages') ?? '');
    expect(notification).toMatchObject({ title: data.title, content: data.alert });
    expect(JSON.parse(notification.action_parameters)).toEqual(data);
  });

  test('gets fewer messages per request if they are large', async () => {
    const message = aMessage({ alert: 'a', k: '"'.repeat(1900) });
    expect(kinds(await push({ to: makeRecipients(1000), message }))).toEqual({ sent: 1000 });
    expect(gateway.total).toBeGreaterThan(1);
    for (const { body } of gateway.requests) expect(body.length).toBeLessThanOrEqual(4_100_000);
    expect(gateway.violations).toEqual([]);
  });

  test('limits devices per second, and caps a category at its daily quota', async () => {
    gateway.memory.devicesPerSecond = 2;
    expect((await push()).attempts[0]).toMatchObject({
      kind: 'retry',
      reason: 'app_call_frequency',
    });
    const strict = await startOppoGateway({ devicesPerDay: 2 });
    const context = aContext();
    const on = (category: string, objectId: string) =>
      push({
        by: strict,
        context,
        to: makeRecipients(2),
        message: aMessage({ alert: 'a', oppo: { category } }, { objectId }),
      });
    expect(kinds(await on('NEWS', 'A'))).toEqual({ sent: 2 });
    expect((await on('NEWS', 'B')).attempts[0]).toMatchObject({
      outcome: 'capped',
      reason: 'day_quota_exceeded',
    });
    const { total } = strict;
    expect((await on('NEWS', 'C')).attempts[0]).toMatchObject({ outcome: 'capped', status: 0 });
    expect(strict.total).toBe(total);
    expect(kinds(await on('ORDER', 'D'))).toEqual({ sent: 2 });
    expect(strict.violations).toEqual([]);
    await strict.close();
  });

  test('names categories that are not granted', async () => {
    const { attempts } = await push({
      message: aMessage({ alert: 'a', oppo: { category: 'IM' } }),
    });
    expect(attempts[0]).toMatchObject({ kind: 'profile_error', reason: 'category_not_permitted' });
  });

  test('gets no invalid message', async () => {
    expect((await push({ message: aMessage({ silent: true }) })).attempts[0]).toMatchObject({
      outcome: 'dropped',
    });
    expect(
      (await push({ message: aMessage({ alert: 'x'.repeat(129) }) })).attempts[0],
    ).toMatchObject({
      outcome: 'failed',
      status: 0,
    });
    expect(gateway.total).toBe(0);
  });

  test('gets separate requests for devices abroad and in China', async () => {
    const abroad = makeRecipients(4, {}, (n) => `IN_${n.toString(16).padStart(32, '0')}`).slice(2);
    expect(kinds(await push({ to: [...makeRecipients(2), ...abroad] }))).toEqual({ sent: 4 });
    expect(gateway.requests.map(({ tokens }) => tokens.length)).toEqual([2, 2]);
  });
});

describe('an access token', () => {
  test.each<[string, object, string]>([
    ['a wrong secret', { masterSecret: 'another' }, 'signature_invalid'],
    ['a wrong key', { appKey: 'another' }, 'app_key_invalid'],
  ])(
    'is not issued for %s: the result is a hint, and no message is sent',
    async (_, more, reason) => {
      const { attempts } = await push({ more });
      expect(attempts[0]).toMatchObject({
        kind: 'profile_error',
        reason,
        hint: expect.stringMatching(/^oppo[A-Z]/),
      });
      expect(JSON.stringify(attempts)).not.toContain('another');
      expect(gateway.total).toBe(0);
    },
  );

  test('is not issued if the clock is wrong by more than ten minutes', async () => {
    const clock = movableClock(systemClock.now() - 700_000);
    const message = aMessage();
    const { attempts } = await push({ context: aContext(clock), message });
    expect(attempts[0]).toMatchObject({ kind: 'profile_error', hint: 'oppoTime' });
  });

  test.each<[string, unknown, string]>([
    ['a limit', { code: 13, message: '' }, 'retry'],
    ['an outage', { code: -1, message: '' }, 'retry'],
    ['bad arguments', { code: 41, message: '' }, 'profile_error'],
    ['no token', { code: 0, data: {} }, 'retry'],
    ['an HTML page', '<html>', 'retry'],
  ])('that is not issued because of %s invalidates no device', async (_, body, kind) => {
    gateway.misbehave({ kind: 'answer', status: 200, body, path: '/server/v1/auth' });
    expect(kinds(await push())).toEqual({ [kind]: 3 });
  });

  test('is parsed from JSON within a text', async () => {
    const { value } = gateway.memory.tokenIssuer.issue();
    const data = JSON.stringify({ auth_token: value, create_time: 1 });
    gateway.misbehave({
      kind: 'answer',
      status: 200,
      body: { code: 0, data },
      path: '/server/v1/auth',
    });
    expect(kinds(await push())).toEqual({ sent: 3 });
  });

  test('is renewed once if it is refused, and every device gets the message', async () => {
    const context = aContext();
    await push({ context });
    gateway.memory.tokenIssuer.expireAll();
    expect(
      kinds(await push({ context, message: aMessage({ alert: 'b' }, { objectId: 'B' }) })),
    ).toEqual({
      sent: 3,
    });
    expect(gateway.tokenCalls).toBe(2);
  });

  test('is used for 20 of its 24 hours', async () => {
    const clock = movableClock(systemClock.now());
    const own = await startOppoGateway({ clock });
    const context = aContext(clock);
    const at = (objectId: string) =>
      push({
        by: own,
        context,
        message: aMessage({ alert: 'a' }, { objectId, expiresAtMs: clock.now() + 3_600_000 }),
      });
    await at('A');
    clock.moveMs(19 * 3_600_000);
    expect(kinds(await at('B'))).toEqual({ sent: 3 });
    expect(own.tokenCalls).toBe(1);
    clock.moveMs(3_600_000);
    expect(kinds(await at('C'))).toEqual({ sent: 3 });
    expect(own.tokenCalls).toBe(2);
    expect(own.requests.every(({ status }) => status === 200)).toBe(true);
    await own.close();
  });
});

describe('a broadcast', () => {
  const even = (more: object = {}) =>
    aMessage({ alert: 'a', oppo: { fix_speed: true, fix_speed_rate: 1000, ...more } });

  test('saves its message once and names a thousand devices per request', async () => {
    const to = makeRecipients(2500);
    gateway.deadTokens.add(oppoId(7));
    gateway.memory.unsubscribed.add(oppoId(2400));
    const outcome = await push({ to, message: even() });
    expect(kinds(outcome)).toEqual({ sent: 2498, invalid_token: 2 });
    expect(outcome.attempts[7]?.kind).toBe('invalid_token');
    expect(callsTo('/save_message_content')).toHaveLength(1);
    expect(
      callsTo('/broadcast')
        .map(({ tokens }) => tokens.length)
        .sort(),
    ).toEqual([1000, 1000, 500]);
    expect(gateway.violations).toEqual([]);
  });

  test('gets no device token that it would read as two', async () => {
    const to = makeRecipients(3, {}, (n) => (n === 1 ? `${oppoId(7)};x` : oppoId(n)));
    const { attempts } = await push({ to, message: even() });
    expect(attempts.map(({ kind }) => kind)).toEqual(['sent', 'rejected', 'sent']);
    expect(callsTo('/broadcast').flatMap(({ tokens }) => tokens)).toEqual([oppoId(0), oppoId(2)]);
  });

  test('without a reply is an unknown result, and a repeat overwrites the message', async () => {
    gateway.misbehave({
      kind: 'answer',
      status: 200,
      body: '',
      path: '/server/v1/message/notification/broadcast',
    });
    expect((await push({ message: even() })).attempts[0]).toMatchObject({
      kind: 'unknown',
      isRepeatHidden: true,
    });
  });

  test('whose message is not saved counts as not sent', async () => {
    const path = '/server/v1/message/notification/save_message_content';
    gateway.misbehave({ kind: 'reset', path });
    expect(kinds(await push({ message: even() }))).toEqual({ retry: 3 });
    gateway.behave();
    for (const body of [{ code: 0, data: {} }, '<html>']) {
      gateway.misbehave({ kind: 'answer', status: 200, body, path });
      expect((await push({ message: even() })).attempts[0]).toMatchObject({ kind: 'retry' });
      gateway.behave();
    }
    gateway.misbehave({ kind: 'answer', status: 200, body: { code: 11 }, path, count: 1 });
    expect(kinds(await push({ message: even() }))).toEqual({ sent: 3 });
  });

  test('whose saved message has expired is saved again', async () => {
    const sender = open();
    await sendAll(sender, makeRecipients(2), even());
    gateway.memory.saved.clear();
    expect(kinds(await sendAll(sender, makeRecipients(2), even()))).toEqual({ retry: 2 });
    expect(kinds(await sendAll(sender, makeRecipients(2), even()))).toEqual({ sent: 2 });
    await sender.close();
    expect(callsTo('/save_message_content')).toHaveLength(2);
  });

  test.each([
    [3600, 3590, 1],
    [3600, 1800, 2],
    [60, 86_400, 2],
  ])('saved for %i s serves one for %i s with %i saves', async (firstS, secondS, saves) => {
    const clock = movableClock(Date.now());
    const own = await startOppoGateway({ clock });
    const sender = open({ by: own, context: aContext(clock) });
    for (const seconds of [firstS, secondS]) {
      const expiresAtMs = clock.now() + seconds * 1000;
      const oppo = { fix_speed: true, fix_speed_rate: 1000, app_message_id: 'm1' };
      const message = aMessage({ alert: 'a', oppo }, { expiresAtMs });
      expect(kinds(await sendAll(sender, makeRecipients(2), message))).toEqual({ sent: 2 });
    }
    const lives = own.requests
      .filter(({ path }) => path.endsWith('/save_message_content'))
      .map(({ body }) => Number(new URLSearchParams(body.toString()).get('off_line_ttl')));
    expect(lives).toEqual([firstS, secondS].slice(0, saves));
    await sender.close();
    await own.close();
  });

  test('that may not be saved today does not stop single messages', async () => {
    const strict = await startOppoGateway({ savesPerDay: 0 });
    const context = aContext();
    const { attempts } = await push({ by: strict, context, message: even() });
    expect(attempts[0]).toMatchObject({
      outcome: 'capped',
      reason: 'day_quota_of_saved_messages_exceeded',
    });
    expect(kinds(await push({ by: strict, context }))).toEqual({ sent: 3 });
    await strict.close();
  });
});

describe('receipts of OPPO', () => {
  const read = (body: unknown) =>
    oppo.receipts?.(
      { headers: {}, body: typeof body === 'string' ? body : JSON.stringify(body) },
      [],
    );

  test('arrive at the URL of the message, with device and event', async () => {
    let messageId = '';
    const receipts = await receiptsDuring(read, async (callbackUrl) => {
      const [, second] = (await push({ context: aContext(undefined, { callbackUrl }) })).attempts;
      messageId = messageIdOf(second);
      expect(await gateway.sendReceipt([oppoId(1)])).toEqual([200]);
    });
    expect(receipts).toEqual([
      {
        objectId: 'PushRecord000001',
        messageId,
        deviceToken: oppoId(1),
        event: 'delivered',
        code: 'push_arrive',
        atMs: expect.any(Number),
      },
    ]);
  });

  test('name several devices; unknown events are ignored', () => {
    const one = {
      messageId: 'm',
      taskId: 't',
      registrationIds: 'a, b',
      eventTime: '1540000000000',
      param: 'p',
    };
    expect(
      read([
        { ...one, eventType: 'push_arrive' },
        { ...one, eventType: 'push_other' },
      ]),
    ).toMatchObject({
      receipts: [
        { deviceToken: 'a', objectId: 'p', messageId: 'm', atMs: 1_540_000_000_000 },
        { deviceToken: 'b', event: 'delivered' },
      ],
    });
  });

  test('that are invalid are refused, or ignored among valid ones', () => {
    for (const body of ['', '5', '{}', '[', 'null'])
      expect(read(body)).toMatchObject({ ok: false, status: 400 });
    const right = { registrationIds: 'a', eventType: 'push_arrive', eventTime: 'x' };
    expect(
      read([5, null, [], { eventType: 'push_arrive', registrationIds: ['a'] }, right]),
    ).toMatchObject({
      receipts: [{ deviceToken: 'a', objectId: null, messageId: null, atMs: null }],
    });
  });
});
