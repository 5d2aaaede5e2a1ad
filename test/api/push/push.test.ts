import { beforeAll, describe, expect, test } from 'vitest';
import { listDeviceTypes } from '../../../shared/db/tables/audience.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { useTestService } from '../../support/service.ts';
import { countRows, insertDevices } from '../../support/tables.ts';

let app: App;

const service = useTestService();
beforeAll(async () => {
  app = await service.api.createApp();
});

const send = (path: string, body: unknown, more: object = {}) =>
  service.api.request('POST', path, { app, master: true, body, ...more });
const push = (body: unknown, more: object = {}) => send('/1.1/push', body, more);
const data = { alert: 'Hello' };

describe('POST /1.1/push refuses', () => {
  const refusals: [string, unknown, number, RegExp][] = [
    ['a body that is not JSON', '{"data":', 107, /json dictionary/],
    ['a list', [1], 107, /json dictionary/],
    ['a string', '"x"', 107, /json dictionary/],
    ['a body without data', {}, 1, /data is required/],
    ['data that is not a dictionary', { data: 'x' }, 111, /data/],
    ['an alert that is a number', { data: { alert: 5 } }, 111, /alert/],
    ['a title that is an object', { data: { alert: 'x', title: {} } }, 111, /title/],
    ['silent that is a word', { data: { alert: 'x', silent: 'yes' } }, 111, /silent/],
    ['data with nothing in it', { data: {} }, 1, /needs an alert/],
    ['an empty alert', { data: { alert: '' } }, 1, /needs an alert/],
    [
      'an empty alert for iOS',
      { data: { alert: '' }, where: { deviceType: 'ios' } },
      1,
      /iOS content/,
    ],
    [
      'an empty alert for Android',
      { data: { alert: '' }, where: { deviceType: 'android' } },
      1,
      /Android/,
    ],
    [
      'an empty alert for macOS',
      { data: { alert: '' }, where: { deviceType: 'macos' } },
      1,
      /iOS content/,
    ],
    ['an alert without a text', { data: { alert: { body: '' } } }, 1, /needs an alert/],
    [
      'an alert that the object for ios removes',
      { data: { alert: 'x', ios: { alert: '' } }, where: { deviceType: 'ios' } },
      1,
      /iOS/,
    ],
    ['members of the app only', { data: { k: 'v' } }, 1, /needs an alert/],
    [
      'an empty alert by cql',
      { data: { alert: '' }, cql: "select * from _Installation where deviceType = 'ios'" },
      1,
      /iOS content/,
    ],
    [
      'an empty alert for later',
      { data: { alert: '' }, push_time: '2030-01-01T00:00:00Z' },
      1,
      /needs an alert/,
    ],
    ['where as a number', { data, where: 5 }, 107, /where/],
    ['where as a text that is not JSON', { data, where: '{' }, 107, /where/],
    ['an operator that does not exist', { data, where: { a: { $foo: 1 } } }, 102, /./],
    ['a field name with a quote', { data, where: { "a'b": 1 } }, 105, /./],
    ['a channel with a blank', { data, channels: 'a b' }, 112, /channel/],
    ['channels as a number', { data, channels: 5 }, 112, /channel/],
    ['a notification_id of 17 characters', { data, notification_id: 'a'.repeat(17) }, 111, /16/],
    ['a req_id with a dash', { data, req_id: 'a-b' }, 111, /16/],
    ['a push_time that is not a time', { data, push_time: 'tomorrow' }, 152, /push_time/],
    ['a push_time on 30 February', { data, push_time: '2027-02-30T09:00:00Z' }, 152, /push_time/],
    [
      'a local one',
      { data, push_time: '2027-02-30T09:00:00', push_time_local: true },
      152,
      /push_time/,
    ],
    [
      'an expiry on 31 April',
      { data, expiration_time: '2027-04-31T09:00:00Z' },
      111,
      /expiration_time/,
    ],
    ['a push_time in fifty years', { data, push_time: '2076-01-01T00:00:00Z' }, 152, /ten years/],
    ['an expiration_time that is not a time', { data, expiration_time: 5 }, 111, /expiration_time/],
    [
      'a negative expiration_interval',
      { data, expiration_interval: -5 },
      111,
      /expiration_interval/,
    ],
    [
      'two expiries',
      { data, expiration_interval: 5, expiration_time: '2030-01-01T00:00:00Z' },
      1,
      /exclude each other/,
    ],
    ['another prod', { data, prod: 'staging' }, 111, /prod/],
    ['flow_control as a word', { data, flow_control: 'fast' }, 111, /flow_control/],
    ['a topic that is an object', { data, topic: {} }, 111, /topic/],
    ['invalid cql', { data, cql: 'all of them' }, 300, /select/],
    ['cql that is not a text', { data, cql: { $ne: 1 } }, 300, /text/],
    ['cql of another class', { data, cql: 'select * from _User' }, 300, /_Installation/],
    ['cql with a limit', { data, cql: 'select * from _Installation limit 5' }, 300, /limit/],
    ['cql beside where', { data, where: {}, cql: 'select * from _Installation' }, 1, /exclude/],
    ['cql with a bad name', { data, cql: 'select * from _Installation where _a = 1' }, 105, /key/],
  ];

  test.each(refusals)('%s', async (_name, body, code, message) => {
    const { status, body: reply } = await push(body);
    expect({ status, code: reply.code }).toEqual({ status: 400, code });
    expect(reply.error).toMatch(message);
  });

  test('a body of 4096 bytes, but accepts 4095', async () => {
    const bodyOf = (bytes: number) => {
      const frame = JSON.stringify({ data: { alert: '' }, where: { channels: 'none' } });
      return JSON.stringify({
        data: { alert: 'x'.repeat(bytes - frame.length) },
        where: { channels: 'none' },
      });
    };
    expect((await push(bodyOf(4096))).body).toMatchObject({ code: 116 });
    expect(await push(bodyOf(4095))).toMatchObject({ status: 200 });
  });

  test.each([
    [{ channel: 'news' }, /^"channel" is no member of a push\. Did you mean "channels"\?/],
    [{ channel: 'news', channels: [] }, /channels/],
    [{ query: { a: 1 }, where: null }, /^"query" is no member .* goes to everybody/],
    [{ device_ids: ['x'], where: '' }, /device_ids/],
  ])('unknown members without a target: %j', async (more, error) => {
    expect(await push({ data: { alert: 'x' }, ...more })).toMatchObject({
      status: 400,
      body: { code: 1, error: expect.stringMatching(error) },
    });
    const path = `/console/api/apps/${app.appId}/push/explain`;
    if (!('device_ids' in more))
      expect(
        await service.api.request('POST', path, {
          admin: true,
          body: { data: { alert: 'x' }, ...more },
        }),
      ).toMatchObject({ status: 400 });
  });

  test('the app key, unless the app allows client push', async () => {
    const refused = await service.api.request('POST', '/1.1/push', { app, body: { data } });
    expect(refused).toMatchObject({ status: 403, body: { code: 403 } });
    const open = await service.api.createApp({ forbidClientPush: false });
    const accepted = await service.api.request('POST', '/1.1/push', { app: open, body: { data } });
    expect(accepted).toMatchObject({ status: 200 });
  });

  test('wrong keys with 401 before it reads the body', async () => {
    const wrong = { ...app, masterKey: 'x' };
    const reply = await service.api.request('POST', '/1.1/push', {
      app: wrong,
      master: true,
      body: '{',
    });
    expect(reply).toMatchObject({ status: 401, body: { code: 401, error: 'Unauthorized.' } });
  });

  test('a push that needs a missing APNs profile', async () => {
    const bare = await service.api.createApp();
    await service.addIosInstallations(bare, 1);
    const reply = await service.api.request('POST', '/1.1/push', {
      app: bare,
      master: true,
      body: { data },
    });
    expect(reply).toMatchObject({ status: 400, body: { code: 1 } });
    expect(reply.body.error).toMatch(/APNs profile/);
    const others = { data, where: { deviceType: 'android' } };
    expect(
      await service.api.request('POST', '/1.1/push', { app: bare, master: true, body: others }),
    ).toMatchObject({
      status: 200,
    });
  });

  test('calls above the rate for one minute, but not those of other apps', async () => {
    const slow = await service.api.createApp({ pushCallsPerMinute: 2 });
    const call = () =>
      service.api.request('POST', '/1.1/push', { app: slow, master: true, body: { data } });
    expect([(await call()).status, (await call()).status]).toEqual([200, 200]);
    const refused = await call();
    expect(refused).toMatchObject({ status: 429, body: { code: 429 } });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(50);
    expect((await push({ data })).status).toBe(200);
  });

  test('a refused client does not use up the rate', async () => {
    const slow = await service.api.createApp({ pushCallsPerMinute: 1 });
    await service.api.request('POST', '/1.1/push', { app: slow, body: { data } });
    const reply = await service.api.request('POST', '/1.1/push', {
      app: slow,
      master: true,
      body: { data },
    });
    expect(reply.status).toBe(200);
  });
});

