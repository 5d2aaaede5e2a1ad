import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { query } from '../../../shared/db/query.ts';
import { maxTokensOfDevice, maxTypesOfApp } from '../../../shared/db/tables/live-activities.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { startTestApi } from '../../support/api.ts';
import { useTestService } from '../../support/service.ts';

/** Calls for Live Activities: bodies, tokens, timestamps, channels, dry runs. */

const service = useTestService();

const start = {
  event: 'start',
  attributesType: 'OrderAttributes',
  attributes: { orderId: '1' },
  contentState: { stage: 1 },
  alert: { title: 'On its way' },
};
const update = { event: 'update', contentState: { stage: 2 } };
const token = () => randomBytes(64).toString('hex');

async function anApp(devices = 1): Promise<{ app: App; ids: string[] }> {
  const app = await service.api.createApp();
  await service.addApnsProfile(app);
  await service.addIosInstallations(app, devices);
  const ids = await query(service.db).column<string>(
    'SELECT object_id FROM installation WHERE app_id = $1 ORDER BY id',
    [app.appId],
  );
  return { app, ids };
}

const call = (app: App, path: string, body: object, method: 'POST' | 'DELETE' = 'POST') =>
  service.api.request(method, `/1.1/liveActivities${path}`, { app, master: true, body });
const get = (app: App, path: string) =>
  service.api.request('GET', `/1.1/liveActivities${path}`, { app, master: true });
const report = (app: App, body: object) =>
  service.api.request('POST', '/1.1/liveActivities/tokens', { app, body });

const count = (app: App, table: string) =>
  query(service.db).number(`SELECT count(*) AS n FROM ${table} WHERE app_id = $1`, [app.appId]);

const tables = [
  'notification',
  'live_activity_token',
  'live_activity_clock',
  'live_activity_channel',
  'push_batch',
];
const counts = (app: App) => Promise.all(tables.map((table) => count(app, table)));

