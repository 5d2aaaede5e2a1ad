import { Agent } from 'node:http';
import { Writable } from 'node:stream';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Route } from '../../api/route.ts';
import { loadRoutes } from '../../api/route-loader.ts';
import { type RunningApi, startApi } from '../../api/start.ts';
import { freePort } from '../../ops/local/ports.ts';
import { createApnsCredentials } from '../../ops/sandbox/apns/server.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import { createLogger } from '../../shared/process/logging.ts';
import { testConfig } from '../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { exchange, replyDefect } from './exchange.ts';
import type { Targets } from './generators/credentials.ts';
import { type FuzzRequest, requestsFor } from './generators/requests.ts';
import { fuzz } from './runs.ts';

let database: TestDatabase;
let api: RunningApi;
let targets: Targets;
let routes: Route[];
/** Error log of the api. It contains the causes that replies leave out. */
let failures: string[] = [];
const agent = new Agent({ keepAlive: true, maxSockets: 16 });
const log = createLogger({
  level: 'error',
  name: 'fuzz',
  destination: new Writable({
    write: (line, _encoding, done) => {
      failures.push(String(line));
      done();
    },
  }),
});

/**
 * Records an uncaught error, which would end the process, as a failure of the concurrent requests.
 */
const recordUncaught = (error: Error) => void failures.push(`uncaught: ${error.stack}`);

beforeAll(async () => {
  process.on('uncaughtException', recordUncaught);
  database = await createTestDatabase();
  // Each request has its own IP address, because other tests cover the limits per address.
  const config = testConfig(database.url, { TRUSTED_PROXIES: '1' });
  api = await startApi(config, log);
  // An event stream has no end, and metrics are plain text.
  const without = ['/metrics', '/console/api/events'];
  routes = (await loadRoutes()).filter(
    ({ paths }) => !without.some((path) => paths.includes(path)),
  );
  targets = await makeTargets(config.adminToken);
});
afterAll(async () => {
  process.off('uncaughtException', recordUncaught);
  agent.destroy();
  await api.stack.close();
  await database.drop();
});

/** Options that allow everything. */
const permissive = {
  allowUserQuery: true,
  allowInstallationQuery: true,
  allowInstallationDelete: true,
  forbidClientPush: false,
  pushCallsPerMinute: 9600,
  emailVerification: true,
  smsBalance: 1_000_000,
};

/** Creates an app with profiles for iOS and Xiaomi devices. */
async function createApp(options: object = {}): Promise<App> {
  const { apps, profiles } = api.services;
  const app = await apps.create({
    name: 'Fuzz',
    plan: 'commercial',
    options: { ...permissive, ...options },
  });
  const { publicKey: _, ...apns } = createApnsCredentials();
  const key = { appId: app.appId, name: '_default' };
  await profiles.put(
    { ...key, connector: 'apns' },
    {
      auth: 'token',
      ...apns,
      managementEndpoint: 'https://127.0.0.1:1',
    },
  );
  await profiles.put(
    { ...key, connector: 'vendor_b' },
    { appId: '1', appSecret: 's', packageName: 'com.example' },
  );
  return app;
}

async function makeTargets(adminToken: string): Promise<Targets> {
  const app = await createApp();
  const hostless = await createApp({
    functionsUrl: `http://127.0.0.1:${await freePort()}`,
    captchaForSms: true,
  });
  const secrets = [app.masterKey, app.hookKey];
  return { app, hostless, managed: app, adminToken, sessionToken: '', secrets, ids: {} };
}

async function create(app: App, path: string, body: object): Promise<Record<string, string>> {
  const headers = {
    'X-LC-Id': app.appId,
    'X-LC-Key': `${app.masterKey},master`,
    'X-Forwarded-For': '::1',
  };
  const sent = {
    method: 'POST',
    path,
    headers,
    body: Buffer.from(JSON.stringify(body)),
    route: path,
  };
  const { status, text } = await exchange(agent, api.port, sent);
  expect(status, text).toBeLessThan(300);
  return JSON.parse(text);
}

let generation = 0;

/**
 * Creates users, a device and a push for the next requests, because earlier requests may have
 * changed or deleted the previous ones.
 */
async function renewTargets(): Promise<void> {
  const { app, secrets } = targets;
  const managed = await createApp();
  targets.managed = managed;
  const nextHour = new Date(Date.now() + 3_600_000).toISOString();
  const text = `renewed-${++generation}`;
  const user = await create(app, '/1.1/users', {
    username: text,
    password: 'secret',
    email: `${text}@example.com`,
  });
  const victim = await create(app, '/1.1/users', {
    authData: { github: { uid: text, access_token: text } },
  });
  const device = await create(app, '/1.1/installations', {
    deviceType: 'ios',
    deviceToken: text.padEnd(64, 'a'),
  });
  const acl = { '*': { read: true, write: true } };
  const role = await create(app, '/1.1/roles', { name: text, ACL: acl });
  const push = await create(app, '/1.1/push', { data: { alert: text }, push_time: nextHour });
  const managedPush = await create(managed, '/1.1/push', {
    data: { alert: text },
    push_time: nextHour,
  });
  const doomed = await createApp();
  targets.sessionToken = user.sessionToken ?? '';
  secrets.push(victim.sessionToken ?? '');
  targets.ids = {
    objectId: [user.objectId, victim.objectId, device.objectId, role.objectId, push.objectId].map(
      String,
    ),
    id: [String(push.objectId), String(managedPush.objectId), `apns:${managed.appId}:_default`],
    appId: [managed.appId],
    doomed: [doomed.appId],
    installation: [String(device.objectId)],
    className: ['_User', '_Installation', '_Role', 'Note'],
    connector: ['apns', 'fcm', 'vendor_a', 'vendor_d', '__proto__'],
    name: ['_default', 'welcome', 'constructor', '_ops'],
    any: ['x', '123456'],
  };
}

/** Formats a request and its outcome for a failure. */
function describeRequest(
  { route, method, path, headers, body }: FuzzRequest,
  outcome: string,
): string {
  const bodyText =
    body === undefined ? '' : body.length > 2000 ? `${body.length} bytes` : body.toString();
  return `${outcome}\n${route}\n${method} ${path}\n${JSON.stringify(headers)}\n${bodyText}\n${failures.join('').slice(0, 3000)}`;
}

async function defectOf(sent: FuzzRequest): Promise<string | undefined> {
  try {
    const reply = await exchange(agent, api.port, sent);
    const defect = replyDefect(sent, reply, targets);
    return defect && describeRequest(sent, `${defect}: ${reply.text.slice(0, 500)}`);
  } catch (error) {
    return describeRequest(sent, String(error));
  }
}

const renewEvery = 50;

/** Number of concurrent requests. They also change each other's rows. */
const concurrency = 8;

test('every request to every route gets a valid response', async () => {
  let runs = 0;
  const request = fc.oneof(...routes.map((route) => requestsFor(route, targets)));
  const requests = fc.array(request, { minLength: 1, maxLength: concurrency, size: 'max' });
  await fuzz(
    fc.asyncProperty(requests, async (sent) => {
      if (++runs % renewEvery === 1) await renewTargets();
      failures = [];
      const defects = (await Promise.all(sent.map(defectOf))).filter(
        (defect) => defect !== undefined,
      );
      defects.push(...failures.filter((failure) => failure.startsWith('uncaught')));
      if (defects.length > 0) throw new Error(defects.join('\n\n'));
    }),
    { cases: 300 },
  );
  expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
}, 1_200_000);
