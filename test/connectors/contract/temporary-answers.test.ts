/**
 * Tests replies that say nothing about a message, a device or the credentials: temporary statuses,
 * and pages of proxies, portals and firewalls (protocol/gateways.md#temporary-answers). Covers
 * everything that calls another server.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { checkAccessToken } from '../../../api/services/accounts/third-party/access-tokens.ts';
import { PlatformClients } from '../../../api/services/accounts/third-party/platform-clients.ts';
import type { AttemptResult } from '../../../connectors/contract/connector.ts';
import { hasReachedGateway, isFailure } from '../../../connectors/contract/gateway-health.ts';
import { openSmsWebhook } from '../../../connectors/sms/webhook.ts';
import { systemClock } from '../../../shared/clock.ts';
import { reason } from '../../../shared/domain/reasons.ts';
import { isTemporaryStatus } from '../../../shared/http/result.ts';
import { aContext, aMessage, kinds, recipients, sendAll } from '../../support/gateways/apns.ts';
import { startSmsWebhook } from '../../support/servers/sms-webhook.ts';
import type { GatewayInstance, ProxyReply } from './fixture.ts';
import { fixtures } from './fixtures.ts';

const temporary = [408, 423, 425, 429, 500, 502, 503, 504, 520];
const other = [400, 401, 403, 404, 407, 410, 413, 418, 451];

/** Connectors that sign each request or connection themselves. */
const withoutAccessTokens = new Set<string>(['apns', 'webpush']);

/** Reply bodies of servers that are not gateways. */
const pages: Record<string, string> = {
  none: '',
  'a web page':
    '<!DOCTYPE html><html><head><title>403 Forbidden</title></head><body>nginx</body></html>',
  'the JSON of a proxy': '{"message":"no Route matched with those values"}',
  'the JSON of a framework':
    '{"timestamp":"2026-11-26T08:00:00Z","status":404,"error":"Not Found","path":"/"}',
  'half a JSON text': '{"error":',
};

test('only 408, 423, 425, 429 and 5xx are temporary', () => {
  const all = Array.from({ length: 500 }, (_, i) => 100 + i);
  const refusals = all.filter((status) => status < 500 && isTemporaryStatus(status));
  expect(refusals).toEqual([408, 423, 425, 429]);
  expect(all.filter((status) => status >= 500).every(isTemporaryStatus)).toBe(true);
});

describe.each(fixtures)('$connector.id', (fixture) => {
  const { connector, deviceType, deviceToken, isBareStatus = false, start } = fixture;
  const foreign = Object.entries(pages).filter(([name]) => !isBareStatus || name === 'a web page');
  let instance: GatewayInstance;
  beforeAll(async () => {
    instance = await start();
  });
  afterAll(() => instance.close());
  afterEach(() => {
    instance.behave();
    instance.forget();
  });

  const makeRecipients = (count: number) =>
    recipients(count, { deviceType }).map((one) => ({
      ...one,
      deviceToken: deviceToken(one.index),
    }));

  async function push(answer: ProxyReply | null, count = 4) {
    const sender = connector.open(connector.credentials.parse(instance.credentials), aContext());
    if (answer) instance.answerFor(answer);
    try {
      return await sendAll(sender, makeRecipients(count), aMessage());
    } finally {
      instance.behave();
      await sender.close();
    }
  }

  test.each(temporary)('%i is a retry, for any body', async (status) => {
    for (const body of Object.values(pages)) {
      const { attempts } = await push({ status, body });
      expect([body, ...new Set(attempts.map(({ kind }) => kind))]).toEqual([body, 'retry']);
    }
  });

  test.each(other)('%i of a proxy fails neither a device nor the credentials', async (status) => {
    for (const [, body] of foreign) {
      const { attempts } = await push({ status, body });
      expect([body, ...new Set(attempts.map(({ kind }) => kind))]).toEqual([body, 'retry']);
      // Counts like a missing reply, so the breaker evaluates it. A profile that sends to several
      // services counts each service for itself.
      const expected = connector.id === 'webpush' ? null : true;
      expect(attempts.every((attempt) => isFailure(attempt) === expected)).toBe(true);
    }
  });

  test.each([...temporary, ...other])('one %i ends only its own request', async (status) => {
    const isMulticast = connector.limits.recipientsPerRequest > 1;
    const outcome = await push({ status, body: '<html>', count: 1 }, 40);
    const { sent = 0, retry = 0, ...more } = kinds(outcome);
    expect(more).toEqual({});
    const endsSend = status === 429 || status === 503;
    if (!isMulticast && !endsSend)
      expect({ sent, retry }).toEqual(
        // A 401 may be caused by the access token, so there is one more attempt.
        status === 401 && !withoutAccessTokens.has(connector.id)
          ? { sent: 40, retry: 0 }
          : { sent: 39, retry: 1 },
      );
  });

  test.each([undefined, '0', '-1', '1.5', '', 'soon', 'Thu, 01 Jan 1970 00:00:00 GMT'])(
    'Retry-After: %j never makes a retry immediate',
    async (retryAfter) => {
      for (const status of [429, 503, 500, 408, 403])
        for (const attempt of (await push({ status, retryAfter })).attempts)
          expect(attempt.kind === 'retry' && attempt.afterMs).not.toBe(0);
    },
  );

  test('Retry-After is respected, unless our own minimum is longer', async () => {
    const isFcm = connector.id === 'fcm' || connector.id === 'vendor_g';
    for (const status of [429, 503]) {
      expect((await push({ status, retryAfter: '40' })).attempts[0]).toMatchObject({
        afterMs: 40_000,
      });
      expect((await push({ status, retryAfter: '1' })).attempts[0]).toMatchObject({
        afterMs: isFcm ? 10_000 : 1000,
      });
    }
  });

  test.each([...temporary, ...other])(
    '%i of a token call does not fail the profile',
    async (status) => {
      if (!instance.tokenCalls) return;
      for (const body of Object.values(pages)) {
        const { attempts } = await push({ status, body, isTokenCall: true }, 3);
        for (const attempt of attempts)
          expect(attempt).toMatchObject({ kind: 'retry', reason: 'token_call_refused', status });
        const retries = attempts.filter(
          (one): one is Extract<AttemptResult, { kind: 'retry' }> => one.kind === 'retry',
        );
        expect(retries.some(hasReachedGateway)).toBe(false);
      }
      expect(instance.total).toBe(0);
      expect(kinds(await push(null, 3))).toEqual({ sent: 3 });
    },
  );
});

