import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { apnsCredentials } from '../../../connectors/apns/credentials.ts';
import { apnsConnector } from '../../../connectors/apns/index.ts';
import { type ApnsGateway, startApnsGateway } from '../../../ops/sandbox/apns/server.ts';
import {
  type ApnsFixture,
  aContext,
  aMessage,
  calmTuning,
  deviceToken,
  kinds,
  recipients,
  sendAll,
  shortTimeoutTuning,
  startApnsFixture,
  topic,
} from '../../support/gateways/apns.ts';

describe('over HTTP/2', () => {
  let bench: ApnsFixture;
  let gateway: ApnsGateway;

  beforeAll(async () => {
    bench = await startApnsFixture({ topics: [topic, 'com.example.two'] });
    gateway = bench.gateway;
  });
  afterAll(() => bench.close());
  beforeEach(() => {
    gateway.behave();
    gateway.forget();
  });

  const toFirstTopic = { topic };

  describe('a push by provider token', () => {
    test('reaches 2,000 recipients once each, within the stream limit', async () => {
      const to = recipients(2000, toFirstTopic);
      const outcome = await sendAll(bench.sender, to);
      expect(kinds(outcome)).toEqual({ sent: 2000 });
      expect(outcome.reports.every((count) => count === 1)).toBe(true);
      expect(to.every(({ deviceToken }) => gateway.seen(deviceToken) === 1)).toBe(true);
      expect(gateway.distinct).toBe(2000);
      expect(gateway.peakStreams.untrusted).toBe(1);
      expect(gateway.protocolErrors).toEqual([]);
      expect(
        bench.calls.filter(({ status, reason }) => status === 200 && reason === 'ok'),
      ).toHaveLength(2000);
    });

    test('has the headers that APNs requires, and the same apns-id at every attempt', async () => {
      const message = aMessage({ alert: 'a', 'collapse-id': 'c1', 'pgw-priority': 5 });
      await sendAll(bench.sender, recipients(1, toFirstTopic), message);
      await sendAll(bench.sender, recipients(1, toFirstTopic), message);
      await sendAll(bench.sender, recipients(1, { ...toFirstTopic, id: 7 }), message);
      const [first, second, third] = gateway.requests.map(({ headers }) => headers);
      expect(first).toMatchObject({
        'apns-topic': topic,
        'apns-push-type': 'alert',
        'apns-priority': '5',
        'apns-collapse-id': 'c1',
        'apns-expiration': String(Math.ceil(message.expiresAtMs / 1000)),
      });
      expect(second?.['apns-id']).toBe(first?.['apns-id']);
      expect(third?.['apns-id']).not.toBe(first?.['apns-id']);
    });

    test('contains the badge of each recipient', async () => {
      const to = recipients(50, toFirstTopic).map((one) => ({ ...one, badge: one.index * 100 }));
      await sendAll(bench.sender, to, aMessage({ alert: 'a', badge: 'Increment', k: 'v' }));
      const bodies = new Map(
        gateway.requests.map(({ token, body }) => [token, JSON.parse(body.toString())]),
      );
      for (const { deviceToken, badge } of to)
        expect(bodies.get(deviceToken)).toEqual({ aps: { badge, alert: 'a' }, k: 'v' });
    });

    test('reuses the connection', async () => {
      await sendAll(bench.sender, recipients(1, toFirstTopic));
      const { connections } = gateway;
      await sendAll(bench.sender, recipients(100, toFirstTopic));
      expect(gateway.connections).toBe(connections);
    });
  });

  describe('topics', () => {
    test("come from the installation, then the push, with the type's suffix", async () => {
      await sendAll(bench.sender, recipients(1, { topic: 'com.example.two' }));
      await sendAll(bench.sender, recipients(1), aMessage({ alert: 'a' }, { topic }));
      const voip = aMessage({ aps: {}, 'pgw-push-type': 'voip' });
      await sendAll(bench.sender, recipients(1, { topic }), voip);
      await sendAll(bench.sender, recipients(1, { topic: `${topic}.voip` }), voip);
      expect(gateway.requests.map(({ headers }) => headers['apns-topic'])).toEqual([
        'com.example.two',
        topic,
        `${topic}.voip`,
        `${topic}.voip`,
      ]);
    });

    test('that the profile does not list fail only for their recipients', async () => {
      const to = recipients(3).map((one) => ({
        ...one,
        topic: one.index === 1 ? 'com.other.app' : topic,
      }));
      const { attempts } = await sendAll(bench.sender, to);
      expect(attempts.map(({ kind }) => kind)).toEqual(['sent', 'rejected', 'sent']);
      expect(attempts[1]).toMatchObject({
        outcome: 'failed',
        reason: expect.stringMatching(/com\.other\.app/),
      });
    });

    test('that are missing fail if the profile lists several', async () => {
      const outcome = await sendAll(bench.sender, recipients(1));
      expect(outcome.attempts[0]).toMatchObject({ kind: 'rejected', outcome: 'failed' });
      expect(gateway.total).toBe(0);
    });

    test('that APNs does not allow stop only their own recipients', async () => {
      gateway.misbehave({
        kind: 'answer',
        status: 400,
        reason: 'TopicDisallowed',
        token: deviceToken(0),
      });
      const to = recipients(20).map((one) => ({
        ...one,
        topic: one.index % 2 ? 'com.example.two' : topic,
      }));
      const { attempts } = await sendAll(bench.sender, to);
      expect(attempts[0]).toEqual({
        kind: 'rejected',
        outcome: 'failed',
        status: 400,
        reason: 'TopicDisallowed',
      });
      expect(
        attempts.filter((_, index) => index % 2 === 1).every(({ kind }) => kind === 'sent'),
      ).toBe(true);
    });
  });

  describe('a push is not sent', () => {
    test('to a malformed device token, which is not invalidated', async () => {
      const { attempts } = await sendAll(
        bench.sender,
        recipients(1, { topic, deviceToken: '../../4/broadcasts' }),
      );
      expect(attempts[0]).toMatchObject({ kind: 'rejected', outcome: 'failed', status: 0 });
      expect(gateway.total).toBe(0);
    });

    test('if it has expired', async () => {
      const { attempts } = await sendAll(
        bench.sender,
        recipients(2, { topic }),
        aMessage({ alert: 'a' }, { expiresAtMs: 1 }),
      );
      expect(attempts.map((one) => one.kind === 'rejected' && one.outcome)).toEqual([
        'expired',
        'expired',
      ]);
    });

    test('if it cannot be rendered', async () => {
      const { attempts } = await sendAll(
        bench.sender,
        recipients(1, { topic }),
        aMessage({ alert: 5 }),
      );
      expect(attempts[0]).toMatchObject({ kind: 'rejected', outcome: 'failed' });
    });

    test('after it was aborted; unsent recipients may be sent to later', async () => {
      const { attempts } = await sendAll(
        bench.sender,
        recipients(5, { topic }),
        aMessage(),
        AbortSignal.abort(),
      );
      expect(attempts).toHaveLength(5);
      expect(attempts[0]).toEqual({ kind: 'retry', status: 0, reason: 'aborted', afterMs: 0 });
      expect(gateway.total).toBe(0);
    });
  });

  describe('a push by certificate', () => {
    async function certificateSender(more: { validForMs?: number; environment?: string } = {}) {
      const { validForMs, ...members } = more;
      const client = await gateway.authority.issueClient({
        commonName: topic,
        userId: topic,
        validForMs,
      });
      const context = aContext();
      const sender = apnsConnector(calmTuning).open(
        apnsCredentials.parse({
          auth: 'certificate',
          ...client,
          topic,
          endpoint: gateway.url,
          ca: gateway.ca,
          ...members,
        }),
        context,
      );
      return { sender, context };
    }

    test('needs no token and starts with many streams', async () => {
      const { sender } = await certificateSender();
      const outcome = await sendAll(sender, recipients(500));
      await sender.close();
      expect(kinds(outcome)).toEqual({ sent: 500 });
      expect(gateway.requests.every(({ headers }) => headers.authorization === undefined)).toBe(
        true,
      );
      expect(gateway.requests[0]?.headers['apns-topic']).toBe(topic);
    });

    test('is a profile error if the certificate has expired', async () => {
      const { sender } = await certificateSender({ validForMs: -1000 });
      const { attempts } = await sendAll(sender, recipients(2));
      await sender.close();
      expect(attempts[1]).toMatchObject({ kind: 'profile_error', reason: 'certificate_expired' });
    });

    test('is a profile error if the gateway does not trust it', async () => {
      const other = await startApnsGateway();
      const context = aContext();
      const client = await gateway.authority.issueClient({ commonName: topic, userId: topic });
      const sender = apnsConnector(calmTuning).open(
        apnsCredentials.parse({
          auth: 'certificate',
          ...client,
          topic,
          endpoint: other.url,
          ca: other.ca,
        }),
        context,
      );
      const { attempts } = await sendAll(sender, recipients(50));
      await sender.close();
      expect(attempts.every(({ kind }) => kind === 'profile_error')).toBe(true);
      await other.close();
    });

    test('does not try push types that need a token', async () => {
      const { sender } = await certificateSender();
      const message = aMessage({ aps: {}, 'pgw-push-type': 'location' });
      const { attempts } = await sendAll(sender, recipients(1), message);
      await sender.close();
      expect(attempts[0]).toMatchObject({
        kind: 'rejected',
        reason: expect.stringMatching(/needs token/),
      });
    });
  });

  test('a closed sender returns every recipient', async () => {
    const sender = bench.open();
    await sendAll(sender, recipients(1, { topic }));
    await sender.close();
    const { attempts } = await sendAll(sender, recipients(3, { topic }));
    expect(attempts.map(({ kind }) => kind)).toEqual(['retry', 'retry', 'retry']);
  });

  describe('a gateway that stops answering', () => {
    test('makes recipients unknown, and reports whether a repeat would be hidden', async () => {
      const silent = await startApnsFixture({ tuning: shortTimeoutTuning });
      silent.gateway.misbehave({ kind: 'hang', count: 2 });
      const plain = await sendAll(
        silent.sender,
        recipients(1),
        aMessage({ 'content-available': 1 }),
      );
      const hidden = await sendAll(silent.sender, recipients(1));
      const later = await sendAll(silent.sender, recipients(3));
      await silent.close();
      expect(plain.attempts[0]).toEqual({
        kind: 'unknown',
        reason: 'timeout',
        isRepeatHidden: false,
      });
      expect(hidden.attempts[0]).toEqual({
        kind: 'unknown',
        reason: 'timeout',
        isRepeatHidden: true,
      });
      expect(kinds(later)).toEqual({ sent: 3 });
      expect(silent.calls.filter(({ status }) => status === 0).map(({ reason }) => reason)).toEqual(
        ['timeout', 'timeout'],
      );
    });

    test('for a short time causes no failure', async () => {
      gateway.misbehave({ kind: 'slow', delayMs: 50, count: 10 });
      expect(kinds(await sendAll(bench.sender, recipients(20, toFirstTopic)))).toEqual({
        sent: 20,
      });
    });
  });
});