describe('POST /1.1/push accepts', () => {
  test('a push that shows no text but has an effect', async () => {
    const fine = [
      { 'content-available': 1 },
      { alert: '', 'content-available': 1, k: 'v' },
      { badge: 0 },
      { sound: 'ping.caf' },
      { alert: { 'loc-key': 'K' } },
      { silent: true, k: 'v' },
      { action: 'com.example.STATUS', k: 'v' },
      { ios: { alert: 'x' } },
      { android: { alert: 'x' } },
      { aps: { event: 'call' }, 'apns-push-type': 'voip' },
    ];
    for (const content of fine) {
      const reply = await push({ data: content });
      expect(reply, JSON.stringify({ content, reply: reply.body })).toMatchObject({ status: 200 });
    }
  });

  test('the same pushes in a batch as alone', async () => {
    const call = (content: object) => ({
      method: 'POST',
      path: '/1.1/push',
      body: { data: content },
    });
    const requests = [call({ alert: '' }), call({ alert: '', 'content-available': 1 }), call({})];
    const { body } = await send('/1.1/batch', { requests });
    const refused = { error: { code: 1, error: expect.stringContaining('needs an alert') } };
    expect(body).toEqual([
      refused,
      { success: expect.objectContaining({ objectId: expect.any(String) }) },
      refused,
    ]);
  });

  test('custom members only if the app has devices that accept any content', async () => {
    const mixed = await service.api.createApp();
    const call = (body: object) =>
      service.api.request('POST', '/1.1/push', {
        app: mixed,
        master: true,
        body: { data: { k: 'v' }, ...body },
      });
    for (const deviceType of ['android', 'web'])
      await service.api.request('POST', '/1.1/installations', {
        app: mixed,
        body: { deviceType, installationId: `device-${deviceType}` },
      });
    expect(await call({})).toMatchObject({ status: 200 });
    expect(await call({ data: {} })).toMatchObject({ status: 400, body: { code: 1 } });
    expect(await call({ data: { alert: '' } })).toMatchObject({ status: 400, body: { code: 1 } });
    expect(await call({ where: { deviceType: 'ios' } })).toMatchObject({
      status: 400,
      body: { code: 1 },
    });
  });

  test('and for that reads at most a hundred device types, each once', async () => {
    const full = await service.api.createApp();
    await insertDevices(
      service.db,
      full,
      Array.from({ length: 300 }, (_, i) => ({
        deviceType: `type${String(i % 150).padStart(3, '0')}`,
        installationId: `device${i}`,
      })),
    );
    const types = await listDeviceTypes(service.db, full.appId);
    expect(types).toHaveLength(100);
    expect(new Set(types).size).toBe(100);
    expect(await listDeviceTypes(service.db, 'unknown')).toEqual([]);
  });

  test("a vendor's object without an alert, if the push reaches its devices", async () => {
    const hms = {
      message: { android: { notification: { title: 'T', body: 'B', click_action: { type: 3 } } } },
    };
    const hybrid = await service.api.createApp({ hybridPush: true });
    const call = (to: App) =>
      service.api.request('POST', '/1.1/push', { app: to, master: true, body: { data: { hms } } });
    expect(await call(hybrid)).toMatchObject({ status: 200 });
    expect(await call(app)).toMatchObject({ status: 400, body: { code: 1 } });
  });

  test('pushes of known clients, and returns objectId and createdAt', async () => {
    const quirks = [
      { data, where: '{"deviceType":"ios"}', flow_control: 0, limit: 5 },
      { data, channels: ['a', ''], prod: 'dev', expiration_interval: '86400' },
      { data, channels: 'news', push_time: '2015-10-07T00:51:13Z' },
      { data, expiration_time: { __type: 'Date', iso: '2030-10-07T00:51:13.000Z' } },
      { data, where: [{ a: 1 }, { b: 2 }], _notificationChannel: 'sales', apns_team_id: 'TEAM' },
    ];
    for (const body of quirks) {
      const reply = await push(body);
      expect(reply, JSON.stringify(reply.body)).toMatchObject({ status: 200 });
      expect(reply.body.objectId).toMatch(/^[A-Za-z0-9]{16}$/);
      expect(reply.body.createdAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    }
  });

  test('members that known clients add, without a warning', async () => {
    const bodies: object[] = [
      // Parameters of a query, which the Java SDK copies into the body. Without a condition, the
      // push goes to all devices.
      { data, limit: 5, skip: 0, order: '-createdAt', include: 'a', keys: 'b', returnACL: true },
      // The old client for browsers.
      {
        data,
        channels: ['a'],
        appId: app.appId,
        appKey: 'x',
        deviceType: 'web',
        installationId: 'AV-1',
      },
      { data, where: {}, _notificationChannel: 'sales', _anything: 1, push_time: null, cql: null },
      {
        data,
        cql: 'select * from _Installation where a = 1',
        prod: 'prod',
        topic: 't',
        req_id: 'r1',
      },
    ];
    for (const body of bodies) {
      const reply = await push(body);
      expect([reply.status, Object.keys(reply.body)], JSON.stringify(reply.body)).toEqual([
        200,
        ['objectId', 'createdAt'],
      ]);
    }
  });

  test('unknown members, and warns of them', async () => {
    const reply = await push({
      data,
      where: { a: 1 },
      channel: 'news',
      pushTime: 'x',
      'a b': 1,
      zzz: 1,
    });
    expect(reply).toMatchObject({
      status: 200,
      body: {
        objectId: expect.any(String),
        warnings: [
          '"channel" is no member of a push and was ignored. Did you mean "channels"?',
          '"pushTime" is no member of a push and was ignored. Did you mean "push_time"?',
          'A member of the body is no member of a push and was ignored.',
          '"zzz" is no member of a push and was ignored.',
        ],
      },
    });
    const many = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`m${i}`, i]));
    const { warnings } = (await push({ data, where: {}, ...many })).body;
    expect(warnings).toHaveLength(21);
    expect(warnings.at(-1)).toBe('30 more members are unknown and were ignored.');
    const ids = { device_type: 'android', device_ids: ['x'], where: { a: 1 } };
    const listed = await service.api.request('POST', '/1.1/push/devices', {
      app,
      master: true,
      body: { data, ...ids },
    });
    expect(listed.body.warnings).toEqual(['"where" is no member of a push and was ignored.']);
  });

  test('dangerous names such as __proto__ as plain members', async () => {
    const body =
      '{"data":{"alert":"x","constructor":{"prototype":1},"toString":"y"},"where":{"hasOwnProperty":1}}';
    const reply = await push(body);
    expect(reply.status).toBe(200);
    const record = await service.api.request('GET', `/1.1/notifications/${reply.body.objectId}`, {
      app,
    });
    expect(record.body.msg).toEqual({ alert: 'x', constructor: { prototype: 1 }, toString: 'y' });
  });

  test('one of 50 concurrent calls with the same req_id: all get its reply', async () => {
    const before = await countRows(service.db, 'notification', app);
    const replies = await Promise.all(
      Array.from({ length: 50 }, () => push({ data, req_id: 'same' })),
    );
    const ids = new Set(replies.map((reply) => JSON.stringify(reply.body)));
    expect(replies.every((reply) => reply.status === 200)).toBe(true);
    expect(ids.size).toBe(1);
    expect(await countRows(service.db, 'notification', app)).toBe(before + 1);
  });

  test('X-LC-Prod other than 1 as dev, but prod in the body takes precedence', async () => {
    const record = async (body: object, prod: string) => {
      const { body: reply } = await push(body, { headers: { 'X-LC-Prod': prod } });
      return (await service.api.request('GET', `/1.1/notifications/${reply.objectId}`, { app }))
        .body.prod;
    };
    expect(await record({ data }, '0')).toBe('dev');
    expect(await record({ data }, '1')).toBe('prod');
    expect(await record({ data, prod: 'prod' }, '0')).toBe('prod');
  });

  test('a future push_time: the record is scheduled, with its pending entry', async () => {
    const pushTime = new Date(Date.now() + 3_600_000).toISOString();
    const { body } = await push({ data, push_time: pushTime });
    const record = await service.api.request('GET', `/1.1/notifications/${body.objectId}`, { app });
    expect(record.body).toMatchObject({ status: 'scheduled', 'push-time': pushTime });
  });
});

