import { beforeAll, expect, test } from 'vitest';
import { loadRoutes } from '../../../api/route-loader.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { useTestService } from '../../support/service.ts';
import { callerOf } from './callers.ts';

const service = useTestService();
const base = '/console/api';

/**
 * Data that a viewer must not see in full. Each value is unique, so a reply that contains one must
 * have it from here.
 */
const hidden = {
  phone: '+8613912345678',
  otherPhone: '13987654321',
  numericPhone: '13701234567',
  email: 'hidden.person@example.com',
  username: 'hidden-person-name',
  nick: 'hidden-nick-name',
  openId: 'hidden-open-id-of-weixin',
  accessToken: 'hidden-access-token',
  deviceToken: 'badc0de5'.repeat(8),
  listedToken: 'deadbea7'.repeat(8),
  registrationId: 'hidden-registration-id',
  installationId: 'hidden-installation-id',
  masterSecret: 'hidden-master-secret',
  platformSecret: 'hidden-platform-secret',
};

let app: App;
/** Values of path parameters. */
let parameters: Record<string, string>;
/** Last segments of paths, for `:id` and `:name` with different meanings. */
let named: Record<string, string>;
/** Pushes whose conditions contain hidden values. */
let pushIds: string[];

beforeAll(async () => {
  app = await service.api.createApp({
    hybridPush: true,
    authPlatforms: { weixin: { appId: 'platform', ca: hidden.platformSecret } },
  });
  await service.addApnsProfile(app);
  await admin('PUT', `/apps/${app.appId}/profiles/vendor_d/_default`, {
    appKey: 'key',
    masterSecret: hidden.masterSecret,
  });
  const user = await addUser();
  const device = await addDevices();
  await service.dispatch();
  const pushes = await addPushes();
  await addSavedItems(device);
  pushIds = pushes.all;
  const created = await service.api.request(
    'POST',
    `${base}/apps/${app.appId}/liveActivities/channels`,
    { admin: true, body: { storage: 'last' } },
  );
  const channel = encodeURIComponent(created.body.channel);
  parameters = { appId: app.appId, objectId: pushes.done, installation: device, channel };
  named = {
    users: user,
    installations: device,
    notifications: pushes.done,
    audiences: 'one',
    'push-templates': 'one',
    'test-devices': 'one',
    'sms-templates': 'one',
    'sms-signatures': 'one',
    'recurring-pushes': await addRecurring(),
  };
});

async function admin(method: string, path: string, body: object): Promise<void> {
  const reply = await service.api.request(method, base + path, { admin: true, body });
  expect([path, reply.status, reply.body]).toEqual([path, 200, expect.any(Object)]);
}

/**
 * Adds a user with a session, and messages to the email address and to a number. Returns the user's
 * id.
 */
async function addUser(): Promise<string> {
  const { phone, otherPhone, email, username, nick, openId, accessToken } = hidden;
  const body = {
    username,
    email,
    nick,
    password: 'p',
    mobilePhoneNumber: phone,
    authData: { qq: { openid: openId, access_token: accessToken, expires_in: 7200 } },
  };
  const { api } = service;
  const user = await api.request('POST', '/1.1/users', { app, master: true, body });
  expect(user.status).toBe(201);
  await api.request('POST', '/1.1/requestPasswordReset', { app, body: { email } });
  const sms = { app, master: true, body: { mobilePhoneNumber: otherPhone } };
  expect((await api.request('POST', '/1.1/requestSmsCode', sms)).status).toBe(200);
  return user.body.objectId;
}

/** Adds a device for each kind of token. Returns the id of the first device. */
async function addDevices(): Promise<string> {
  const { deviceToken, listedToken, registrationId, installationId } = hidden;
  const mobilePhoneNumber = Number(hidden.numericPhone);
  const ids: string[] = [];
  for (const body of [
    { deviceType: 'ios', deviceToken, apnsTopic: 'com.example.app', mobilePhoneNumber },
    { deviceType: 'ios', deviceToken: listedToken, apnsTopic: 'com.example.other' },
    { deviceType: 'android', installationId, registrationId, vendor: 'oppo' },
  ]) {
    const saved = await service.api.request('POST', '/1.1/installations', { app, body });
    expect([saved.status, saved.body]).toEqual([201, expect.any(Object)]);
    ids.push(saved.body.objectId);
  }
  return ids[0] ?? '';
}

