import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startDispatcher } from '../../dispatcher/start.ts';
import { sleep } from '../../shared/clock.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import { changeMaxAgeMs } from '../../shared/ttl-cache.ts';
import { silentLog, testConfig } from '../support/api.ts';
import {
  startWebhookReceiver,
  status,
  verified,
  type WebhookReceiver,
} from '../support/servers/webhook-receiver.ts';
import { useTestService } from '../support/service.ts';

const service = useTestService();
let app: App;
let receiver: WebhookReceiver;
let hookNumber = 0;

beforeAll(async () => {
  app = await service.api.createApp();
  await service.addApnsProfile(app);
  await service.dispatch();
});

beforeEach(async () => {
  receiver = await startWebhookReceiver();
  return async () => {
    await admin('DELETE', `/${nameOf()}`);
    await receiver.close();
  };
});

afterAll(() => receiver?.close());

const nameOf = () => `hook${hookNumber}`;

const admin = (method: 'GET' | 'PUT' | 'POST' | 'DELETE', path: string, body?: object) =>
  service.api.request(method, `/console/api/apps/${app.appId}/webhooks${path}`, {
    admin: true,
    ...(body ? { body } : {}),
  });

/** Creates an endpoint for the receiver of the test. Returns its secret. */
async function subscribe(events: string[], members: object = {}): Promise<string> {
  hookNumber += 1;
  const reply = await admin('PUT', `/${nameOf()}`, { url: receiver.url, events, ...members });
  expect(reply).toMatchObject({ status: 201, body: { secret: expect.stringMatching(/^whsec_/) } });
  await untilCounted();
  return String(reply.body.secret);
}

/** A change of endpoints counts in all processes after this time. */
const untilCounted = () => sleep(changeMaxAgeMs + 50);

const endpoint = async () => (await admin('GET', `/${nameOf()}`)).body;

async function deliveries(): Promise<Record<string, unknown>[]> {
  const { body } = await admin('GET', `/${nameOf()}/deliveries`);
  return body.results as Record<string, unknown>[];
}

/** Sends a push to nobody, which is done at once. */
async function push(): Promise<string> {
  const { body } = await service.api.request('POST', '/1.1/push', {
    app,
    master: true,
    body: { data: { alert: 'hello' }, where: { objectId: 'nobody' } },
  });
  return String(body.objectId);
}

/** Makes all waiting deliveries due now, as if their waits were over. */
async function skipWaits(): Promise<void> {
  await service.db.query(
    `UPDATE webhook_delivery SET next_at = now() WHERE state = 'waiting' AND app_id = $1`,
    [app.appId],
  );
  await service.db.query('UPDATE webhook SET due_at = now(), is_paused = false WHERE app_id = $1', [
    app.appId,
  ]);
}