describe('bodies', () => {
  const refused: [string, string, object, string][] = [
    ['an event of another call', '', { ...start, event: 'update' }, 'event'],
    ['no alert', '', { ...start, alert: undefined }, 'alert'],
    ['an alert without text', '', { ...start, alert: { sound: 'default' } }, 'alert'],
    ['a text as alert', '', { ...start, alert: 'Hello' }, 'alert'],
    ['an unknown member of the alert', '', { ...start, alert: { title: 'a', badge: 1 } }, 'alert'],
    ['a localized text without key', '', { ...start, alert: { title: { key: 'a' } } }, 'title'],
    ['no type', '', { ...start, attributesType: undefined }, 'attributesType'],
    ['a type that Swift cannot have', '', { ...start, attributesType: 'a b' }, 'attributesType'],
    ['no attributes', '', { ...start, attributes: undefined }, 'attributes'],
    ['attributes that are a list', '', { ...start, attributes: [] }, 'attributes'],
    ['no state', '', { ...start, contentState: undefined }, 'contentState'],
    ['a number as stale date', '', { ...start, staleDate: 1_790_000_000 }, 'staleDate'],
    ['a day without time', '', { ...start, timestamp: '2026-12-01' }, 'timestamp'],
    ['a time before 1970', '', { ...start, staleDate: '1969-12-31T00:00:00Z' }, 'staleDate'],
    ['a time too far ahead', '', { ...start, staleDate: '9999-01-01T00:00:00Z' }, 'staleDate'],
    [
      'a dismissal before 1970',
      '/a1',
      { event: 'end', dismissalDate: '1969-12-31T00:00:00Z' },
      'dismissalDate',
    ],
    ['a text as score', '', { ...start, relevanceScore: '1' }, 'relevanceScore'],
    ['priority 1', '', { ...start, priority: 1 }, 'priority'],
    ['priority 7', '', { ...start, priority: 7 }, 'priority'],
    [
      'both inputs',
      '',
      { ...start, inputPushToken: true, inputPushChannel: 'AAAA' },
      'inputPushChannel',
    ],
    ['a dismissal date', '', { ...start, dismissalDate: '2026-12-01T00:00:00Z' }, 'dismissalDate'],
    ['an unknown member', '', { ...start, contentstate: {} }, 'contentstate'],
    ['a text as condition', '', { ...start, where: 1 }, 'where'],
    ['a wrong environment', '', { ...start, prod: 'test' }, 'prod'],
    ['a text as dry run', '', { ...start, dryRun: 'true' }, 'dryRun'],
    ['an update without event', '/a1', { contentState: {} }, 'event'],
    ['an update with event start', '/a1', { ...update, event: 'start' }, 'event'],
    ['an update without state', '/a1', { event: 'update' }, 'contentState'],
    [
      'an update that dismisses',
      '/a1',
      { ...update, dismissalDate: '2026-12-01T00:00:00Z' },
      'dismissalDate',
    ],
    ['an update with a condition', '/a1', { ...update, where: {} }, 'where'],
    ['a malformed activity id', '/a%20b', update, 'activityId'],
    ['a large state', '/a1', { ...update, contentState: { a: 'x'.repeat(4096) } }, '4096'],
    ['a channel without storage', '/channels', {}, 'storage'],
    ['another storage', '/channels', { storage: 'all' }, 'storage'],
  ];

  test.each(refused)('refuse %s', async (_, path, body, member) => {
    const { app } = await anApp();
    const before = await counts(app);
    const reply = await call(app, path, body);
    expect(reply, JSON.stringify(reply.body)).toMatchObject({ status: 400 });
    expect(reply.body.error).toContain(member);
    expect(await counts(app)).toEqual(before);
  });

  const tokenBodies: [string, object, string][] = [
    ['no token', { token: undefined }, 'token'],
    ['a token that is not hexadecimal', { token: 'xyz' }, 'token'],
    ['a token of 513 digits', { token: 'a'.repeat(513) }, 'token'],
    ['neither id nor type', { activityId: undefined }, 'activityId'],
    ['id and type', { attributesType: 'A' }, 'activityId'],
    ['no installation', { objectId: undefined }, 'installationId'],
    ['both ids of the installation', { installationId: 'a' }, 'installationId'],
    ['an id with a slash', { activityId: 'a/b' }, 'activityId'],
    ['an id with a percent sign', { activityId: 'a%2Fb' }, 'activityId'],
    ['a dot as id', { activityId: '.' }, 'activityId'],
    ['two dots as id', { activityId: '..' }, 'activityId'],
    ['the id of the path of tokens', { activityId: 'tokens' }, 'activityId'],
    ['the id of the path of channels', { activityId: 'channels' }, 'activityId'],
    ['an id of 129 characters', { activityId: 'a'.repeat(129) }, 'activityId'],
    ['an unknown member', { kind: 'update' }, 'kind'],
  ];

  test.each(tokenBodies)('of tokens refuse %s', async (_, changed, member) => {
    const { app, ids } = await anApp();
    const reply = await report(app, {
      objectId: ids[0],
      token: token(),
      activityId: 'a1',
      ...changed,
    });
    expect(reply, JSON.stringify(reply.body)).toMatchObject({ status: 400 });
    expect(reply.body.error).toContain(member);
    expect(await count(app, 'live_activity_token')).toBe(0);
  });

  test('warn of members that an end does not use', async () => {
    const { app } = await anApp();
    const reply = await call(app, '/a1', { event: 'end', staleDate: '2027-01-01T00:00:00Z' });
    expect(reply).toMatchObject({ status: 200 });
    expect(reply.body.warnings).toEqual([
      '"staleDate" has no effect with the event end and was ignored.',
    ]);
  });

  test('need the master key', async () => {
    const { app } = await anApp();
    for (const path of ['', '/a1', '/channels', '/channels/AAAA'])
      expect(
        (await service.api.request('POST', `/1.1/liveActivities${path}`, { app, body: start }))
          .status,
        path,
      ).toBe(403);
  });
});