/** Conditions that contain hidden values. */
const conditions = (): object[] => [
  { deviceToken: hidden.deviceToken },
  {
    $or: [
      { registrationId: hidden.registrationId },
      { installationId: { $in: [hidden.installationId] } },
    ],
  },
  { owner: { $inQuery: { className: '_User', where: { email: hidden.email } } } },
  { owner: { $inQuery: { className: '_User', where: { mobilePhoneNumber: hidden.phone } } } },
  { mobilePhoneNumber: { $in: [Number(hidden.numericPhone)] } },
];
const cql = () =>
  `select * from _Installation where deviceToken = '${hidden.deviceToken}'
    or mobilePhoneNumber = ${hidden.numericPhone}`;

/**
 * Sends pushes of each form, some of them scheduled. Returns all ids, and the id of a push that
 * ended with a failure.
 */
async function addPushes(): Promise<{ done: string; all: string[] }> {
  const data = { alert: 'hello' };
  const later = new Date(Date.now() + 3_600_000).toISOString();
  const targets = [...conditions().map((where) => ({ where })), { cql: cql() }];
  const send = async (path: string, body: object): Promise<string> => {
    const reply = await service.api.request('POST', path, { app, master: true, body });
    expect([body, reply.status, reply.body]).toEqual([
      body,
      expect.any(Number),
      expect.any(Object),
    ]);
    expect(reply.status, JSON.stringify(reply.body)).toBeLessThan(300);
    return reply.body.objectId;
  };
  const all: string[] = [];
  for (const target of targets) {
    all.push(await send('/1.1/push', { data, ...target }));
    all.push(await send('/1.1/push', { data, ...target, push_time: later }));
  }
  const device_ids = [hidden.deviceToken, hidden.listedToken];
  const done = await send('/1.1/push/devices', { data, device_type: 'ios', device_ids });
  await service.untilDone(app, done);
  return { done, all };
}

async function addSavedItems(device: string): Promise<void> {
  const [where = {}] = conditions();
  const at = `/apps/${app.appId}`;
  await admin('PUT', `${at}/test-devices/one`, { installation: device });
  for (const [i, one] of conditions().entries()) {
    await admin('PUT', `${at}/audiences/${i}`, { where: one });
    await admin('PUT', `${at}/push-templates/${i}`, { body: { where: one, data: { alert: 'x' } } });
  }
  const texts = { cql: cql(), where: JSON.stringify(where) };
  for (const [name, text] of Object.entries(texts))
    await admin('PUT', `${at}/push-templates/${name}`, {
      body: { [name]: text, data: { alert: 'x' } },
    });
  await admin('PUT', `${at}/audiences/one`, { where });
  await admin('PUT', `${at}/push-templates/one`, { body: { where, data: { alert: 'x' } } });
  await admin('PUT', `${at}/sms-templates/one`, { text: 'Order {{number}}', type: 'notification' });
  await admin('PUT', `${at}/sms-signatures/one`, {});
}

/** Adds a recurring push for each form of a condition. Returns the id of the first push. */
async function addRecurring(): Promise<string> {
  const targets = [...conditions().map((where) => ({ where })), { cql: cql() }];
  const ids: string[] = [];
  for (const [i, target] of targets.entries()) {
    const body = {
      name: `recurring ${i}`,
      expression: '0 9 * * *',
      timeZone: 'UTC',
      body: { ...target, data: { alert: 'x' } },
    };
    const path = `${base}/apps/${app.appId}/recurring-pushes`;
    const reply = await service.api.request('POST', path, { admin: true, body });
    expect([reply.status, reply.body]).toEqual([201, expect.any(Object)]);
    ids.push(String(reply.body.id));
  }
  return ids[0] ?? '';
}

/**
 * Queries for routes that return nothing without a query, and other queries that return the same
 * data in another way.
 */
