import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { channelLimits } from '../../api/channel/limits.ts';
import { startBareChannel } from './support/bare-channel.ts';
import { ChannelFixture, eventually } from './support/channel-fixture.ts';
import { ProtobufClient } from './support/protobuf-client.ts';
import { RawClient } from './support/raw-client.ts';

describe('a process that stops', () => {
  let fixture: ChannelFixture;

  beforeAll(async () => {
    fixture = await ChannelFixture.create();
    await fixture.startApi();
  });
  afterAll(() => fixture.drop());

  const device = (installationId: string) => ({ appId: fixture.appId, installationId });
  const ackOf = (installationId: string, ids: string[]) => ({
    cmd: 'ack',
    ...device(installationId),
    ackMessage: { ids },
  });

  test('asks devices to reconnect elsewhere, and loses no message', async () => {
    const [id = 0] = await fixture.install(['mover']);
    const [old, next] = await Promise.all([
      startBareChannel(fixture.database.url, {}),
      startBareChannel(fixture.database.url, {}),
    ]);
    const client = await ProtobufClient.login(old.url, device('mover'));
    const acked = await fixture.enqueue([id], { alert: 'acked late' });
    const unacked = await fixture.enqueue([id], { alert: 'never acked here' });
    await client.until(() => client.messageIds.length === 2);
    const closing = old.close();
    await client.untilCommand('goaway');
    const duringMove = await fixture.enqueue([id], { alert: 'in the middle' });
    client.send(ackOf('mover', [String(acked)]));
    await eventually(async () => (await fixture.ackedOf(acked)) === 1);

    const moved = await ProtobufClient.login(next.url, device('mover'));
    client.close();
    await closing;
    expect(client.messageIds).toEqual([acked, unacked].map(String));
    const afterwards = await fixture.enqueue([id], { alert: 'after the move' });
    await moved.until(() => moved.messageIds.length === 3);
    expect(moved.messageIds).toEqual([unacked, duringMove, afterwards].map(String));
    expect(moved.data.map(({ offline }) => offline)).toEqual([true, undefined]);
    moved.send(ackOf('mover', moved.messageIds));
    for (const pushId of [unacked, duringMove, afterwards])
      await eventually(async () => (await fixture.ackedOf(pushId)) === 1);
    moved.close();
    await next.close();
  });

  test('closes devices with 1001 that do not reconnect or know no goaway', async () => {
    await fixture.install(['stays', 'speaks-json']);
    const channel = await startBareChannel(fixture.database.url, { goAwayWithinMs: 300 });
    const staying = await ProtobufClient.login(channel.url, device('stays'));
    const json = await RawClient.login(channel.url, fixture.appId, 'speaks-json');
    const order: string[] = [];
    const closings = [
      staying.untilCommand('goaway').then(() => order.push('asked')),
      json.closed.then(({ code }) => order.push(`json ${code}`)),
      staying.closed.then(({ code }) => order.push(`protobuf ${code}`)),
    ];
    await channel.close();
    await Promise.all(closings);
    expect(order.slice(0, 2).sort()).toEqual(['asked', 'json 1001']);
    expect(order[2]).toBe('protobuf 1001');
    const { rows } = await fixture.db.query(
      'SELECT FROM channel_session s JOIN channel_node n ON n.id = s.node_id',
    );
    expect(rows.length).toBe(0);
  });

  test('is immediately unready, and accepts no further device', async () => {
    await fixture.install(['watcher']);
    const api = await fixture.startApi();
    const client = await ProtobufClient.login(api.channelUrl, device('watcher'));
    expect(await api.request('GET', '/readyz')).toMatchObject({
      status: 200,
      body: { status: 'ready' },
    });
    const closing = api.close();
    await client.untilCommand('goaway');
    expect(await api.request('GET', '/readyz')).toMatchObject({
      status: 503,
      body: { status: 'stopping' },
    });
    await expect(ProtobufClient.open(api.channelUrl)).rejects.toThrow('503');
    client.close();
    await closing;
  });

  test('allows a device that is asked during its login to log in elsewhere', async () => {
    await fixture.install(['early']);
    const [old, next] = await Promise.all([
      startBareChannel(fixture.database.url, { goAwayWithinMs: 300 }),
      startBareChannel(fixture.database.url, {}),
    ]);
    const unauthenticated = await ProtobufClient.open(old.url);
    const closing = old.close();
    await unauthenticated.untilCommand('goaway');
    unauthenticated.send({ cmd: 'login', ...device('early') });
    const moved = await ProtobufClient.login(next.url, device('early'));
    expect((await unauthenticated.closed).code).toBe(1001);
    await closing;
    expect(unauthenticated.received).toEqual([{ cmd: 'goaway' }]);
    moved.send({ cmd: 'echo', i: 1 });
    await moved.untilCommand('echo');
    moved.close();
    await next.close();
  });

  test('stops in time: both waits take a small part of the ten seconds', () => {
    expect(channelLimits.goAwayWithinMs + channelLimits.closeWithinMs).toBeLessThanOrEqual(4000);
  });
});
