/** UnifiedPush through a real ntfy server: what arrives at a phone, and how ntfy refuses. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { webPush } from '../../../connectors/webpush/index.ts';
import { hasPrograms } from '../../../ops/check/toolchains.ts';
import { decrypt, tokenOf } from '../../../ops/sandbox/webpush/browser.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { setPushHosts } from '../../../shared/domain/installations/push-services.ts';
import { browser, credentials } from '../../connectors/webpush/fixture.ts';
import { aContext, aMessage, kinds, recipients, sendAll } from '../../support/gateways/apns.ts';
import { beginPush } from '../../support/gateways/app-gateway.ts';
import { loopbackIdentity } from '../../support/gateways/identity.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { Ntfy } from './ntfy.ts';

const hasNtfy = hasPrograms(['ntfy'], 'UnifiedPush through ntfy');
/** Time limit of a message on a busy machine. */
const arrivesMs = 30_000;

/** Topics of UnifiedPush have 14 characters and begin with `up`. */
const topicOf = (n: number) => `up${String(n).padStart(12, '0')}`;

/** Opens the phone number `n`, with the keys of its app and its topic. */
const phone = (ntfy: Ntfy, n: number) => ({
  ...browser(n),
  topic: topicOf(n),
  endpoint: ntfy.endpointOf(topicOf(n)),
});
type Phone = ReturnType<typeof phone>;

const textIn = (body: Buffer | undefined, to: Phone): unknown => {
  const opened = decrypt(body ?? Buffer.alloc(0), to);
  return opened.ok ? JSON.parse(opened.text.toString('utf8')) : opened.error;
};

describe.skipIf(!hasNtfy)('a phone with the ntfy app', { timeout: 120_000 }, () => {
  let ntfy: Ntfy;
  let service: TestService;
  let app: App;

  beforeAll(async () => {
    ntfy = await Ntfy.start();
    service = await startTestService({ env: { WEBPUSH_HOSTS: ntfy.host } });
    await service.dispatch();
    app = await service.api.createApp();
    const { authority } = await loopbackIdentity();
    const path = `/console/api/apps/${app.appId}/profiles/webpush/_default`;
    const body = { subject: 'mailto:push@example.com', ca: authority.certificate };
    expect((await service.api.request('PUT', path, { admin: true, body })).status).toBe(200);
  }, 60_000);
  afterAll(async () => {
    await service?.close();
    await ntfy?.close();
  });

  const register = async ({ endpoint, publicKey, auth }: Phone) => {
    const keys = { p256dh: publicKey.toString('base64url'), auth: auth.toString('base64url') };
    const body = { deviceType: 'android', vendor: 'webpush', subscription: { endpoint, keys } };
    const reply = await service.api.request('POST', '/1.1/installations', { app, body });
    expect(reply.status).toBe(201);
    return reply.body.objectId;
  };
  const push = async (objectId: unknown, data: object) =>
    service.untilDone(app, await beginPush(service, app, { where: { objectId }, data }));

  test('gets the members of a message that only the app can read', async () => {
    const own = phone(ntfy, 1);
    const subscriber = await ntfy.subscribe(own.topic);
    const objectId = await register(own);
    expect(await push(objectId, { alert: 'Grüße ☃', title: 'T', orderId: '7' })).toMatchObject({
      devices: 1,
      webSuccesses: 1,
    });
    await expect.poll(() => subscriber.messages.length, { timeout: arrivesMs }).toBe(1);
    expect(subscriber.messages[0]?.toString('latin1')).not.toContain('orderId');
    expect(textIn(subscriber.messages[0], own)).toMatchObject({ alert: 'Grüße ☃', orderId: '7' });
    subscriber.end();
  });

  test('gets a silent message, and the largest message whole', async () => {
    const own = phone(ntfy, 2);
    const subscriber = await ntfy.subscribe(own.topic);
    const objectId = await register(own);
    await push(objectId, { silent: true, sync: 'inbox' });
    await push(objectId, { web: { payload: { text: 'x'.repeat(3993 - 11) } } });
    await expect.poll(() => subscriber.messages.length, { timeout: arrivesMs }).toBe(2);
    const texts = subscriber.messages.map((body) => textIn(body, own));
    expect(texts).toContainEqual(expect.objectContaining({ sync: 'inbox' }));
    expect(texts).toContainEqual({ text: 'x'.repeat(3993 - 11) });
    subscriber.end();
  });
});

describe.skipIf(!hasNtfy)('answers of ntfy', () => {
  let ntfy: Ntfy | undefined;
  afterEach(async () => {
    setPushHosts('');
    await ntfy?.close();
  });

  const send = async (phones: readonly Phone[], hosts: string) => {
    setPushHosts(hosts);
    const { authority } = await loopbackIdentity();
    const profile = webPush.credentials.parse({ ...credentials, ca: authority.certificate });
    const sender = webPush.open(profile, aContext());
    const targets = recipients(phones.length, { deviceType: 'android' }).map((one) => ({
      ...one,
      deviceToken: tokenOf(phones[one.index] ?? browser(0)),
    }));
    try {
      return await sendAll(sender, targets, aMessage({ alert: 'Hello' }));
    } finally {
      await sender.close();
    }
  };

  test('a topic without a subscriber is a phone that is away', async () => {
    ntfy = await Ntfy.start();
    const { attempts } = await send([phone(ntfy, 1)], ntfy.host);
    expect(attempts).toMatchObject([
      { kind: 'retry', status: 507, reason: 'device_unreachable_now', afterMs: 600_000 },
    ]);
  });

  test('a visitor above its rate waits, and no device is invalid', async () => {
    ntfy = await Ntfy.start([
      'visitor-subscriber-rate-limiting: false',
      'visitor-request-limit-burst: 10',
    ]);
    const server = ntfy;
    const phones = Array.from({ length: 40 }, (_, n) => phone(server, n));
    const outcome = await send(phones, server.host);
    const { sent = 0, retry = 0, ...others } = kinds(outcome);
    expect(others).toEqual({});
    expect(sent).toBeGreaterThanOrEqual(10);
    expect(sent + retry).toBe(40);
    expect(outcome.attempts.filter(({ kind }) => kind === 'retry')).toContainEqual(
      expect.objectContaining({ status: 429, reason: 'device_rate_exceeded', afterMs: 60_000 }),
    );
  });
});
