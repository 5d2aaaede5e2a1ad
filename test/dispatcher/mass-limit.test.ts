import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Vault } from '../../shared/crypto.ts';
import { putProfile } from '../../shared/db/tables/profiles.ts';
import type { App } from '../../shared/domain/app.ts';
import { testConfig } from '../support/api.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
  await service.dispatch();
});
afterAll(() => service?.close());

/** An app whose only APNs profile is a certificate for the development gateway. */
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

async function push(app: App, body: object): Promise<Record<string, unknown>> {
  const whole = { data: { alert: 'Hello' }, ...body };
  const reply = await service.api.request('POST', '/1.1/push', { app, master: true, body: whole });
  expect(reply, JSON.stringify(reply.body)).toMatchObject({ status: 200 });
  return service.untilDone(app, reply.body.objectId);
}

describe('a development certificate', { timeout: 60_000 }, () => {
  let app: App;
  let tokens: string[];
  beforeAll(async () => {
    app = await appWithCertificate('dev');
    tokens = await service.addIosInstallations(app, 20_001);
    await service.db.query("UPDATE installation SET channels = '{few}' WHERE device_token = ANY($1)", [
      tokens.slice(0, 50),
    ]);
  });

  test('ends a push to more than 20,000 devices with its sentence and sends nothing', async () => {
    expect(await push(app, { prod: 'dev' })).toMatchObject({
      status: 'dev profile disabled for massive push',
      devices: 20_001,
      successes: 0,
      outcomes: { failed: 20_001 },
    });
    expect(tokens.filter((token) => service.apns.seen(token) > 0)).toEqual([]);
  });

  test('serves a push to fewer, and one of the same app that means fewer', async () => {
    expect(await push(app, { prod: 'dev', channels: 'few' })).toMatchObject({
      status: 'done',
      devices: 50,
      successes: 50,
    });
  });
});
