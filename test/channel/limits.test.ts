import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { startBareChannel } from './support/bare-channel.ts';
import { type ChannelApi, ChannelFixture, eventually } from './support/channel-fixture.ts';
import { RawClient } from './support/raw-client.ts';

describe('limits of a connection', () => {
  let world: ChannelFixture;
  let api: ChannelApi;

  beforeAll(async () => {
    world = await ChannelFixture.create();
    api = await world.startApi();
  });
  afterAll(() => world.drop());

  test('who does not log in in time is closed with 4108', async () => {
    const channel = await startBareChannel(world.database.url, { loginWithinMs: 100, tickEveryMs: 20 });
    const client = await RawClient.open(channel.url);
    client.say({});
    expect(await client.closed).toEqual({ code: 4108, reason: 'LOGIN_TIMEOUT' });
    await channel.close();
  });

  test('a device that answers pings stays; a half-open one is closed with 4107', async () => {
    await world.install(['alive', 'dead']);
    const limits = { pingAfterMs: 100, pongWithinMs: 100, closeWithinMs: 100, tickEveryMs: 20 };
    const channel = await startBareChannel(world.database.url, limits);
    const alive = await RawClient.login(channel.url, world.appId, 'alive');
    let pings = 0;
    alive.socket.on('ping', () => {
      pings += 1;
    });
    const dead = new WebSocket(channel.url, { autoPong: false });
    const code = new Promise((resolve) => dead.on('close', resolve));
    dead.on('open', () =>
      dead.send(JSON.stringify({ cmd: 'login', appId: world.appId, installationId: 'dead' })),
    );
    expect(await code).toBe(4107);
    await eventually(() => pings > 3);
    expect(alive.socket.readyState).toBe(WebSocket.OPEN);
    await channel.close();
  });

  test('a device that does not even read is cut off, and its seat is free', async () => {
    const [id = 0] = await world.install(['frozen']);
    const limits = { pingAfterMs: 100, pongWithinMs: 100, closeWithinMs: 100, tickEveryMs: 20 };
    const channel = await startBareChannel(world.database.url, limits);
    const client = await RawClient.login(channel.url, world.appId, 'frozen');
    client.socket.pause();
    await eventually(async () => {
      const { rows } = await world.db.query('SELECT FROM channel_session WHERE installation = $1', [id]);
      return rows.length === 0;
    });
    expect((await channel.metrics.channelConnections.get()).values[0]?.value).toBe(0);
    client.socket.terminate();
    await channel.close();
  });

  test('too many frames cost the connection', async () => {
    await world.install(['flood']);
    const client = await RawClient.login(api.channelUrl, world.appId, 'flood');
    for (let i = 0; i < 1000; i += 1) client.say({});
    expect((await client.closed).code).toBe(1008);
    const pinging = await RawClient.login(api.channelUrl, world.appId, 'flood');
    for (let i = 0; i < 1000; i += 1) pinging.socket.ping();
    expect([1006, 1008], 'the library may be first').toContain((await pinging.closed).code);
  });

  test('no more letters are on their way than the window holds; acknowledgements open it', async () => {
    const [id = 0] = await world.install(['window']);
    const channel = await startBareChannel(world.database.url, {
      unacknowledgedMessages: 10,
      pageMessages: 4,
    });
    const pushes: number[] = [];
    for (let i = 0; i < 15; i += 1) pushes.push(await world.deposit([id]));
    const client = await RawClient.login(channel.url, world.appId, 'window');
    await client.hears(() => client.letterIds.length >= 10);
    for (let i = 0; i < 15; i += 1) pushes.push(await world.deposit([id]));
    client.say({});
    await client.hears((frames) => frames.filter((frame) => frame === '{}').length === 2);
    expect(client.letterIds).toEqual(pushes.slice(0, 10).map(String));
    for (let n = 10; n <= 30; n += 10) {
      await client.hears(() => client.letterIds.length >= n);
      client.say({ cmd: 'ack', ids: client.letterIds.slice(n - 10, n) });
    }
    expect(client.letterIds).toEqual(pushes.map(String));
    await eventually(async () => (await world.ackedOf(pushes[29] ?? 0)) === 1);
    await channel.close();
  });

  test('a slow reader costs bounded memory and nobody else, and gets everything once it reads', async () => {
    const ids = await world.install(['slow', 'fast', 'faster']);
    const limits = {
      bufferedBytes: 256 * 1024,
      unacknowledgedMessages: 10_000,
      pageMessages: 4,
      unsentFrames: 8,
    };
    const channel = await startBareChannel(world.database.url, limits);
    const { appId } = world;
    const slow = await RawClient.login(channel.url, appId, 'slow');
    const socket = channel.sockets[channel.sockets.length - 1];
    const others = await Promise.all(
      ['fast', 'faster'].map((name) => RawClient.login(channel.url, appId, name)),
    );
    slow.socket.pause();
    const content = { alert: 'x'.repeat(100_000) };
    const mostBytes = limits.bufferedBytes + (limits.pageMessages + 1) * JSON.stringify(content).length;
    const pushes: number[] = [];
    for (let i = 0; i < 150; i += 1) pushes.push(await world.deposit(ids, content));
    for (const other of others) {
      await other.hears(() => other.letterIds.length === pushes.length);
      other.say({ cmd: 'ack', ids: other.letterIds });
    }
    await eventually(async () => (await world.ackedOf(pushes[149] ?? 0)) === 2);
    expect(socket?.writableLength).toBeGreaterThan(limits.bufferedBytes);
    expect(socket?.writableLength).toBeLessThan(mostBytes);
    for (let i = 0; i < 100; i += 1) slow.say({});
    slow.socket.resume();
    await slow.hears(() => slow.letterIds.length === pushes.length);
    expect(new Set(slow.letterIds)).toEqual(new Set(pushes.map(String)));
    slow.say({ cmd: 'ack', ids: slow.letterIds });
    for (const pushId of pushes) await eventually(async () => (await world.ackedOf(pushId)) === 3);
    const { rows } = await world.db.query('SELECT FROM channel_inbox WHERE installation = ANY ($1)', [ids]);
    expect(rows).toEqual([]);
    await channel.close();
  });

  test('who never reads is cut off, however much it says, and its letters wait for it', async () => {
    const [id = 0] = await world.install(['deaf']);
    const limits = { readWithinMs: 300, closeWithinMs: 100, tickEveryMs: 20, unsentFrames: 8 };
    const channel = await startBareChannel(world.database.url, limits);
    const client = await RawClient.login(channel.url, world.appId, 'deaf');
    const socket = channel.sockets[channel.sockets.length - 1];
    client.socket.pause();
    const talk = setInterval(() => client.say({}), 50);
    for (let i = 0; i < 100; i += 1) await world.deposit([id], { alert: 'x'.repeat(100_000) });
    await eventually(() => socket?.destroyed ?? false);
    clearInterval(talk);
    await eventually(async () => {
      const { rows } = await world.db.query('SELECT FROM channel_session WHERE installation = $1', [id]);
      return rows.length === 0;
    });
    client.socket.terminate();
    const again = await RawClient.login(channel.url, world.appId, 'deaf');
    await again.hears(() => new Set(again.letterIds).size === 100);
    await channel.close();
  });
});
