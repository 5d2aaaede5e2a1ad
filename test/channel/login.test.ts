import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { type ChannelApi, ChannelFixture } from './support/channel-fixture.ts';
import { RawClient } from './support/raw-client.ts';

describe('login', () => {
  let world: ChannelFixture;
  let api: ChannelApi;

  beforeAll(async () => {
    world = await ChannelFixture.create();
    api = await world.startApi();
  });
  afterAll(() => world.drop());

  const loginWith = async (members: object) => {
    const client = await RawClient.open(api.channelUrl);
    client.say({ cmd: 'login', ...members });
    return client;
  };

  test('of an unknown app: error frame and close with 4100', async () => {
    const client = await loginWith({ appId: 'nobodysAppnobodysAppnobo', installationId: 'x' });
    expect(await client.closed).toEqual({ code: 4100, reason: 'APP_NOT_AVAILABLE' });
    expect(client.frames).toEqual(['{"cmd":"error","code":4100,"reason":"APP_NOT_AVAILABLE"}']);
  });

  test('of an unknown installation: 4103', async () => {
    const client = await loginWith({ appId: world.appId, installationId: 'nobody' });
    expect(await client.closed).toEqual({ code: 4103, reason: 'INVALID_LOGIN' });
    expect(client.frames).toEqual(['{"cmd":"error","code":4103,"reason":"INVALID_LOGIN"}']);
  });

  test('of an installation that is not valid: 4103', async () => {
    await world.install(['opted-out'], { valid: false });
    const client = await loginWith({ appId: world.appId, installationId: 'opted-out' });
    expect((await client.closed).code).toBe(4103);
  });

  test('with members that are nobody’s: 4103, and never a question to the database', async () => {
    for (const members of [
      {},
      { appId: world.appId },
      { appId: world.appId, installationId: 7 },
      { appId: world.appId, installationId: '' },
      { appId: world.appId, installationId: 'nul\u0000' },
      { appId: world.appId, installationId: '\ud800' },
      { appId: world.appId, installationId: 'x'.repeat(300) },
      { appId: "'; DROP TABLE app; --", installationId: 'x' },
      { appId: { $ne: null }, installationId: 'x' },
    ])
      expect((await (await loginWith(members)).closed).code, JSON.stringify(members)).toBe(4103);
  });

  test('is answered by the heartbeat behind it, and counted', async () => {
    await world.install(['counted']);
    const client = await RawClient.login(api.channelUrl, world.appId, 'counted');
    expect(client.frames).toEqual(['{}']);
    const { body } = await api.request('GET', '/metrics');
    expect(body).toMatch(/^carillon_channel_connections 1$/m);
    client.say({});
    await client.hears((frames) => frames.length === 2);
    expect(client.frames).toEqual(['{}', '{}']);
    client.close();
  });

  test('refreshes updatedAt, at most once an hour', async () => {
    const longAgo = new Date('2020-01-01T00:00:00.000Z');
    const recently = new Date(Date.now() - 30 * 60_000);
    const [idle = 0] = await world.install(['idle'], { updatedAt: longAgo });
    const [busy = 0] = await world.install(['busy'], { updatedAt: recently });
    for (const name of ['idle', 'busy']) (await RawClient.login(api.channelUrl, world.appId, name)).close();
    const { rows } = await world.db.query<{ id: number; updated_at: Date }>(
      'SELECT id, updated_at FROM installation WHERE id = ANY ($1)',
      [[idle, busy]],
    );
    const updatedAt = new Map(rows.map((row) => [row.id, row.updated_at.getTime()]));
    expect(updatedAt.get(idle)).toBeGreaterThan(Date.now() - 60_000);
    expect(updatedAt.get(busy)).toBe(recently.getTime());
  });

  test('again on the same connection: as oneself nothing happens, as another 4103', async () => {
    await world.install(['me', 'you']);
    const client = await RawClient.login(api.channelUrl, world.appId, 'me');
    client.say({ cmd: 'login', appId: world.appId, installationId: 'me' });
    client.say({});
    await client.hears((frames) => frames.length === 2);
    client.say({ cmd: 'login', appId: world.appId, installationId: 'you' });
    expect((await client.closed).code).toBe(4103);
  });

  test('frames that are not the protocol cost the connection, before and after the login', async () => {
    await world.install(['rude']);
    const rudeThings: [string | Buffer, number][] = [
      ['not json', 4114],
      ['[]', 4114],
      ['null', 4114],
      ['{"cmd":"ack","ids":"all"}', 4114],
      [Buffer.from('{}'), 4114],
      [`{"cmd":"ack","ids":["${'1'.repeat(20_000)}"]}`, 1009],
    ];
    for (const [thing, code] of rudeThings) {
      const stranger = await RawClient.open(api.channelUrl);
      stranger.socket.send(thing);
      expect((await stranger.closed).code, String(thing).slice(0, 40)).toBe(code);
      const member = await RawClient.login(api.channelUrl, world.appId, 'rude');
      member.socket.send(thing);
      expect((await member.closed).code, String(thing).slice(0, 40)).toBe(code);
    }
  });

  test('commands of other services and impossible ids are passed over', async () => {
    await world.install(['odd']);
    const client = await RawClient.login(api.channelUrl, world.appId, 'odd');
    client.say({ cmd: 'session', op: 'open' });
    client.say({ hello: 1 });
    client.say({ cmd: 'ack', ids: ['', '-1', '1e9', 'x', '9999999999999999', 1.5, '__proto__'] });
    client.say({});
    await client.hears((frames) => frames.length === 2);
    client.close();
  });

  test('an upgrade elsewhere or with an unknown sub-protocol is refused over HTTP', async () => {
    const statusOf = (url: string, protocol?: string) =>
      new Promise((resolve, reject) => {
        const socket = new WebSocket(url, protocol ?? []);
        socket.on('unexpected-response', (_request, response) => resolve(response.statusCode));
        socket.on('open', () => reject(new Error('it opened')));
      });
    expect(await statusOf(api.channelUrl.replace('channel', 'elsewhere'))).toBe(404);
    expect(await statusOf(api.channelUrl, 'lc.protobuf9.9')).toBe(400);
  });

  test('the router leads to the channel, and knows no unknown app', async () => {
    const { body, status } = await api.request(
      'GET',
      `/v1/route?appId=${world.appId}&installationId=x&secure=1`,
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
    expect((await api.request('GET', `/2/route?appId=${world.appId}`)).body).toEqual({
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
