import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { npmVersion } from '../../../ops/check/toolchains.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testTableRow } from '../../support/clients/table-row.ts';
import {
  type FixedAddresses,
  PushClient,
  startFixedAddresses,
} from '../../support/sdk/push-client.ts';
import { useTestService } from '../../support/service.ts';

/**
 * Tests the unmodified `leancloud-push` for web pages (protocol/channel.md#json-form). It
 * registers, asks its router, which has a fixed name, for the socket, logs in there, sends
 * heartbeats, receives and acknowledges.
 */
const host = 'push.example.com';
let folder: string;
let app: App;
let at: FixedAddresses;
let client: PushClient;

const service = useTestService();
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'carillon-push-client-'));
  await service.dispatch();
  app = await service.api.createApp({ forbidClientPush: false, allowInstallationQuery: true });
  at = await startFixedAddresses(folder, { host, apiPort: Number(new URL(service.api.url).port) });
  client = await PushClient.start(app, { at, host, installationId: 'page-1' });
});
afterAll(async () => {
  await client.close();
  at.close();
  await rm(folder, { recursive: true });
});

const installation = async () =>
  (await service.api.request('GET', '/1.1/installations?order=createdAt', { app })).body.results[0];
const acknowledged = async (objectId: string) =>
  (await service.untilDone(app, objectId)).lcSuccesses;

test('registers itself, and receives pushes to all and to a channel', async () => {
  expect((await client.call('open')).error).toBeNull();
  expect([...at.proxiedHosts].sort()).toEqual([`${host}:443`, 'router-g0-push.leancloud.cn:443']);
  expect(await installation()).toMatchObject({
    deviceType: 'web',
    installationId: 'page-1',
    valid: true,
  });

  const sent = await client.call('sendPush', { data: { alert: 'to all', n: 1 } });
  expect(sent).toEqual({
    body: { objectId: expect.any(String), createdAt: expect.any(String) },
    error: null,
  });
  await expect.poll(() => client.received('message'), { timeout: 20_000 }).toHaveLength(1);
  expect(client.received('message')[0]).toMatchObject({ alert: 'to all', n: 1 });

  expect((await client.call('subscribeChannels', ['news', 'sport'])).error).toBeNull();
  expect((await client.call('unsubscribe', ['sport'])).error).toBeNull();
  expect((await installation()).channels).toEqual(['news']);
  const body = { data: { alert: 'to news' }, channels: ['news'] };
  const { objectId } = (await service.api.request('POST', '/1.1/push', { app, body })).body;
  await expect.poll(() => client.received('message'), { timeout: 20_000 }).toHaveLength(2);
  expect(client.received('message')[1]).toMatchObject({ alert: 'to news', _channel: 'news' });
  // The acknowledgement of the client is counted.
  await expect.poll(() => acknowledged(objectId), { timeout: 20_000 }).toBe(1);
});

test('gets the reason why a push is refused, and no other error', async () => {
  await service.api.services.apps.change(app.appId, { options: { forbidClientPush: true } });
  const refused = await client.call('sendPush', { data: { alert: 'x' } });
  expect(refused).toMatchObject({
    error: { code: 403, message: expect.stringMatching(/master key/) },
  });
  expect(client.received('error')).toEqual([]);
  expect(client.received('close')).toEqual([]);
});

testTableRow({
  name: 'Web pages (`leancloud-push`, npm)',
  version: npmVersion('leancloud-push'),
  topics: ['registration', 'channels', 'receiving', 'acknowledging', 'push'],
});
