import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { countSessions, insertDevices } from '../support/tables.ts';
import { startBareChannel } from './support/bare-channel.ts';
import { type ChannelApi, ChannelFixture, eventually } from './support/channel-fixture.ts';
import { RawClient } from './support/raw-client.ts';

describe('limits of a connection', () => {
  let fixture: ChannelFixture;
  let api: ChannelApi;

  beforeAll(async () => {
    fixture = await ChannelFixture.create();
    api = await fixture.startApi();
  });
  afterAll(() => fixture.drop());

  test('a connection without a login in time is closed with 4108', async () => {
    const channel = await startBareChannel(fixture.database.url, {
      loginWithinMs: 100,
      tickEveryMs: 20,
    });
    const client = await RawClient.open(channel.url);
    client.send({});
    expect(await client.closed).toEqual({ code: 4108, reason: 'LOGIN_TIMEOUT' });
    await channel.close();
  });

  test('a device that answers pings stays; a half-open one is closed with 4107', async () => {
    await fixture.install(['alive', 'dead']);
    const limits = { pingAfterMs: 100, pongWithinMs: 100, closeWithinMs: 100, tickEveryMs: 20 };
    const channel = await startBareChannel(fixture.database.url, limits);
    const alive = await RawClient.login(channel.url, fixture.appId, 'alive');
    let pings = 0;
    alive.socket.on('ping', () => {
      pings += 1;
    });
    const dead = new WebSocket(channel.url, { autoPong: false });
    const code = new Promise((resolve) => dead.on('close', resolve));
    dead.on('open', () =>
      dead.send(JSON.stringify({ cmd: 'login', appId: fixture.appId, installationId: 'dead' })),
    );
    expect(await code).toBe(4107);
    await eventually(() => pings > 3);
    expect(alive.socket.readyState).toBe(WebSocket.OPEN);
    await channel.close();
  });

  test('a device that does not read is closed, and its session ends', async () => {
    const [id = 0] = await fixture.install(['frozen']);
    const limits = { pingAfterMs: 100, pongWithinMs: 100, closeWithinMs: 100, tickEveryMs: 20 };
    const channel = await startBareChannel(fixture.database.url, limits);
    const client = await RawClient.login(channel.url, fixture.appId, 'frozen');
    client.socket.pause();
    await eventually(async () => {
      return (await countSessions(fixture.db, [id])) === 0;
    });
    expect((await channel.metrics.channelConnections.get()).values[0]?.value).toBe(0);
    client.socket.terminate();
    await channel.close();
  });

  test('too many frames close the connection', async () => {
    await fixture.install(['flood']);
    const client = await RawClient.login(api.channelUrl, fixture.appId, 'flood');
    for (let i = 0; i < 1000; i += 1) client.send({});
    expect((await client.closed).code).toBe(1008);
    const pinging = await RawClient.login(api.channelUrl, fixture.appId, 'flood');
    for (let i = 0; i < 1000; i += 1) pinging.socket.ping();
    expect([1006, 1008], 'the library may be first').toContain((await pinging.closed).code);
  });

  test('acknowledgements of one app do not drop those of another', async () => {
    const noisy = await api.createApp();
    await insertDevices(fixture.db, noisy, [{ deviceType: 'android', installationId: 'noisy' }]);
    const [id = 0] = await fixture.install(['calm']);
    const calm = await RawClient.login(api.channelUrl, fixture.appId, 'calm');
    const pushId = await fixture.enqueue([id]);
    await calm.untilFrames(() => calm.messageIds.length === 1);
    const flood = await RawClient.login(api.channelUrl, noisy.appId, 'noisy');
    const ids = Array.from({ length: 4000 }, () => '1');
    await fixture.db.transaction(async (tx) => {
      await tx.query('LOCK channel_inbox');
      for (let i = 0; i < 50; i += 1) flood.send({ cmd: 'ack', ids });
      flood.send({});
      await flood.untilFrames((frames) => frames.length === 2);
      calm.send({ cmd: 'ack', ids: calm.messageIds });
      calm.send({});
      await calm.untilFrames((frames) => frames.length === 3);
    });
    await eventually(async () => (await fixture.ackedOf(pushId)) === 1);
    flood.close();
    calm.close();
  });

  test('the window limits unacknowledged messages, and acknowledgements open it', async () => {
    const [id = 0] = await fixture.install(['window']);
    const channel = await startBareChannel(fixture.database.url, {
      unacknowledgedMessages: 10,
      pageMessages: 4,
    });
    const pushes: number[] = [];
    for (let i = 0; i < 15; i += 1) pushes.push(await fixture.enqueue([id]));
    const client = await RawClient.login(channel.url, fixture.appId, 'window');
    await client.untilFrames(() => client.messageIds.length >= 10);
    for (let i = 0; i < 15; i += 1) pushes.push(await fixture.enqueue([id]));
    client.send({});
    await client.untilFrames((frames) => frames.filter((frame) => frame === '{}').length === 2);
    expect(client.messageIds).toEqual(pushes.slice(0, 10).map(String));
    for (let n = 10; n <= 30; n += 10) {
      await client.untilFrames(() => client.messageIds.length >= n);
      client.send({ cmd: 'ack', ids: client.messageIds.slice(n - 10, n) });
    }
    expect(client.messageIds).toEqual(pushes.map(String));
    await eventually(async () => (await fixture.ackedOf(pushes[29] ?? 0)) === 1);
    await channel.close();
  });

  test('a slow reader uses limited memory, and gets all messages in the end', async () => {
    const ids = await fixture.install(['slow', 'fast', 'faster']);
    const limits = {
      bufferedBytes: 256 * 1024,
      unacknowledgedMessages: 10_000,
      pageMessages: 4,
      unsentFrames: 8,
    };
    const channel = await startBareChannel(fixture.database.url, limits);
    const { appId } = fixture;
    const slow = await RawClient.login(channel.url, appId, 'slow');
    const socket = channel.sockets[channel.sockets.length - 1];
    const others = await Promise.all(
      ['fast', 'faster'].map((name) => RawClient.login(channel.url, appId, name)),
    );
    slow.socket.pause();
    const content = { alert: 'x'.repeat(100_000) };
    const maxBytes =
      limits.bufferedBytes + (limits.pageMessages + 1) * JSON.stringify(content).length;
    const pushes: number[] = [];
    for (let i = 0; i < 150; i += 1) pushes.push(await fixture.enqueue(ids, content));
    for (const other of others) {
      await other.untilFrames(() => other.messageIds.length === pushes.length);
      other.send({ cmd: 'ack', ids: other.messageIds });
    }
    await eventually(async () => (await fixture.ackedOf(pushes[149] ?? 0)) === 2);
    expect(socket?.writableLength).toBeGreaterThan(limits.bufferedBytes);
    expect(socket?.writableLength).toBeLessThan(maxBytes);
    for (let i = 0; i < 100; i += 1) slow.send({});
    slow.socket.resume();
    await slow.untilFrames(() => slow.messageIds.length === pushes.length);
    expect(new Set(slow.messageIds)).toEqual(new Set(pushes.map(String)));
    slow.send({ cmd: 'ack', ids: slow.messageIds });
    for (const pushId of pushes)
      await eventually(async () => (await fixture.ackedOf(pushId)) === 3);
    const { rows } = await fixture.db.query(
      'SELECT FROM channel_inbox WHERE installation = ANY ($1)',
      [ids],
    );
    expect(rows).toEqual([]);
    await channel.close();
  });

  test('a device that never reads is closed, and its messages wait', async () => {
    const [id = 0] = await fixture.install(['deaf']);
    const limits = { readWithinMs: 300, closeWithinMs: 100, tickEveryMs: 20, unsentFrames: 8 };
    const channel = await startBareChannel(fixture.database.url, limits);
    const client = await RawClient.login(channel.url, fixture.appId, 'deaf');
    const socket = channel.sockets[channel.sockets.length - 1];
    client.socket.pause();
    const interval = setInterval(() => client.send({}), 50);
    for (let i = 0; i < 100; i += 1) await fixture.enqueue([id], { alert: 'x'.repeat(100_000) });
    await eventually(() => socket?.destroyed ?? false);
    clearInterval(interval);
    await eventually(async () => {
      return (await countSessions(fixture.db, [id])) === 0;
    });
    client.socket.terminate();
    const again = await RawClient.login(channel.url, fixture.appId, 'deaf');
    await again.untilFrames(() => new Set(again.messageIds).size === 100);
    await channel.close();
  });
});
