import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { readDevices } from '../support/tables.ts';
import { type ChannelApi, ChannelFixture } from './support/channel-fixture.ts';
import { RawClient } from './support/raw-client.ts';

describe('login', () => {
  let fixture: ChannelFixture;
  let api: ChannelApi;

  beforeAll(async () => {
    fixture = await ChannelFixture.create();
    api = await fixture.startApi();
  });
  afterAll(() => fixture.drop());

  const loginWith = async (members: object) => {
    const client = await RawClient.open(api.channelUrl);
    client.send({ cmd: 'login', ...members });
    return client;
  };

  test('for an unknown app: error frame and close with 4100', async () => {
    const client = await loginWith({ appId: 'unknownAppUnknownAppUnkn', installationId: 'x' });
    expect(await client.closed).toEqual({ code: 4100, reason: 'APP_NOT_AVAILABLE' });
    expect(client.frames).toEqual(['{"cmd":"error","code":4100,"reason":"APP_NOT_AVAILABLE"}']);
  });

  test('with malformed ids: 4103, without a query', async () => {
    for (const members of [
      {},
      { appId: fixture.appId },
      { appId: fixture.appId, installationId: 7 },
      { appId: fixture.appId, installationId: '' },
      { appId: fixture.appId, installationId: 'nul\u0000' },
      { appId: fixture.appId, installationId: '\ud800' },
      { appId: fixture.appId, installationId: 'x'.repeat(300) },
      { appId: "'; DROP TABLE app; --", installationId: 'x' },
      { appId: { $ne: null }, installationId: 'x' },
    ])
      expect((await (await loginWith(members)).closed).code, JSON.stringify(members)).toBe(4103);
  });

  test('is confirmed by the heartbeat after it, and counted', async () => {
    await fixture.install(['counted']);
    const client = await RawClient.login(api.channelUrl, fixture.appId, 'counted');
    expect(client.frames).toEqual(['{}']);
    const { body } = await api.request('GET', '/metrics');
    expect(body).toMatch(/^carillon_channel_connections 1$/m);
    client.send({});
    await client.untilFrames((frames) => frames.length === 2);
    expect(client.frames).toEqual(['{}', '{}']);
    client.close();
  });

  test('refreshes updatedAt, at most once an hour', async () => {
    const longAgo = new Date('2020-01-01T00:00:00.000Z');
    const recently = new Date(Date.now() - 30 * 60_000);
    const [idle = 0] = await fixture.install(['idle'], { updatedAt: longAgo });
    const [busy = 0] = await fixture.install(['busy'], { updatedAt: recently });
    for (const name of ['idle', 'busy'])
      (await RawClient.login(api.channelUrl, fixture.appId, name)).close();
    const devices = await readDevices(fixture.db, fixture);
    const updatedAt = new Map(devices.map((device) => [device.id, device.updatedAt.getTime()]));
    expect(updatedAt.get(idle)).toBeGreaterThan(Date.now() - 60_000);
    expect(updatedAt.get(busy)).toBe(recently.getTime());
  });

  test('again on the same connection: accepted for the same device, 4103 for another', async () => {
    await fixture.install(['me', 'you']);
    const client = await RawClient.login(api.channelUrl, fixture.appId, 'me');
    client.send({ cmd: 'login', appId: fixture.appId, installationId: 'me' });
    client.send({});
    await client.untilFrames((frames) => frames.length === 2);
    client.send({ cmd: 'login', appId: fixture.appId, installationId: 'you' });
    expect((await client.closed).code).toBe(4103);
  });

  test('with invalid frames closes the connection, before and after the login', async () => {
    await fixture.install(['rude']);
    const invalidFrames: [string | Buffer, number][] = [
      ['not json', 4114],
      ['[]', 4114],
      ['null', 4114],
      ['{"cmd":"ack","ids":"all"}', 4114],
      [Buffer.from('{}'), 4114],
      [`{"cmd":"ack","ids":["${'1'.repeat(20_000)}"]}`, 1009],
    ];
    for (const [thing, code] of invalidFrames) {
      const unauthenticated = await RawClient.open(api.channelUrl);
      unauthenticated.socket.send(thing);
      expect((await unauthenticated.closed).code, String(thing).slice(0, 40)).toBe(code);
      const authenticated = await RawClient.login(api.channelUrl, fixture.appId, 'rude');
      authenticated.socket.send(thing);
      expect((await authenticated.closed).code, String(thing).slice(0, 40)).toBe(code);
    }
  });

  test('ignores commands of other services and impossible ids', async () => {
    await fixture.install(['odd']);
    const client = await RawClient.login(api.channelUrl, fixture.appId, 'odd');
    client.send({ cmd: 'session', op: 'open' });
    client.send({ hello: 1 });
    client.send({ cmd: 'ack', ids: ['', '-1', '1e9', 'x', '9999999999999999', 1.5, '__proto__'] });
    client.send({});
    await client.untilFrames((frames) => frames.length === 2);
    client.close();
  });

  test('on another path or with an unknown sub-protocol is refused over HTTP', async () => {
    const statusOf = (url: string, protocol?: string) =>
      new Promise((resolve, reject) => {
        const socket = new WebSocket(url, protocol ?? []);
        socket.on('unexpected-response', (_request, response) => resolve(response.statusCode));
        socket.on('open', () => reject(new Error('it opened')));
      });
    expect(await statusOf(api.channelUrl.replace('channel', 'elsewhere'))).toBe(404);
    expect(await statusOf(api.channelUrl, 'lc.protobuf9.9')).toBe(400);
  });

  test('uses the router, which returns the channel, or 404 for an unknown app', async () => {
    const { body, status } = await api.request(
      'GET',
      `/v1/route?appId=${fixture.appId}&installationId=x&secure=1`,
    );
    expect(status).toBe(200);
    const { host, origin } = new URL(api.url);
    expect(body).toEqual({
      groupId: 'g0',
      groupUrl: origin,
      server: api.channelUrl,
      secondary: api.channelUrl,
      ttl: 3600,
    });
    expect((await api.request('GET', `/2/route?appId=${fixture.appId}`)).body).toEqual({
      ttl: 3600,
      api_server: host,
      push_server: host,
      engine_server: host,
      stats_server: host,
      rtm_router_server: host,
    });
    for (const path of ['/v1/route', '/2/route']) {
      expect((await api.request('GET', `${path}?appId=unknownunknownunknownunk`)).status).toBe(404);
      expect((await api.request('GET', path)).status).toBe(400);
      expect((await api.request('GET', `${path}?appId=a&appId=b`)).status).toBe(400);
    }
  });
});