describe('POST /1.1/push/devices', () => {
  const devices = (body: unknown) => send('/1.1/push/devices', body);

  test.each([
    ['no device_type', { device_ids: ['a'], data }, 1],
    ['another device_type', { device_type: 'web', device_ids: ['a'], data }, 111],
    ['no ids', { device_type: 'ios', device_ids: [], data }, 111],
    [
      '501 ids',
      { device_type: 'ios', device_ids: Array.from({ length: 501 }, (_, i) => `t${i}`), data },
      111,
    ],
    ['an id that is an object', { device_type: 'ios', device_ids: [{ $ne: 1 }], data }, 111],
    ['an unknown vendor', { device_type: 'android', vendor: 'nokia', device_ids: ['a'], data }, 1],
    [
      'a vendor without a profile',
      { device_type: 'android', vendor: 'HMS', device_ids: ['a'], data },
      1,
    ],
    ['an empty alert for iOS', { device_type: 'ios', device_ids: ['a'], data: { alert: '' } }, 1],
    ['nothing for Android', { device_type: 'android', device_ids: ['a'], data: {} }, 1],
    ['iOS without a profile', { device_type: 'ios', device_ids: ['a'], data }, 1],
  ])('refuses %s', async (_name, body, code) => {
    expect(await devices(body)).toMatchObject({ status: 400, body: { code } });
  });

  test('accepts 500 installation ids of Android', async () => {
    const ids = Array.from({ length: 500 }, (_, i) => `device-${i}`);
    expect(await devices({ device_type: 'android', device_ids: ids, data })).toMatchObject({
      status: 200,
    });
  });
});

