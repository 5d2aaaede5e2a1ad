import { readFile } from 'node:fs/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { openCertificateAuthority } from '../../../ops/sandbox/kit/certificates.ts';
import { Vault } from '../../../shared/crypto.ts';
import { putProfile } from '../../../shared/db/tables/profiles.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../../support/api.ts';
import { beginPush, createAppOn } from '../../support/gateways/app-gateway.ts';
import { alerts, startRefusingPeer } from '../../support/http2/refusing-peer.ts';
import { useTestService } from '../../support/service.ts';
import { changeDevices, countRows } from '../../support/tables.ts';

const service = useTestService();
beforeAll(async () => {
  await service.dispatch();
});

/** Creates an app whose only APNs profile is a certificate for the development gateway. */
async function appWithCertificate(environment: 'dev' | 'prod'): Promise<App> {
  const app = await service.api.createApp();
  const client = await service.apns.authority.issueClient({
    commonName: 'Apple Push: com.example.app',
    userId: 'com.example.app',
  });
  await putProfile(service.db, new Vault(testConfig(service.databaseUrl).secrets), {
    appId: app.appId,
    connector: 'apns',
    name: '_default',
    credentials: {
      auth: 'certificate',
      ...client,
      topic: 'com.example.app',
      environment,
      endpoint: service.apns.url,
      ca: service.apns.ca,
    },
  });
  return app;
}

const push = async (app: App, body: object) =>
  service.untilDone(app, await beginPush(service, app, body));

describe('a development certificate', { timeout: 60_000 }, () => {
  let app: App;
  let tokens: string[];
  beforeAll(async () => {
    app = await appWithCertificate('dev');
    tokens = await service.addIosInstallations(app, 20_001);
    await changeDevices(service.db, app, { channels: ['few'] }, tokens.slice(0, 50));
  });

  test('ends a push to more than 20,000 devices with a message and sends nothing', async () => {
    expect(await push(app, { prod: 'dev' })).toMatchObject({
      status: 'dev profile disabled for massive push',
      devices: 20_001,
      successes: 0,
      outcomes: { failed: 20_001 },
    });
    expect(tokens.filter((token) => service.apns.seen(token) > 0)).toEqual([]);
  });

  test('sends pushes to fewer devices', async () => {
    expect(await push(app, { prod: 'dev', channels: 'few' })).toMatchObject({
      status: 'done',
      devices: 50,
      successes: 50,
    });
  });
});

test('a refused client certificate ends the push with a hint and deletes no token', async () => {
  const peer = await startRefusingPeer(alerts.certificateRevoked);
  const authority = await openCertificateAuthority();
  const client = await authority.issueClient({
    commonName: 'Apple Push',
    userId: 'com.example.app',
  });
  const own = { auth: 'certificate', ...client, topic: 'com.example.app' };
  const { app, tokens, id } = await createAppOn(
    service,
    { ...own, endpoint: peer.url, ca: authority.certificate },
    1500,
  );
  const record = await service.untilDone(app, await beginPush(service, app));
  expect(record).toMatchObject({
    status: 'done',
    devices: 1500,
    successes: 0,
    outcomes: { failed: 1500 },
  });
  expect(record.errors).toContain('The gateway refuses the client certificate');
  expect(await countRows(service.db, 'installation', app)).toBe(tokens.length);
  // A retry would not help, and each batch makes at most one request.
  expect(peer.refused).toBeLessThan(10);
  const { body } = await service.api.request('GET', '/console/api/breakers', { admin: true });
  expect(body.results.find((breaker: { id: string }) => breaker.id === id)).toMatchObject({
    state: 'closed',
  });
  await peer.close();
});

test('a device whose topic is shortened within a character fails, and others get the push', async () => {
  const app = await appWithCertificate('prod');
  const tokens = await service.addIosInstallations(app, 2);
  const apnsTopic = `${'x'.repeat(99)}😀`;
  const body = { deviceType: 'ios', deviceToken: tokens[0], apnsTopic };
  const saved = await service.api.request('POST', '/1.1/installations', {
    app,
    master: true,
    body,
  });
  expect(saved.status).toBe(200);
  const record = await push(app, {});
  expect(record).toMatchObject({ status: 'done', outcomes: { sent: 1, failed: 1 } });
  expect(tokens.map((token) => service.apns.seen(token))).toEqual([0, 1]);
});

test('a push by a stored certificate that TLS cannot use is refused', async () => {
  const pem = await readFile(
    new URL('../../fixtures/weak-certificate.pem', import.meta.url),
    'utf8',
  );
  const weak = { auth: 'certificate', certificate: pem, privateKey: pem, topic: 'com.example.app' };
  const { app } = await createAppOn(service, { ...weak, endpoint: service.apns.url }, 1);
  const request = { app, master: true, body: { data: { alert: 'Hello' } } };
  const reply = await service.api.request('POST', '/1.1/push', request);
  expect(reply).toMatchObject({ status: 400, body: { code: 1 } });
});