describe('an event', () => {
  test('is sent with headers and a body that the library of the standard verifies', async () => {
    const secret = await subscribe(['push.accepted', 'push.done']);
    const objectId = await push();
    await expect.poll(() => receiver.requests.length).toBe(2);
    const events = receiver.requests.map((request) => verified(secret, request));
    expect(events).toContainEqual({
      type: 'push.accepted',
      timestamp: expect.stringMatching(/^\d{4}-.*Z$/),
      app: app.appId,
      data: {
        push: objectId,
        pushTime: expect.any(String),
        isScheduled: false,
        createdBy: null,
      },
    });
    expect(events).toContainEqual(
      expect.objectContaining({
        type: 'push.done',
        data: { push: objectId, devices: 0, outcomes: {}, connectors: {} },
      }),
    );
    expect(receiver.requests[0]).toMatchObject({
      path: '/hooks/carillon?tenant=a',
      headers: { 'content-type': 'application/json; charset=utf-8' },
    });
    const ids = receiver.requests.map(({ headers }) => headers['webhook-id']);
    expect(new Set(ids).size).toBe(2);
    for (const id of ids) expect(id).toMatch(/^msg_\d+_[0-9a-z]+$/);
    await expect
      .poll(async () => (await deliveries()).map(({ id, state }) => [id, state]))
      .toEqual(expect.arrayContaining(ids.map((id) => [id, 'delivered'])));
  });

  test('is refused by the library with another secret', async () => {
    await subscribe(['push.done']);
    await push();
    await expect.poll(() => receiver.requests.length).toBe(1);
    const [request] = receiver.requests;
    const other = `whsec_${Buffer.alloc(32).toString('base64')}`;
    expect(() => request && verified(other, request)).toThrow();
  });

  test('of another type is not written', async () => {
    await subscribe(['push.done']);
    await push();
    await expect.poll(() => receiver.requests.length).toBe(1);
    expect((await deliveries()).map(({ type }) => type)).toEqual(['push.done']);
  });

  test('is not sent if its transaction is rolled back', async () => {
    await subscribe(['push.done', 'push.accepted']);
    const body = { data: { alert: 'hi' }, where: { objectId: 'nobody' }, req_id: 'one' };
    const send = () => service.api.request('POST', '/1.1/push', { app, master: true, body });
    const [first, second] = [await send(), await send()];
    expect(second.body.objectId).toBe(first.body.objectId);
    await expect.poll(() => receiver.requests.length).toBe(2);
    expect(receiver.of('push.accepted')).toHaveLength(1);
  });

  test('goes to the endpoints of the service too, with its app', async () => {
    await subscribe(['push.accepted']);
    const path = '/console/api/webhooks/all';
    const created = await service.api.request('PUT', path, {
      admin: true,
      body: { url: receiver.url, events: ['push.done'] },
    });
    const secret = String(created.body.secret);
    await untilCounted();
    await push();
    await expect.poll(() => receiver.of('push.done').length).toBe(1);
    const [request] = receiver.of('push.done');
    expect(request && verified(secret, request)).toMatchObject({ app: app.appId });
    await service.api.request('DELETE', path, { admin: true });
  });
});

describe('a failed attempt', () => {
  test('is repeated with the same id and a new timestamp', async () => {
    const secret = await subscribe(['push.done']);
    receiver.responders.push(status(500, {}, 'x'.repeat(5000)));
    await push();
    await expect.poll(() => receiver.requests.length).toBe(1);
    await expect
      .poll(async () => (await deliveries())[0])
      .toMatchObject({ state: 'waiting', attempts: 1, status: 500, reason: 'http_500' });
    const [waiting] = await deliveries();
    expect(waiting?.response).toBe('x'.repeat(1024));
    const waitMs = Date.parse(String(waiting?.nextAttemptAt)) - Date.now();
    expect(waitMs).toBeGreaterThan(2000);
    expect(waitMs).toBeLessThanOrEqual(5600);
    // The timestamp has whole seconds.
    const [first] = receiver.requests;
    await expect
      .poll(() => Math.floor(Date.now() / 1000))
      .toBeGreaterThan(Number(first?.headers['webhook-timestamp']));
    await skipWaits();
    await expect.poll(() => receiver.requests.length).toBe(2);
    const [, second] = receiver.requests;
    if (second) verified(secret, second);
    expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id']);
    expect(second?.headers['webhook-timestamp']).not.toBe(first?.headers['webhook-timestamp']);
    expect(second?.body).toBe(first?.body);
    await expect
      .poll(async () => (await deliveries())[0])
      .toMatchObject({ state: 'delivered', attempts: 2, status: 204, reason: null });
  });

  test.each([
    ['a redirect', status(302, { location: 'http://127.0.0.1:9/' }), 'http_302'],
    ['a lost connection', (response) => response.destroy(), 'connection_lost (ECONNRESET)'],
    ['an error of the client', status(400), 'http_400'],
  ] as const satisfies [string, Parameters<typeof receiver.responders.push>[0], string][])(
    'is %s',
    async (_what, respond, reason) => {
      await subscribe(['push.done']);
      receiver.respond = respond;
      await push();
      await expect
        .poll(async () => (await deliveries())[0])
        .toMatchObject({ state: 'waiting', attempts: 1, reason });
    },
  );

  test('is a response without end', async () => {
    await subscribe(['push.done']);
    receiver.respond = (response) => {
      const chunk = Buffer.alloc(64 * 1024, 'a');
      const write = () => {
        while (!response.destroyed && response.write(chunk));
        if (!response.destroyed) response.once('drain', write);
      };
      response.writeHead(200);
      write();
    };
    await push();
    await expect
      .poll(async () => (await deliveries())[0])
      .toMatchObject({ state: 'waiting', reason: 'reply_too_large', response: null });
  });

  test('waits as long as Retry-After asks, and so does the endpoint', async () => {
    await subscribe(['push.done']);
    receiver.respond = status(429, { 'retry-after': '120' });
    await push();
    await expect.poll(async () => (await deliveries())[0]).toMatchObject({ status: 429 });
    const [first] = await deliveries();
    const waitMs = Date.parse(String(first?.nextAttemptAt)) - Date.now();
    expect(waitMs).toBeGreaterThan(110_000);
    await push();
    await expect.poll(async () => (await deliveries()).length).toBe(2);
    await expect
      .poll(() => service.db.query('SELECT is_paused FROM webhook WHERE name = $1', [nameOf()]))
      .toMatchObject({ rows: [{ is_paused: true }] });
    expect(receiver.requests).toHaveLength(1);
  });

  test('is the last one after ten', async () => {
    await subscribe(['push.done']);
    receiver.respond = status(500);
    await push();
    await expect.poll(async () => (await deliveries())[0]).toMatchObject({ attempts: 1 });
    await service.db.query('UPDATE webhook_delivery SET attempts = 9 WHERE webhook = $1', [
      nameOf(),
    ]);
    await expect.poll(async () => (await deliveries())[0]).toMatchObject({ state: 'waiting' });
    await skipWaits();
    await expect
      .poll(async () => (await deliveries())[0])
      .toMatchObject({ state: 'failed', attempts: 10, nextAttemptAt: null });
  });
});

