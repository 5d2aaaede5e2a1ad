/**
 * Tests that a message which a gateway refuses alike for every device is not sent to all devices
 * (protocol/gateways.md#equal-refusals).
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { EqualRefusals, maxEqualRefusals } from '../../../connectors/contract/attempt-result.ts';
import type { AttemptResult, Recipient, Sender } from '../../../connectors/contract/connector.ts';
import { fcmConnector } from '../../../connectors/fcm/index.ts';
import {
  createServiceAccount,
  errorBody,
  type FcmGateway,
  startFcmGateway,
} from '../../../ops/sandbox/fcm/server.ts';
import { reasonText } from '../../../shared/domain/reasons.ts';
import { defaultHttpTiming } from '../../../shared/http/client.ts';
import {
  type ApnsFixture,
  aContext,
  aMessage,
  deviceToken,
  kinds,
  recipients,
  sendAll,
  startApnsFixture,
  topic,
} from '../../support/gateways/apns.ts';
import { fcmToken } from '../fcm/fixture.ts';
import { type ExampleGateway, exampleVendor, startExampleGateway } from './example-vendor.ts';

const reasonsOf = (attempts: AttemptResult[]) =>
  new Set(
    attempts.map((attempt) => ('reason' in attempt ? reasonText(attempt.reason) : attempt.kind)),
  );

describe('APNs', () => {
  let bench: ApnsFixture;
  beforeAll(async () => {
    bench = await startApnsFixture({ topics: [topic, 'com.example.other'] });
    // Connections that have been used accept a thousand requests at a time.
    await sendAll(bench.sender, recipients(3000, { topic }));
    bench.gateway.forget();
  });
  afterAll(() => bench.close());
  afterEach(() => {
    bench.gateway.behave();
    bench.gateway.forget();
    bench.gateway.tokenTopics.clear();
  });
  const push = (to: Recipient[]) => sendAll(bench.sender, to);

  test.each([
    [400, 'DeviceTokenNotForTopic'],
    [404, 'BadPath'],
    [400, 'MissingDeviceToken'],
    [400, 'SomethingNew'],
    [418, 'SomethingNew'],
  ])('%i %s for the first devices ends the rest with this reason', async (status, reason) => {
    bench.gateway.misbehave({ kind: 'answer', status, reason });
    const { attempts } = await push(recipients(1000, { topic }));
    expect(kinds({ attempts, reports: [] })).toEqual({ rejected: 1000 });
    expect(reasonsOf(attempts).size).toBe(1);
    expect(bench.gateway.total).toBeLessThanOrEqual(150);
  });

  test('does not end the rest after a success, or the devices of another topic', async () => {
    for (let n = 100; n < 400; n += 1)
      bench.gateway.tokenTopics.set(deviceToken(n), 'com.somebody.else');
    const some = await push(recipients(400, { topic }));
    expect(kinds(some)).toEqual({ sent: 100, rejected: 300 });
    expect(bench.gateway.total).toBe(400);
    bench.gateway.forget();
    const foreign = recipients(500, { topic }).map((one) => ({
      ...one,
      deviceToken: deviceToken(100 + (one.index % 300)),
    }));
    const own = recipients(200, { topic: 'com.example.other' }).map((one) => ({
      ...one,
      index: 500 + one.index,
      deviceToken: deviceToken(5000 + one.index),
    }));
    const both = await push([...foreign, ...own]);
    expect(kinds(both)).toEqual({ sent: 200, rejected: 500 });
    expect(bench.gateway.total).toBeLessThanOrEqual(400);
  });

  test('tries every device while the refusals are about tokens, differ, or are few', async () => {
    for (let n = 0; n < 500; n += 1) bench.gateway.deadTokens.set(deviceToken(n), 1);
    expect(kinds(await push(recipients(500, { topic })))).toEqual({ invalid_token: 500 });
    expect(bench.gateway.total).toBe(500);
    bench.gateway.deadTokens.clear();
    bench.gateway.forget();
    bench.gateway.misbehave({
      kind: 'answer',
      status: 400,
      reason: 'BadMessageId',
      count: maxEqualRefusals - 1,
    });
    bench.gateway.misbehave({
      kind: 'answer',
      status: 404,
      reason: 'BadPath',
      count: maxEqualRefusals - 1,
    });
    expect(kinds(await push(recipients(300, { topic })))).toEqual({ rejected: 38, sent: 262 });
  });
});

describe('FCM', () => {
  const account = createServiceAccount();
  let gateway: FcmGateway;
  let sender: Sender;
  beforeAll(async () => {
    gateway = await startFcmGateway({ account });
    const { ca, url } = gateway;
    const connector = fcmConnector('fcm');
    const profile = { serviceAccount: account, endpoint: url, authEndpoint: url, ca };
    sender = connector.open(connector.credentials.parse(profile), aContext());
  });
  afterAll(async () => {
    await sender.close();
    await gateway.close();
  });
  afterEach(() => {
    gateway.behave();
    gateway.forget();
  });
  const to = (count: number) =>
    recipients(count, { deviceType: 'android' }).map((one) => ({
      ...one,
      deviceToken: fcmToken(one.index),
    }));
  const badRequest = { '@type': 'type.googleapis.com/google.rpc.BadRequest' };
  const refuse = (
    message: string,
    details: Record<string, unknown>[] = [],
    status = 'INVALID_ARGUMENT',
  ) =>
    gateway.misbehave({
      kind: 'answer',
      status: 400,
      body: errorBody({ code: 400, status, errorCode: status, message, details }),
    });

  test.each([
    ['Android message is too big', [badRequest], 'INVALID_ARGUMENT', 'message_too_large'],
    ['Android message is too big', [], 'INVALID_ARGUMENT', 'message_too_large'],
    ['Request contains an invalid argument.', [badRequest], 'INVALID_ARGUMENT', 'invalid_message'],
    ['Request contains an invalid argument.', [], 'INVALID_ARGUMENT', 'invalid_argument'],
    ['Precondition check failed.', [], 'FAILED_PRECONDITION', 'http_400'],
  ])('%j for the first devices ends the rest', async (message, details, status, reason) => {
    refuse(message, details, status);
    const { attempts } = await sendAll(sender, to(1000), aMessage());
    expect(kinds({ attempts, reports: [] })).toEqual({ rejected: 1000 });
    expect(reasonsOf(attempts)).toEqual(new Set([reason]));
    expect(gateway.total).toBeLessThanOrEqual(250);
  });

  test('does not end a push with different texts because one text is refused', async () => {
    const all = to(60);
    const long = all[30]?.deviceToken ?? '';
    gateway.misbehave({
      kind: 'answer',
      status: 400,
      token: long,
      body: errorBody({
        code: 400,
        status: 'INVALID_ARGUMENT',
        message: 'Android message is too big',
        details: [badRequest],
      }),
    });
    const results: string[] = [];
    await sender.sendTexts?.(
      {
        pushId: 1,
        message: aMessage(),
        report: (index, { kind }) => {
          results[index] = kind;
        },
        signal: new AbortController().signal,
      },
      {
        dataOf: (values) => ({ alert: values.get('name') ?? '' }),
        names: ['name'],
        groups: all.map((recipient) => ({
          recipients: [recipient],
          values: new Map([['name', `n${recipient.index}`]]),
        })),
      },
    );
    expect(results.filter((kind) => kind === 'sent')).toHaveLength(59);
    expect(results[30]).toBe('rejected');
  });
});

describe('a gateway with many targets in a request', () => {
  let gateway: ExampleGateway;
  let sender: Sender;
  beforeAll(async () => {
    gateway = await startExampleGateway();
    const profile = { appId: 'app', secret: 'right', endpoint: gateway.url, ca: gateway.ca };
    sender = exampleVendor(defaultHttpTiming).open(profile, aContext());
  });
  afterAll(async () => {
    await sender.close();
    await gateway.close();
  });
  afterEach(() => {
    gateway.behave();
    gateway.forget();
    gateway.targetCodes.clear();
    gateway.deadTokens.clear();
  });

  test('gets no more requests after equal refusals of whole requests', async () => {
    gateway.misbehave({ kind: 'answer', status: 400, body: { code: 4711 } });
    const { attempts } = await sendAll(sender, recipients(500));
    expect(reasonsOf(attempts)).toEqual(new Set(['unknown code 4711']));
    // Four requests are sent at a time.
    expect(gateway.total).toBeLessThanOrEqual(maxEqualRefusals + 4);
  });

  test('gets no more requests after equal refusals of single targets', async () => {
    for (const { deviceToken: token } of recipients(500)) gateway.targetCodes.set(token, 4711);
    const { attempts } = await sendAll(sender, recipients(500));
    expect(reasonsOf(attempts)).toEqual(new Set(['unknown code 4711']));
    expect(gateway.total).toBeLessThanOrEqual(6);
  });

  test('gets a request per device after a success and for refusals about tokens', async () => {
    for (const { deviceToken: token } of recipients(500).slice(1))
      gateway.targetCodes.set(token, 4711);
    expect(kinds(await sendAll(sender, recipients(500)))).toEqual({ sent: 1, rejected: 499 });
    expect(gateway.total).toBe(50);
    gateway.targetCodes.clear();
    gateway.forget();
    for (const { deviceToken: token } of recipients(500)) gateway.deadTokens.add(token);
    expect(kinds(await sendAll(sender, recipients(500)))).toEqual({ invalid_token: 500 });
    expect(gateway.total).toBe(50);
  });

  test('shares refusals within a batch, and successes within a push', async () => {
    const successes = new Set<string>();
    const send = async (batch: EqualRefusals, from: number) => {
      const attempts: AttemptResult[] = [];
      const to = recipients(10).map((one) => ({
        ...one,
        deviceToken: deviceToken(from + one.index),
      }));
      const report = (_: number, attempt: AttemptResult) => void attempts.push(attempt);
      const { signal } = new AbortController();
      await sender.send({
        pushId: 1,
        message: aMessage(),
        recipients: to,
        report,
        signal,
        refusals: batch,
      });
      return kinds({ attempts, reports: [] });
    };
    for (let n = 0; n < 1000; n += 1)
      if (n < 200 || n > 300) gateway.targetCodes.set(deviceToken(n), 4711);
    const first = new EqualRefusals(successes);
    for (let from = 0; from < 100; from += 10)
      expect(await send(first, from)).toEqual({ rejected: 10 });
    expect(gateway.total).toBe(2);
    const second = new EqualRefusals(successes);
    expect(await send(second, 200)).toEqual({ sent: 10 });
    const third = new EqualRefusals(successes);
    for (let from = 400; from < 500; from += 10)
      expect(await send(third, from)).toEqual({ rejected: 10 });
    expect(gateway.total).toBe(2 + 1 + 10);
  });
});
