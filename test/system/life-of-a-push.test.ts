/**
 * Shows the life of a push from the call to the record, for readers. Each step is a call of an app
 * server, a device or an operator. The test uses no helper except an empty database. An api accepts
 * the push. A dispatcher plans it, sends it to a gateway over HTTP/2 with TLS, and records the
 * outcomes (docs/develop/architecture.md).
 */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { type RunningApi, startApi } from '../../api/start.ts';
import { type RunningDispatcher, startDispatcher } from '../../dispatcher/start.ts';
import {
  type ApnsGateway,
  createApnsCredentials,
  startApnsGateway,
} from '../../ops/sandbox/apns/server.ts';
import { type Config, readConfig } from '../../shared/config/config.ts';
import { loopbackNetworks } from '../../shared/config/private-hosts.ts';
import { createLogger } from '../../shared/process/logging.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

const log = createLogger({ level: 'silent', name: 'life of a push' });
const operatorToken = randomBytes(24).toString('base64url');
const credentials = createApnsCredentials();
const { publicKey, ...ownCredentials } = credentials;

const appKeys = z.object({ appId: z.string(), appKey: z.string(), masterKey: z.string() });
const createdObject = z.object({ objectId: z.string() });
const pushRecord = z.looseObject({ status: z.string() });

let database: TestDatabase;
let gateway: ApnsGateway;
let config: Config;
let api: RunningApi;
let dispatcher: RunningDispatcher | undefined;
let url: string;

beforeAll(async () => {
  database = await createTestDatabase();
  // A gateway that is as strict as Apple's. It knows our public key.
  gateway = await startApnsGateway({ keys: [{ ...ownCredentials, publicKey }] });
  config = readConfig({
    DATABASE_URL: database.url,
    HOST: '127.0.0.1',
    PORT: '0',
    METRICS_PORT: '0',
    PUBLIC_URL: 'http://carillon.test',
    CARILLON_ADMIN_TOKEN: operatorToken,
    CARILLON_SECRET: randomBytes(32).toString('base64'),
    // The gateway has a private address, which would otherwise be refused.
    CARILLON_PRIVATE_HOSTS: loopbackNetworks,
    DISPATCHER_THREADS: '1',
  });
  api = await startApi(config, log);
  url = `http://127.0.0.1:${api.port}`;
});

afterAll(async () => {
  await dispatcher?.stack.close();
  await api?.stack.close();
  await gateway?.close();
  await database?.drop();
});

test('a push goes from the call through the gateway into the record', async () => {
  const json = { 'Content-Type': 'application/json' };

  // An operator creates an app. The reply contains its keys.
  const operator = { ...json, Authorization: `Bearer ${operatorToken}` };
  const created = await fetch(`${url}/console/api/apps`, {
    method: 'POST',
    headers: operator,
    body: JSON.stringify({ name: 'Shop' }),
  });
  expect(created.status).toBe(201);
  const { appId, appKey, masterKey } = appKeys.parse(await created.json());

  // The operator stores Apple's credentials, and here also the address of the gateway and the
  // certificate to trust.
  const stored = await fetch(`${url}/console/api/apps/${appId}/profiles/apns/_default`, {
    method: 'PUT',
    headers: operator,
    body: JSON.stringify({
      auth: 'token',
      ...ownCredentials,
      endpoint: gateway.url,
      ca: gateway.ca,
    }),
  });
  expect(stored.status).toBe(200);

  // Three devices save their installations with the key of the app.
  const device = { ...json, 'X-LC-Id': appId, 'X-LC-Key': appKey };
  const tokens = ['a', 'b', 'c'].map((digit) => digit.repeat(64));
  const saved: string[] = [];
  for (const deviceToken of tokens) {
    const reply = await fetch(`${url}/1.1/installations`, {
      method: 'POST',
      headers: device,
      body: JSON.stringify({
        deviceType: 'ios',
        deviceToken,
        apnsTopic: 'com.example.app',
        channels: ['news'],
      }),
    });
    expect(reply.status).toBe(201);
    saved.push(createdObject.parse(await reply.json()).objectId);
  }
  // The owner of the third device removes the app. Only the gateway notices this.
  gateway.deadTokens.set('c'.repeat(64), Date.now() + 1000);

  // The app server sends a push with the master key. When the api replies, the push is stored.
  const server = { ...json, 'X-LC-Id': appId, 'X-LC-Key': `${masterKey},master` };
  const accepted = await fetch(`${url}/1.1/push`, {
    method: 'POST',
    headers: server,
    body: JSON.stringify({ channels: ['news'], data: { alert: 'Open until ten', sound: 'bell' } }),
  });
  expect(accepted.status).toBe(200);
  const { objectId } = createdObject.parse(await accepted.json());
  const readRecord = async () => {
    const reply = await fetch(`${url}/1.1/tables/Notifications/${objectId}`, { headers: server });
    return pushRecord.parse(await reply.json());
  };
  expect(await readRecord()).toMatchObject({ objectId, status: 'in-queue' });
  expect(gateway.total).toBe(0);

  // A dispatcher starts. It finds the push, plans a batch, sends it and closes the record.
  dispatcher = await startDispatcher(config, log);
  await expect.poll(async () => (await readRecord()).status).toBe('done');

  // The gateway received one request per device, with a payload in Apple's form and signed with our
  // key.
  expect(gateway.requests.map(({ token }) => token).sort()).toEqual(tokens);
  const request = gateway.requests.find(({ token }) => token === tokens[0]);
  expect(request).toMatchObject({
    status: 200,
    headers: {
      ':method': 'POST',
      ':path': `/3/device/${tokens[0]}`,
      'apns-topic': 'com.example.app',
      'apns-push-type': 'alert',
      authorization: expect.stringMatching(/^bearer /),
    },
  });
  expect(JSON.parse(request?.body.toString() ?? '')).toEqual({
    aps: { alert: 'Open until ten', sound: 'bell' },
  });

  // The record counts the replies of the gateway.
  expect(await readRecord()).toMatchObject({
    status: 'done',
    devices: 3,
    successes: 2,
    invalidTokens: 1,
  });
  const progress = await fetch(
    `${url}/console/api/apps/${appId}/notifications/${objectId}/progress`,
    {
      headers: operator,
    },
  );
  expect(await progress.json()).toMatchObject({
    status: 'done',
    devices: 3,
    planned: true,
    connectors: { apns: { sent: 2, invalid_token: 1 } },
  });

  // The installation that the gateway no longer knows is deleted. A call for it returns an empty
  // object.
  const readInstallation = async (id?: string) =>
    (await fetch(`${url}/1.1/installations/${id}`, { headers: server })).json();
  await expect.poll(() => readInstallation(saved[2])).toEqual({});
  expect(await readInstallation(saved[0])).toMatchObject({ deviceToken: tokens[0] });
  expect(await readInstallation(saved[1])).toMatchObject({ deviceToken: tokens[1] });
});