describe('an endpoint', () => {
  test('that answers 410 is switched off, and sends nothing but redeliveries', async () => {
    await subscribe(['push.done']);
    receiver.responders.push(status(410));
    await push();
    await expect
      .poll(endpoint)
      .toMatchObject({ isEnabled: false, offReason: 'gone', offAt: expect.any(String) });
    await push();
    const [failed] = await deliveries();
    expect(failed).toMatchObject({ state: 'failed', status: 410 });
    expect(await deliveries()).toHaveLength(1);
    const sent = await admin('POST', `/${nameOf()}/deliveries/${failed?.id}/redeliver`);
    expect(sent).toMatchObject({ status: 200, body: { state: 'waiting' } });
    await expect.poll(async () => (await deliveries())[0]).toMatchObject({ state: 'delivered' });
    expect(await endpoint()).toMatchObject({ isEnabled: false });
    await admin('PUT', `/${nameOf()}`, {
      url: receiver.url,
      events: ['push.done'],
      isEnabled: true,
    });
    expect(await endpoint()).toMatchObject({ isEnabled: true, offReason: null, failures: 0 });
    const audit = await service.api.request('GET', `/console/api/audit?action=webhook.off`, {
      admin: true,
    });
    expect(audit.body.results).toContainEqual(
      expect.objectContaining({ target: nameOf(), after: { isEnabled: false, reason: 'gone' } }),
    );
  });

  test('that fails for a day and ten times is switched off', async () => {
    await subscribe(['push.done']);
    receiver.respond = status(503);
    await push();
    await expect.poll(endpoint).toMatchObject({ failures: 1 });
    await service.db.query(
      `UPDATE webhook SET failures = 8, failing_since = now() - interval '25 hours' WHERE name = $1`,
      [nameOf()],
    );
    await skipWaits();
    await expect.poll(endpoint).toMatchObject({ failures: 9, isEnabled: true });
    await skipWaits();
    await expect
      .poll(endpoint)
      .toMatchObject({ failures: 10, isEnabled: false, offReason: 'failing' });
    // What waited continues when the endpoint is switched on again.
    receiver.respond = status(204);
    await admin('PUT', `/${nameOf()}`, {
      url: receiver.url,
      events: ['push.done'],
      isEnabled: true,
    });
    await skipWaits();
    await expect.poll(async () => (await deliveries())[0]).toMatchObject({ state: 'delivered' });
  });

  test('that recovers within a day stays on', async () => {
    await subscribe(['push.done']);
    receiver.responders.push(status(503));
    await push();
    await expect.poll(endpoint).toMatchObject({ failures: 1 });
    await skipWaits();
    await expect.poll(endpoint).toMatchObject({ failures: 0, failingSince: null });
  });

  test('gets at most four requests at the same time', async () => {
    await subscribe(['push.done']);
    const held: (() => void)[] = [];
    receiver.respond = (response) => held.push(() => response.writeHead(204).end());
    await Promise.all(Array.from({ length: 12 }, push));
    await expect.poll(() => held.length).toBe(4);
    receiver.respond = status(204);
    for (const answer of held) answer();
    await expect.poll(() => receiver.requests.length).toBe(12);
    expect(receiver.maxOpen).toBeLessThanOrEqual(4);
  });

  test('with a corrected URL is not held by what the old one answered', async () => {
    await subscribe(['push.done']);
    receiver.respond = status(429, { 'retry-after': '3600' });
    await push();
    await expect
      .poll(() => service.db.query('SELECT is_paused FROM webhook WHERE name = $1', [nameOf()]))
      .toMatchObject({ rows: [{ is_paused: true }] });
    expect(await endpoint()).toMatchObject({ failures: 1 });
    const corrected = await startWebhookReceiver();
    await admin('PUT', `/${nameOf()}`, { url: corrected.url, events: ['push.done'] });
    expect(await endpoint()).toMatchObject({ failures: 0, failingSince: null });
    await push();
    await expect.poll(() => corrected.requests.length).toBe(1);
    expect(receiver.requests).toHaveLength(1);
    await corrected.close();
  });

  test('is not switched off by an answer of its old URL', async () => {
    await subscribe(['push.done']);
    const held: (() => void)[] = [];
    receiver.respond = (response) => held.push(() => response.writeHead(410).end());
    await push();
    await expect.poll(() => held.length).toBe(1);
    const corrected = await startWebhookReceiver();
    await admin('PUT', `/${nameOf()}`, { url: corrected.url, events: ['push.done'] });
    for (const answer of held) answer();
    await expect
      .poll(async () => (await deliveries())[0])
      .toMatchObject({ state: 'failed', status: 410 });
    expect(await endpoint()).toMatchObject({ isEnabled: true, offReason: null, failures: 0 });
    await corrected.close();
  });

  test('gets new events and tests while a request hangs', async () => {
    await subscribe(['push.done']);
    receiver.responders.push(() => undefined);
    await push();
    await expect.poll(() => receiver.requests.length).toBe(1);
    await push();
    await expect.poll(() => receiver.requests.length, { timeout: 3000 }).toBe(2);
    receiver.responders.push(() => undefined);
    await push();
    await expect.poll(() => receiver.requests.length, { timeout: 3000 }).toBe(3);
    await admin('POST', `/${nameOf()}/test`);
    await expect.poll(() => receiver.of('webhook.test').length, { timeout: 3000 }).toBe(1);
  });

  test.each([1, 4])('uses a corrected URL while %i requests to the old one hang', async (n) => {
    await subscribe(['push.done']);
    receiver.respond = () => undefined;
    await Promise.all(Array.from({ length: n }, push));
    await expect.poll(() => receiver.requests.length).toBe(n);
    const corrected = await startWebhookReceiver();
    await admin('PUT', `/${nameOf()}`, { url: corrected.url, events: ['push.done'] });
    const objectId = await push();
    await expect
      .poll(() => corrected.requests.map(({ event }) => event.data.push), { timeout: 5000 })
      .toContain(objectId);
    await corrected.close();
  });

  test('gets no deliveries of a deleted one with the same name', async () => {
    await subscribe(['push.done']);
    const held: (() => void)[] = [];
    receiver.respond = (response) => held.push(() => response.writeHead(204).end());
    await Promise.all(Array.from({ length: 8 }, push));
    await expect.poll(() => held.length).toBe(4);
    await admin('DELETE', `/${nameOf()}`);
    const other = await startWebhookReceiver();
    await admin('PUT', `/${nameOf()}`, { url: other.url, events: ['push.done'] });
    await untilCounted();
    receiver.respond = status(204);
    for (const answer of held) answer();
    const objectId = await push();
    const pushes = () => other.requests.map(({ event }) => event.data.push);
    await expect.poll(pushes).toContain(objectId);
    expect(pushes()).toEqual([objectId]);
    await other.close();
  });

  test('that hangs does not delay another one', async () => {
    await subscribe(['push.done']);
    receiver.respond = () => undefined;
    const other = await startWebhookReceiver();
    await admin('PUT', '/other', { url: other.url, events: ['push.done'] });
    await untilCounted();
    await Promise.all(Array.from({ length: 8 }, push));
    await expect.poll(() => other.requests.length).toBe(8);
    expect(receiver.requests).toHaveLength(4);
    await admin('DELETE', '/other');
    await other.close();
  });

  test('signs with both secrets for a day after a rotation', async () => {
    const old = await subscribe(['push.done']);
    const rotated = await admin('POST', `/${nameOf()}/rotate`);
    expect(rotated).toMatchObject({ status: 200, body: { secret: expect.any(String) } });
    const secret = String(rotated.body.secret);
    expect(secret).not.toBe(old);
    await push();
    await expect.poll(() => receiver.requests.length).toBe(1);
    const [request] = receiver.requests;
    if (!request) throw new Error('no request');
    expect(String(request.headers['webhook-signature']).split(' ')).toHaveLength(2);
    expect(verified(old, request)).toEqual(verified(secret, request));
    await service.db.query(
      `UPDATE webhook SET previous_until = now() - interval '1 minute' WHERE name = $1`,
      [nameOf()],
    );
    const [delivery] = await deliveries();
    await admin('POST', `/${nameOf()}/deliveries/${delivery?.id}/redeliver`);
    await expect.poll(() => receiver.requests.length).toBe(2);
    const [, again] = receiver.requests;
    if (!again) throw new Error('no request');
    verified(secret, again);
    expect(() => verified(old, again)).toThrow();
    expect(again.headers['webhook-id']).toBe(request.headers['webhook-id']);
  });

  test('that is full drops new events and counts them', async () => {
    await subscribe(['push.done'], { isEnabled: true });
    receiver.respond = status(500);
    await push();
    await expect.poll(() => receiver.requests.length).toBe(1);
    await service.db.query(
      `INSERT INTO webhook_delivery (app_id, webhook, type, source_app, occurred_at, data, next_at)
       SELECT app_id, name, 'push.done', app_id, now(), '{}', now() + interval '1 day'
         FROM webhook, generate_series(1, 10000) WHERE name = $1`,
      [nameOf()],
    );
    await expect
      .poll(() => service.db.query('SELECT is_full FROM webhook WHERE name = $1', [nameOf()]), {
        timeout: 10_000,
      })
      .toMatchObject({ rows: [{ is_full: true }] });
    await expect
      .poll(
        async () => {
          await push();
          return Number((await endpoint()).dropped);
        },
        { timeout: 20_000 },
      )
      .toBeGreaterThan(0);
    expect(await endpoint()).toMatchObject({
      waiting: expect.any(Number),
      droppedAt: expect.any(String),
    });
    expect(Number((await endpoint()).waiting)).toBeLessThan(10_200);
  });

  test('gets a test, also while it is off', async () => {
    const secret = await subscribe(['push.done'], { isEnabled: false });
    const { body } = await admin('POST', `/${nameOf()}/test`);
    expect(body).toMatchObject({ type: 'webhook.test', state: 'waiting' });
    await expect.poll(() => receiver.requests.length).toBe(1);
    const [request] = receiver.requests;
    expect(request && verified(secret, request)).toMatchObject({
      type: 'webhook.test',
      data: { webhook: nameOf() },
    });
  });

  test('gets what waited during an outage', async () => {
    await subscribe(['push.done']);
    const { url } = receiver;
    await receiver.close();
    await push();
    await expect
      .poll(async () => (await deliveries())[0])
      .toMatchObject({ state: 'waiting', reason: 'connect_failed (ECONNREFUSED)' });
    receiver = await startWebhookReceiver({ port: Number(new URL(url).port) });
    await skipWaits();
    await expect.poll(async () => (await deliveries())[0]).toMatchObject({ state: 'delivered' });
  });
});

test('events wait while no dispatcher runs, and another one takes over', async () => {
  const second = await startDispatcher(
    testConfig(service.databaseUrl, { PUBLIC_URL: service.api.url }),
    silentLog,
  );
  await subscribe(['push.done']);
  await Promise.all(Array.from({ length: 20 }, push));
  await second.stack.close();
  await expect.poll(() => receiver.requests.length, { timeout: 30_000 }).toBeGreaterThanOrEqual(20);
  const ids = new Set(receiver.requests.map(({ headers }) => headers['webhook-id']));
  expect(ids.size).toBe(20);
});