describe('push records', () => {
  test('are found by objectId and by the custom notification_id', async () => {
    const { body } = await push({ data, notification_id: 'spring2026' });
    const byId = await service.api.request('GET', `/1.1/tables/Notifications/${body.objectId}`, {
      app,
    });
    const byName = await service.api.request('GET', '/1.1/notifications/spring2026', { app });
    expect(byId.body).toMatchObject({
      objectId: body.objectId,
      notificationId: 'spring2026',
      msg: data,
      status: 'in-queue',
      'from-service': 'push',
    });
    expect(byName.body).toEqual(byId.body);
  });

  test('of another app or with invented ids are not found', async () => {
    const { body } = await push({ data });
    const other = await service.api.createApp();
    for (const id of [body.objectId, 'nothing', "'; --", 'x'.repeat(300)]) {
      const path = `/1.1/notifications/${encodeURIComponent(id)}`;
      const reply = await service.api.request('GET', path, { app: other });
      expect(reply).toMatchObject({ status: 404, body: { code: 101 } });
    }
  });

  test('are listed for the master key, newest first, with limit, skip and count', async () => {
    const listing = await service.api.createApp();
    const ids: string[] = [];
    for (const alert of ['1', '2', '3']) {
      const body = { data: { alert } };
      ids.unshift(
        (await service.api.request('POST', '/1.1/push', { app: listing, master: true, body })).body
          .objectId,
      );
    }
    const list = async (query: string) =>
      (
        await service.api.request('GET', `/1.1/notifications${query}`, {
          app: listing,
          master: true,
        })
      ).body;
    const idsOf = (body: { results: { objectId: string }[] }) =>
      body.results.map((record) => record.objectId);
    expect(idsOf(await list(''))).toEqual(ids);
    expect(idsOf(await list('?limit=1&skip=1'))).toEqual(ids.slice(1, 2));
    expect(idsOf(await list('?order=createdAt'))).toEqual([...ids].reverse());
    expect(await list('?count=1&limit=0')).toEqual({ results: [], count: 3 });
    expect((await service.api.request('GET', '/1.1/notifications', { app: listing })).status).toBe(
      403,
    );
  });

  test('DELETE cancels an unfinished push and removes its record', async () => {
    const { body } = await push({
      data,
      push_time: new Date(Date.now() + 3_600_000).toISOString(),
    });
    const path = `/1.1/notifications/${body.objectId}`;
    expect((await service.api.request('DELETE', path, { app })).status).toBe(403);
    expect(await service.api.request('DELETE', path, { app, master: true })).toMatchObject({
      status: 200,
      body: {},
    });
    expect((await service.api.request('GET', path, { app })).status).toBe(404);
    expect((await service.api.request('DELETE', path, { app, master: true })).status).toBe(404);
  });
});