describe('tokens', () => {
  test('have one row per activity, the newest', async () => {
    const { app, ids } = await anApp();
    for (const own of ['AA', 'bb'])
      expect(await report(app, { objectId: ids[0], token: own, activityId: 'a1' })).toMatchObject({
        status: 200,
        body: { kind: 'update', installation: ids[0], expiresAt: expect.any(String) },
      });
    const stored = await query(service.db).column(
      'SELECT token FROM live_activity_token WHERE app_id = $1',
      [app.appId],
    );
    expect(stored).toEqual(['bb']);
  });

  test('belong to one device', async () => {
    const { app, ids } = await anApp(2);
    for (const objectId of ids) await report(app, { objectId, token: 'cc', attributesType: 'A' });
    expect(await count(app, 'live_activity_token')).toBe(1);
  });

  test('need an Apple device that exists', async () => {
    const { app } = await anApp();
    expect(
      await report(app, { objectId: 'doesNotExist', token: 'aa', activityId: 'a1' }),
    ).toMatchObject({ status: 404, body: { code: 101 } });
    await service.api.request('POST', '/1.1/installations', {
      app,
      body: { deviceType: 'android', installationId: 'android1' },
    });
    const reply = await report(app, { installationId: 'android1', token: 'aa', activityId: 'a1' });
    expect(reply).toMatchObject({ status: 400 });
    expect(reply.body.error).toContain('Apple');
  });

  test('are limited per device and per app', async () => {
    const { app, ids } = await anApp(2);
    const insert = (kind: string, n: number, device: number) =>
      service.db.query(
        `INSERT INTO live_activity_token (app_id, kind, name, installation, token)
         SELECT $1, $2, 't' || n, (SELECT id FROM installation WHERE app_id = $1 AND object_id = $3),
           $3 || n FROM generate_series(1, $4::int) n`,
        [app.appId, kind, ids[device], n],
      );
    await insert('update', maxTokensOfDevice, 0);
    const over = await report(app, { objectId: ids[0], token: 'aa', activityId: 'more' });
    expect(over).toMatchObject({ status: 400, body: { code: 154 } });
    expect(await report(app, { objectId: ids[0], token: 'aa', activityId: 't1' })).toMatchObject({
      status: 200,
    });
    await insert('start', maxTypesOfApp, 0);
    const type = await report(app, { objectId: ids[1], token: 'bb', attributesType: 'More' });
    expect(type).toMatchObject({ status: 400, body: { code: 154 } });
    expect(
      await report(app, { objectId: ids[1], token: 'bb', attributesType: 't1' }),
    ).toMatchObject({ status: 200 });
  });

  test('go with the installation and with the app', async () => {
    const { app, ids } = await anApp(2);
    for (const objectId of ids)
      await report(app, { objectId, token: token(), attributesType: 'A' });
    await service.api.request('DELETE', `/1.1/installations/${ids[0]}`, { app, master: true });
    expect(await count(app, 'live_activity_token')).toBe(1);
    await call(app, '/a1', update);
    await call(app, '/channels', { storage: 'last' });
    await service.api.request('DELETE', `/console/api/apps/${app.appId}`, {
      admin: true,
      body: { appId: app.appId },
    });
    expect(await counts(app)).toEqual(tables.map(() => 0));
  });
});

describe('timestamps', () => {
  const stampsOf = (app: App) =>
    query(service.db).column<number>(
      `SELECT (request #>> '{data,aps,timestamp}')::bigint FROM notification WHERE app_id = $1 ORDER BY id`,
      [app.appId],
    );

  test('of concurrent updates grow in the order of the pushes', async () => {
    const { app } = await anApp();
    const replies = await Promise.all(Array.from({ length: 30 }, () => call(app, '/a1', update)));
    expect(replies.every(({ status }) => status === 200)).toBe(true);
    const stamps = await stampsOf(app);
    expect(stamps).toHaveLength(30);
    expect(new Set(stamps).size).toBe(30);
    expect(stamps).toEqual([...stamps].sort((a, b) => a - b));
  });

  test('are the same for all processes, also after a restart', async () => {
    const { app } = await anApp();
    const later = '2099-01-01T00:00:00Z';
    await call(app, '/a1', { ...update, timestamp: later });
    const other = await startTestApi({ databaseUrl: service.databaseUrl });
    try {
      const send = (body: object) =>
        other.request('POST', '/1.1/liveActivities/a1', { app, master: true, body });
      expect(await send({ ...update, timestamp: later })).toMatchObject({ status: 400 });
      expect(await send(update)).toMatchObject({ status: 200 });
    } finally {
      await other.close();
    }
    expect(await stampsOf(app)).toEqual([0, 1].map((n) => Date.parse(later) / 1000 + n));
  });

  test('that are not newer are refused, and store nothing', async () => {
    const { app } = await anApp();
    const at = '2026-12-01T10:00:00Z';
    expect(await call(app, '/a1', { ...update, timestamp: at })).toMatchObject({ status: 200 });
    for (const timestamp of [at, '2026-12-01T09:59:59Z']) {
      const reply = await call(app, '/a1', { ...update, timestamp });
      expect(reply).toMatchObject({ status: 400 });
      expect(reply.body.error).toContain('2026-12-01T10:00:00.000Z');
    }
    expect(await call(app, '/a2', { ...update, timestamp: at })).toMatchObject({ status: 200 });
    expect(await count(app, 'notification')).toBe(2);
    await call(app, '/a1', update);
    const stamps = await stampsOf(app);
    expect(stamps.at(-1)).toBeGreaterThan(Date.parse(at) / 1000);
  });

  test('of a repeated request do not move the clock', async () => {
    const { app } = await anApp();
    const body = { ...update, req_id: 'same1', timestamp: '2026-12-01T10:00:00Z' };
    const [first, second] = [await call(app, '/a1', body), await call(app, '/a1', body)];
    expect(second).toMatchObject({ status: 200, body: { objectId: first.body.objectId } });
  });
});