const queries: Record<string, () => string[]> = {
  search: () => Object.values(hidden).map((q) => `?q=${encodeURIComponent(q)}`),
  listAppInstallations: () => [
    '',
    `?q=${hidden.deviceToken}`,
    `?q=${hidden.registrationId}`,
    '?count=1',
  ],
  listAppUsers: () => ['', ...Object.values(hidden).map((q) => `?q=${encodeURIComponent(q)}`)],
  getUsage: () => ['', '?from=2026-01-01&to=2026-01-02'],
  listApps: () => ['', '?view=list', '?view=names'],
  getOverview: () => ['', `?app=${app.appId}`],
  suggestFields: () => ['', '?prefix=device', '?prefix=reg', '?prefix=installation'],
};

const bodies: Record<string, () => object> = {
  countAudience: () => ({ where: {}, sample: 20 }),
  previewRecurringPush: () => ({ expression: '0 9 * * *', timeZone: 'UTC' }),
};

/**
 * Returns the path of a route for which data exists. The segment before `:id` or `:name` selects
 * the value.
 */
const pathOf = (pattern: string): string =>
  pattern
    .slice(base.length)
    .replace(/([\w-]+)\/:(id|name)\b/g, (whole, place: string) =>
      named[place] === undefined ? whole : `${place}/${named[place]}`,
    )
    .replace(/:(\w+)/g, (whole, name: string) => parameters[name] ?? whole);

/** Reads a stream until each of its topics has had an event. */
async function readEvents(topics: string[], role: 'viewer' | 'sender'): Promise<string> {
  const { token } = (
    await service.api.request('POST', `${base}/tokens`, {
      admin: true,
      body: { name: 'watcher', role },
    })
  ).body;
  const controller = new AbortController();
  const response = await fetch(
    `${service.api.url}${base}/events?topics=${encodeURIComponent(topics.join())}`,
    {
      headers: { Authorization: `Bearer ${token}` },
      signal: controller.signal,
    },
  );
  let text = '';
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    if (topics.every((topic) => text.includes(`"topic":"${topic}"`))) break;
  }
  controller.abort();
  return text;
}

test.each(['viewer', 'sender'] as const)(
  'no reply to a %s contains a number, an address, a device token or a key',
  async (role) => {
    const caller = await callerOf(service.api, role);
    const routes = (await loadRoutes()).filter(
      ({ paths, role }) => paths[0]?.startsWith(base) && role === 'viewer',
    );
    expect(routes.length).toBeGreaterThan(35);
    const secrets = {
      ...hidden,
      appKey: app.appKey,
      masterKey: app.masterKey,
      hookKey: app.hookKey,
    };
    const found: string[] = [];
    const check = (operation: string, text: string) => {
      for (const [name, secret] of Object.entries(secrets))
        if (text.includes(secret)) found.push(`${operation}: ${name} in ${text.slice(0, 4000)}`);
    };
    for (const { method, operation, paths } of routes) {
      // The stream is read below. Ending a session returns nothing.
      if (operation === 'streamEvents' || operation === 'endConsoleSession') continue;
      const path = pathOf(paths[0] ?? '');
      expect(path, `${operation} needs data`).not.toContain(':');
      for (const query of queries[operation]?.() ?? ['']) {
        const body = bodies[operation]?.();
        const reply = await caller(method, path + query, body ? { body } : {});
        expect([operation, query, reply.status, reply.body]).toEqual([
          ...[operation, query, method === 'POST' ? expect.any(Number) : 200, expect.any(Object)],
        ]);
        expect(reply.status).toBeLessThan(300);
        check(operation, JSON.stringify(reply.body));
      }
    }
    for (const id of pushIds)
      for (const rest of ['', '/failures', `/devices/${parameters.installation}`])
        check(
          `push${rest}`,
          JSON.stringify(
            (await caller('GET', `/apps/${app.appId}/notifications/${id}${rest}`)).body,
          ),
        );
    const topics = [
      `push:${app.appId}/${parameters.objectId}`,
      `overview:${app.appId}`,
      'breakers',
      'queues',
    ];
    check('streamEvents', await readEvents(topics, role));
    expect(found).toEqual([]);
  },
);
