/** Push services over TLS: what each accepts, what each refuses, and what that means. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { webPush } from '../../../connectors/webpush/index.ts';
import { ruleForAnswer } from '../../../connectors/webpush/responses.ts';
import { newKeyPair } from '../../../connectors/webpush/vapid.ts';
import type { SimulatedService } from '../../../ops/sandbox/webpush/browser.ts';
import { tokenOf } from '../../../ops/sandbox/webpush/browser.ts';
import { startWebPushGateway, type WebPushGateway } from '../../../ops/sandbox/webpush/server.ts';
import {
  type PushService,
  setPushHosts,
} from '../../../shared/domain/installations/push-services.ts';
import { keyIdOf } from '../../../shared/domain/installations/subscription.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { reasonText } from '../../../shared/domain/reasons.ts';
import { aContext, aMessage, kinds, recipients, sendAll } from '../../support/gateways/apns.ts';
import { browser, credentials } from './fixture.ts';

const services: SimulatedService[] = ['google', 'mozilla', 'apple', 'microsoft'];
let gateway: WebPushGateway;

beforeAll(async () => {
  gateway = await startWebPushGateway({});
});
afterAll(() => gateway.close());
afterEach(() => {
  gateway.behave();
  gateway.forget();
  gateway.deadTokens.clear();
  gateway.keys.clear();
  setPushHosts('');
});

const toBrowsers = (tokens: readonly string[], deviceType = 'web') =>
  recipients(tokens.length, { deviceType }).map((one, i) => ({
    ...one,
    deviceToken: tokens[i] ?? '',
  }));

async function push(tokens: readonly string[], data?: JsonObject, more: JsonObject = {}) {
  const profile = { ...credentials, endpoint: gateway.url, ca: gateway.ca, ...more };
  const context = aContext();
  const sender = webPush.open(webPush.credentials.parse(profile), context);
  try {
    return { ...(await sendAll(sender, toBrowsers(tokens), aMessage(data))), calls: context.calls };
  } finally {
    await sender.close();
  }
}

describe.each(services)('%s', (service) => {
  const token = (n: number) => tokenOf(browser(n, service));

  test('accepts a message with every header, and the browser decrypts it', async () => {
    const outcome = await push([token(1)], {
      alert: 'Grüße',
      'collapse-id': 'x',
      web: { urgency: 'very-low', ttl: 90 },
    });
    expect(kinds(outcome)).toEqual({ sent: 1 });
    expect(gateway.violations).toEqual([]);
    const [message] = gateway.messages;
    expect(message).toMatchObject({ urgency: 'very-low', ttl: 90 });
    expect(message?.topic).toMatch(/^[\w-]{32}$/);
    expect(JSON.parse(message?.text ?? '')).toMatchObject({ alert: 'Grüße' });
  });

  test('takes the largest message', async () => {
    expect(kinds(await push([token(1)], { web: { payload: 'x'.repeat(3993) } }))).toEqual({
      sent: 1,
    });
  });

  test('an ended subscription is an invalid token with proof, kept in its first minute', async () => {
    gateway.deadTokens.add(token(1));
    const { attempts } = await push([token(1), token(2)]);
    expect(attempts).toMatchObject([
      { kind: 'invalid_token', status: 410, isProof: true, keepForMs: 60_000 },
      { kind: 'sent' },
    ]);
  });

  test('a subscription of another key ends only this device', async () => {
    gateway.keys.set(browser(1, service).endpoint, newKeyPair().publicKey);
    const { attempts } = await push([token(1), token(2), token(3)]);
    expect(attempts).toMatchObject([
      { kind: 'invalid_token', reason: 'subscription_of_other_key', keepForMs: 60_000 },
      { kind: 'sent' },
      { kind: 'sent' },
    ]);
    expect(attempts[0]).not.toHaveProperty('isProof');
  });

  test('if all subscriptions are of another key, none is invalid', async () => {
    for (const n of [1, 2]) gateway.keys.set(browser(n, service).endpoint, newKeyPair().publicKey);
    const { attempts } = await push([token(1), token(2)]);
    expect(attempts.every(({ kind }) => kind !== 'invalid_token' && kind !== 'sent')).toBe(true);
  });

  test('a service that is down does not stop the others', async () => {
    const path = new URL(browser(1, service).endpoint).pathname.slice(0, 4);
    gateway.misbehave({ kind: 'answer', status: 500, path });
    const others = services.filter((one) => one !== service);
    const outcome = await push([token(1), ...others.map((one) => tokenOf(browser(9, one)))]);
    expect(outcome.attempts[0]).toMatchObject({ kind: 'retry', isOfService: true });
    expect(outcome.attempts.slice(1).map(({ kind }) => kind)).toEqual(['sent', 'sent', 'sent']);
  });
});

describe('keys', () => {
  test('each subscription is signed with its own key', async () => {
    const [old, current] = [newKeyPair(), newKeyPair()];
    const tokens = [old, current].map(
      ({ publicKey }, n) => `${tokenOf(browser(n, 'google'))}${keyIdOf(publicKey)}`,
    );
    const unknown = `${tokenOf(browser(3, 'google'))}${keyIdOf(newKeyPair().publicKey)}`;
    const { attempts } = await push([...tokens, unknown], undefined, {
      ...current,
      previousKeys: [{ ...old }],
    });
    expect(attempts.map(({ kind }) => kind)).toEqual(['sent', 'sent', 'rejected']);
    expect([0, 1].map((n) => gateway.keys.get(browser(n, 'google').endpoint))).toEqual([
      old.publicKey,
      current.publicKey,
    ]);
  });
});

describe('answers', () => {
  const otherKey = { reaction: 'dead_token', isOtherKey: true };
  const cases: [PushService, number, string, object][] = [
    ['google', 201, '', { reaction: 'sent' }],
    ['other', 200, '{"id":"x"}', { reaction: 'sent' }],
    ['google', 429, '', { reaction: 'throttle', defaultWaitMs: 60_000 }],
    ['microsoft', 406, '', { reaction: 'throttle', defaultWaitMs: 60_000 }],
    ['apple', 429, '{"reason":"TooManyRequests"}', { reaction: 'retry', defaultWaitMs: 60_000 }],
    ['other', 507, '{"code":50701}', { reaction: 'retry', afterMs: 600_000 }],
    ['mozilla', 503, '{"errno":201}', { reaction: 'throttle' }],
    ['google', 400, '<HTML>UnauthorizedRegistration</HTML>', { reaction: 'profile_error' }],
    ['apple', 403, '{"reason":"BadJwtToken"}', { reaction: 'profile_error' }],
    [
      'mozilla',
      401,
      '{"errno":109,"message":"Invalid VAPID audience"}',
      { reaction: 'profile_error' },
    ],
    ['mozilla', 413, '{"errno":104}', { reaction: 'fail', isOfDevice: true }],
    ['google', 307, '', { reaction: 'fail', reason: 'redirected' }],
    ['other', 418, '', { reaction: 'fail' }],
    ['other', 404, '', { reaction: 'dead_token', isProof: true }],
    // Traefik and ingress-nginx, while the service behind them is away.
    ['other', 404, '404 page not found\n', { reaction: 'retry' }],
    ['other', 404, 'default backend - 404', { reaction: 'retry' }],
    ['mozilla', 401, '{"errno":109,"message":"VAPID public key mismatch"}', otherKey],
    ['google', 403, 'the VAPID credentials … do not correspond to …', otherKey],
    ['apple', 400, '{"reason":"VapidPkHashMismatch"}', otherKey],
    ['microsoft', 401, '', { reaction: 'profile_error' }],
  ];
  test.each(cases)('%s %i %s', (service, status, body, expected) => {
    expect(ruleForAnswer(service, { status, body })).toMatchObject(expected);
  });

  const mismatch = 'The public key used to sign the token does not match the channel.';
  test.each<[PushService, number, string, object]>([
    ['microsoft', 401, mismatch, otherKey],
    ['microsoft', 403, mismatch, otherKey],
    ['microsoft', 401, 'The token has expired.', { reaction: 'profile_error' }],
    ['microsoft', 400, mismatch, { reaction: 'fail' }],
    ['google', 401, mismatch, { reaction: 'profile_error' }],
  ])('%s %i with the reason in a header: %s', (service, status, header, expected) => {
    expect(ruleForAnswer(service, { status, body: '', header })).toMatchObject(expected);
  });

  test('a refused sender is an error of the profile only if no service accepts it', async () => {
    const [google, apple] = [tokenOf(browser(1, 'google')), tokenOf(browser(1, 'apple'))];
    const refuse = () =>
      gateway.misbehave({
        kind: 'answer',
        status: 403,
        path: '/Q',
        body: { reason: 'BadJwtToken' },
      });
    refuse();
    const both = await push([google, apple]);
    expect(both.attempts.map(({ kind }) => kind)).toEqual(['sent', 'rejected']);
    const alone = await push([apple]);
    expect(alone.attempts).toMatchObject([{ kind: 'profile_error', hint: 'webpushSender' }]);
  });

  test('20 equal refusals end the messages to a service', async () => {
    gateway.misbehave({ kind: 'answer', status: 400, path: '/wp/' });
    const tokens = Array.from({ length: 400 }, (_, n) => tokenOf(browser(n, 'google')));
    const outcome = await push(tokens);
    expect(kinds(outcome)).toEqual({ rejected: 400 });
    expect(gateway.total).toBeLessThan(400);
  });
});

describe('endpoints that get no request', () => {
  test.each([
    ['no subscription', '', 'the installation has no Web Push subscription'],
    ['no keys', 'https://fcm.googleapis.com/wp/x', 'the installation has no Web Push subscription'],
    [
      'a host that is not listed',
      tokenOf({ ...browser(1), endpoint: 'https://push.example.com/x' }),
      'the push service is not listed: add it to WEBPUSH_HOSTS',
    ],
    [
      'a loopback address',
      tokenOf({ ...browser(1), endpoint: 'https://127.0.0.1/x' }),
      'the push service is not listed: add it to WEBPUSH_HOSTS',
    ],
  ])('%s', async (_name, token, expected) => {
    const { attempts } = await push([token]);
    const [attempt] = attempts;
    expect(attempt?.kind === 'rejected' && reasonText(attempt.reason)).toBe(expected);
    expect(gateway.total).toBe(0);
  });
});