describe('channels', () => {
  test('are created, listed, read and deleted', async () => {
    const { app } = await anApp();
    const created = await call(app, '/channels', { storage: 'last' });
    expect(created).toMatchObject({ status: 201, body: { channel: expect.any(String) } });
    const { channel } = created.body;
    expect(Object.keys(created.body)).toEqual(['channel']);
    const { results } = (await get(app, '/channels')).body;
    expect(results).toContainEqual({ channel, storage: 'last', createdAt: expect.any(String) });
    const urlSafe = channel.replaceAll('+', '-').replaceAll('/', '_');
    for (const name of [encodeURIComponent(channel), urlSafe])
      expect((await get(app, `/channels/${name}`)).body).toMatchObject({
        channel,
        storage: 'last',
        prod: 'prod',
      });
    expect(await call(app, `/channels/${encodeURIComponent(channel)}`, {}, 'DELETE')).toMatchObject(
      { status: 200, body: {} },
    );
    expect((await get(app, `/channels/${urlSafe}`)).status).toBe(404);
    expect((await get(app, '/channels')).body.results).not.toContainEqual(
      expect.objectContaining({ channel }),
    );
  });

  test('with a slash can be named by any path', async () => {
    const { app } = await anApp();
    for (const channel of ['ab/cd+ef/gh+01234567==', '0123456789abcdef//ab', 'Zm9+/w==']) {
      service.apns.channels.of('com.example.app').set(channel, 1);
      for (const name of [
        encodeURIComponent(channel),
        channel.replaceAll('/', '_').replaceAll('+', '-'),
      ])
        expect((await get(app, `/channels/${name}`)).body).toMatchObject({
          channel,
          storage: 'last',
        });
    }
  });

  test('that were created elsewhere show their storage after they were read', async () => {
    const { app } = await anApp();
    const channel = 'Zm9yZWlnbi1jaGFubmVs';
    service.apns.channels.of('com.example.app').set(channel, 1);
    const listed = async () =>
      (await get(app, '/channels')).body.results.find(
        (one: { channel: string }) => one.channel === channel,
      );
    expect(await listed()).toEqual({ channel, storage: null, createdAt: null });
    expect((await get(app, `/channels/${channel}`)).body).toMatchObject({ storage: 'last' });
    expect(await listed()).toMatchObject({ channel, storage: 'last' });
  });

  const failures: [number, string, number, string][] = [
    [400, 'CannotCreateChannelConfig', 400, '10,000'],
    [400, 'FeatureNotEnabled', 400, 'FeatureNotEnabled'],
    [403, 'TopicMismatch', 400, 'TopicMismatch'],
    [403, 'InvalidProviderToken', 400, 'InvalidProviderToken'],
    [404, 'BadPath', 400, 'BadPath'],
    [429, 'TooManyRequests', 429, 'throttles'],
    [500, 'InternalServerError', 503, 'InternalServerError'],
    [503, 'Service Unavailable', 503, 'Service Unavailable'],
  ];
  test.each(failures)('after the answer %i %s get %i', async (status, reason, expected, text) => {
    const { app } = await anApp();
    service.apns.channels.misbehaviours.add({ kind: 'answer', status, reason });
    const reply = await call(app, '/channels', { storage: 'none' });
    expect(reply, JSON.stringify(reply.body)).toMatchObject({ status: expected });
    expect(reply.body.error).toContain(text);
    expect(await count(app, 'live_activity_channel')).toBe(0);
    service.apns.channels.misbehaviours.clear();
  });

  test('that may exist after a lost answer are not created again', async () => {
    const { app } = await anApp();
    const before = service.apns.channels.calls.length;
    service.apns.channels.misbehaviours.add({ kind: 'disconnect', count: 1 });
    const reply = await call(app, '/channels', { storage: 'none' });
    expect(reply).toMatchObject({ status: 503 });
    expect(reply.body.error).toContain('list the channels');
    expect(service.apns.channels.calls.length - before).toBe(1);
  });

  test('that were created without a readable id may exist', async () => {
    const { app } = await anApp();
    service.apns.channels.misbehaviours.add({ kind: 'answer', status: 201, reason: '', count: 1 });
    const reply = await call(app, '/channels', { storage: 'none' });
    expect(reply).toMatchObject({ status: 503 });
    expect(reply.body.error).toContain('list the channels');
  });

  test('need a profile', async () => {
    const app = await service.api.createApp();
    expect(await call(app, '/channels', { storage: 'none' })).toMatchObject({ status: 400 });
    expect(await get(app, '/channels')).toMatchObject({ status: 400 });
  });
});

