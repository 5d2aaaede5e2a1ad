/** One push service of several is down: the others get their messages at once (promise 4). */
import { createSecureServer } from 'node:http2';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { browser } from '../../connectors/webpush/fixture.ts';
import { beginPush } from '../../support/gateways/app-gateway.ts';
import { loopbackIdentity } from '../../support/gateways/identity.ts';
import { startTestService, type TestService } from '../../support/service.ts';

/** Together two batches, one of them of two groups. */
const devicesPerService = 600;
const waitMs = 120_000;

interface Host {
  host: string;
  /** Requests, or connections of a server that never answers. */
  seen: number;
  close(): void;
}

async function listen(server: Server, onConnection: () => void): Promise<() => string> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket.on('error', () => undefined));
    onConnection();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return () => `127.0.0.1:${(server.address() as AddressInfo).port}`;
}
const closers: (() => void)[] = [];

/** Starts a push service over TLS and HTTP/2. It answers 201, or never. */
async function startService(answers: boolean): Promise<Host> {
  const { server: pem } = await loopbackIdentity();
  const result = { host: '', seen: 0, close: () => server.close() };
  const server = createSecureServer(
    { cert: pem.certificate, key: pem.privateKey },
    (request, response) => {
      result.seen += 1;
      response.on('error', () => undefined);
      request
        .on('error', () => undefined)
        .on('end', () => answers && response.writeHead(201).end());
      request.resume();
    },
  );
  result.host = (await listen(server, () => undefined))();
  return result;
}

const outages = {
  'accepts connections and never answers': async (): Promise<Host> => {
    const result = { host: '', seen: 0, close: () => server.close() };
    const server = createServer();
    const hostOf = await listen(server, () => {
      result.seen += 1;
    });
    result.host = hostOf();
    return result;
  },
  'takes requests and never answers': () => startService(false),
  'refuses connections': async (): Promise<Host> => {
    const server = createServer();
    const host = (await listen(server, () => undefined))();
    server.close();
    return { host, seen: 0, close: () => undefined };
  },
};

describe.each(Object.entries(outages))('a service that %s', (_, startDead) => {
  let service: TestService;
  let app: App;
  let dead: Host;
  let others: Host[];

  beforeAll(async () => {
    dead = await startDead();
    others = await Promise.all([startService(true), startService(true), startService(true)]);
    const hosts = [...others, dead].map(({ host }) => host);
    service = await startTestService({ env: { WEBPUSH_HOSTS: hosts.join(',') } });
    await service.dispatch();
    app = await service.api.createApp();
    const { authority } = await loopbackIdentity();
    const path = `/console/api/apps/${app.appId}/profiles/webpush/_default`;
    const body = { subject: 'mailto:push@example.com', ca: authority.certificate };
    expect((await service.api.request('PUT', path, { admin: true, body })).status).toBe(200);
    const { auth, publicKey } = browser(1);
    await service.db.query(
      `INSERT INTO installation
              (app_id, object_id, device_type, vendor, registration_id, subscription_keys, channels, fields)
       SELECT $1, encode(sha256(i::text::bytea), 'hex')::varchar(24), 'web', 'webpush',
              'https://' || ($3::text[])[1 + i % 4] || '/p/' || i, $4,
              CASE WHEN i % 4 < 3 THEN '{up}'::text[] ELSE '{}' END, '{}'
         FROM generate_series(1, $2::int) AS i`,
      [
        app.appId,
        devicesPerService * 4,
        hosts,
        `${publicKey.toString('base64url')}.${auth.toString('base64url')}.`,
      ],
    );
  }, waitMs);
  afterAll(async () => {
    await service.close();
    for (const close of closers.splice(0)) close();
  }, waitMs);

  test('does not delay the others, and all its devices are counted', {
    timeout: waitMs,
  }, async () => {
    /** Sends a push. Returns its id, and when the other services had all messages, in ms. */
    const send = async (body: object) => {
      for (const other of others) other.seen = 0;
      const startedAtMs = performance.now();
      const push = await beginPush(service, app, { ...body, data: { alert: 'Hello' } });
      await expect
        .poll(() => others.map(({ seen }) => seen), { timeout: waitMs, interval: 20 })
        .toEqual(others.map(() => devicesPerService));
      return { push, tookMs: performance.now() - startedAtMs };
    };
    const alone = await send({ channels: ['up'] });
    expect(dead.seen).toBe(0);
    const { push, tookMs } = await send({ where: {} });
    // A connection to the dead service takes 10 s to fail, a message 15 s.
    expect(tookMs).toBeLessThan(2 * alone.tookMs + 8_000);
    expect(dead.seen).toBeLessThan(20);
    const path = `/console/api/apps/${app.appId}/notifications/${push}/cancel`;
    expect((await service.api.request('POST', path, { admin: true })).status).toBe(200);
    const progress = `/console/api/apps/${app.appId}/notifications/${push}/progress`;
    await expect
      .poll(async () => (await service.api.request('GET', progress, { admin: true })).body, {
        timeout: waitMs,
      })
      .toMatchObject({
        devices: devicesPerService * 4,
        outcomes: { sent: devicesPerService * 3, dropped: devicesPerService },
      });
  });
});