describe('SMS over the webhook', () => {
  test.each(temporary)('%i is a retry', async (status) => {
    const server = await startSmsWebhook();
    const provider = openSmsWebhook({ url: server.url, keys: ['k'], clock: systemClock });
    server.answers.push({ status });
    const message = {
      id: '1',
      appId: 'a',
      type: 'general',
      to: '+8613800138000',
      text: 't',
      isVoice: false,
      templateName: '_default',
    };
    const result = await provider.send({ ...message, sign: 's', variables: {}, expiresAtMs: 2e12 });
    expect(result).toMatchObject({ kind: 'retry', reason: reason('smsStatus', { status }) });
    await provider.close();
    await server.close();
  });
});

describe('platforms of logins', () => {
  const answer = { status: 200, body: '' };
  const server = createServer(
    (_, response) => void response.writeHead(answer.status).end(answer.body),
  );
  const clients = new PlatformClients(systemClock);
  beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)));
  afterAll(async () => {
    await clients.close();
    server.close();
  });
  const check = (platform: 'weixin' | 'qq' | 'weibo') => {
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const id = { openid: 'u', uid: 'u' };
    const entry = { ...id, access_token: 't' };
    return checkAccessToken(clients, { platform, entry, settings: { endpoint, appId: 'a' } });
  };

  test.each(['weixin', 'qq', 'weibo'] as const)(
    '%s: no such reply refuses a token',
    async (platform) => {
      for (const status of [...temporary, ...other, 200])
        for (const [name, body] of Object.entries(pages)) {
          // A JSON object with status 200 comes from the platform.
          if (status === 200 && name.startsWith('the JSON')) continue;
          Object.assign(answer, { status, body });
          await expect(check(platform), `${status} ${name}`).rejects.toMatchObject({ status: 503 });
        }
    },
  );

  test.each([
    ['weixin', 200, '{"errcode":40003,"errmsg":"invalid openid"}'],
    ['qq', 200, '{"error":100016,"error_description":"access token check failed"}'],
    ['qq', 200, 'callback( {"error":100016,"error_description":"access token check failed"} );'],
    ['weibo', 400, '{"error":"invalid_access_token","error_code":21332}'],
  ] as const)('%s: its own refusal counts as a refusal: %i %s', async (platform, status, body) => {
    Object.assign(answer, { status, body });
    expect(await check(platform)).toBeUndefined();
  });
});