describe('dry runs', () => {
  test('of all calls change nothing', async () => {
    const { app, ids } = await anApp(2);
    await report(app, { objectId: ids[0], token: token(), attributesType: 'OrderAttributes' });
    await call(app, '/a1', update);
    const { channel } = (await call(app, '/channels', { storage: 'none' })).body;
    const foreign = 'Zm9yZWlnbg==';
    service.apns.channels.of('com.example.app').set(foreign, 1);
    const before = await counts(app);
    const channels = service.apns.channels.of('com.example.app').size;
    const requests = service.apns.total;
    const calls: [string, object, 'POST' | 'DELETE'][] = [
      ['', start, 'POST'],
      ['/a1', update, 'POST'],
      ['/new', { event: 'end' }, 'POST'],
      ['/channels', { storage: 'last' }, 'POST'],
      [`/channels/${encodeURIComponent(channel)}`, update, 'POST'],
      [`/channels/${encodeURIComponent(foreign)}`, update, 'POST'],
      [`/channels/${encodeURIComponent(channel)}`, {}, 'DELETE'],
      ['/tokens', { objectId: ids[1], token: token(), activityId: 'a1' }, 'POST'],
      ['/tokens', { objectId: ids[1], token: token(), attributesType: 'A' }, 'POST'],
    ];
    for (const [path, body, method] of calls) {
      const reply = await call(app, path, { ...body, dryRun: true }, method);
      expect(reply, `${path} ${JSON.stringify(reply.body)}`).toMatchObject({
        status: 200,
        body: { dryRun: true },
      });
      expect(await counts(app), path).toEqual(before);
    }
    expect(service.apns.channels.of('com.example.app').size).toBe(channels);
    expect(service.apns.total).toBe(requests);
    const inQuery = await call(
      app,
      `/channels/${encodeURIComponent(channel)}?dryRun=true`,
      {},
      'DELETE',
    );
    expect(inQuery.body).toMatchObject({ dryRun: true, request: { method: 'DELETE' } });
    const ofOperator = await service.api.request(
      'DELETE',
      `/console/api/apps/${app.appId}/liveActivities/channels/${encodeURIComponent(channel)}`,
      { admin: true, body: { dryRun: true } },
    );
    expect(ofOperator.body).toMatchObject({ dryRun: true, request: { method: 'DELETE' } });
    expect(service.apns.channels.of('com.example.app').has(channel)).toBe(true);
  });

  test('show devices with and without a token, and the payload', async () => {
    const { app, ids } = await anApp(3);
    await report(app, { objectId: ids[0], token: token(), attributesType: 'OrderAttributes' });
    const { body } = await call(app, '', { ...start, dryRun: true });
    expect(body).toMatchObject({
      devices: 1,
      withToken: 1,
      withoutToken: 2,
      liveActivity: { event: 'start', attributesType: 'OrderAttributes' },
      connectors: { apns: { devices: 1, payload: { aps: { event: 'start' } } } },
    });
    expect(body.connectors.apns.payloadBytes).toBe(
      JSON.stringify(body.connectors.apns.payload).length,
    );
    expect(body.limits.join(' ')).toContain(
      'Devices that have no token for it and get nothing: 2.',
    );
  });

  test('show a payload that is nested as deeply as a body may be', async () => {
    const { app, ids } = await anApp();
    await report(app, { objectId: ids[0], token: token(), attributesType: 'OrderAttributes' });
    const contentState = JSON.parse(`${'{"a":'.repeat(98)}{}${'}'.repeat(98)}`);
    expect(await call(app, '', { ...start, contentState, dryRun: true })).toMatchObject({
      status: 200,
    });
  });

  test('refuse what the call refuses', async () => {
    const { app } = await anApp();
    await call(app, '/a1', { ...update, timestamp: '2026-12-01T10:00:00Z' });
    const old = { ...update, timestamp: '2026-12-01T10:00:00Z', dryRun: true };
    expect(await call(app, '/a1', old)).toMatchObject({ status: 400 });
    const large = { ...update, contentState: { a: 'x'.repeat(5000) }, dryRun: true };
    expect(await call(app, '/a1', large)).toMatchObject({ status: 400 });
  });
});
