import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { channelLimits } from '../../api/channel/limits.ts';
import { startBareChannel } from './support/bare-channel.ts';
import { ChannelFixture, eventually } from './support/channel-fixture.ts';
import { ProtobufClient } from './support/protobuf-client.ts';
import { RawClient } from './support/raw-client.ts';

describe('a process that stops', () => {
  let world: ChannelFixture;

  beforeAll(async () => {
    world = await ChannelFixture.create();
    await world.startApi();
  });
  afterAll(() => world.drop());

  const device = (installationId: string) => ({ appId: world.appId, installationId });
  const ackOf = (installationId: string, ids: string[]) => ({
    cmd: 'ack',
    ...device(installationId),
    ackMessage: { ids },
  });

  test('asks devices to move, and nothing of what is pushed meanwhile is lost', async () => {
    const [id = 0] = await world.install(['mover']);
    const [old, next] = await Promise.all([
      startBareChannel(world.database.url, {}),
      startBareChannel(world.database.url, {}),
    ]);
    const client = await ProtobufClient.login(old.url, device('mover'));
    const acked = await world.deposit([id], { alert: 'acked late' });
    const unacked = await world.deposit([id], { alert: 'never acked here' });
    await client.until(() => client.letterIds.length === 2);
    const closing = old.close();
    await client.hears('goaway');
    const meanwhile = await world.deposit([id], { alert: 'in the middle' });
    client.say(ackOf('mover', [String(acked)]));
    await eventually(async () => (await world.ackedOf(acked)) === 1);

    const moved = await ProtobufClient.login(next.url, device('mover'));
    client.close();
    await closing;
    expect(client.letterIds).toEqual([acked, unacked].map(String));
    const afterwards = await world.deposit([id], { alert: 'after the move' });
    await moved.until(() => moved.letterIds.length === 3);
    expect(moved.letterIds).toEqual([unacked, meanwhile, afterwards].map(String));
    expect(moved.data.map(({ offline }) => offline)).toEqual([true, undefined]);
    moved.say(ackOf('mover', moved.letterIds));
    for (const pushId of [unacked, meanwhile, afterwards])
      await eventually(async () => (await world.ackedOf(pushId)) === 1);
    moved.close();
    await next.close();
  });

  test('closes with 1001 who does not move, and who cannot be asked at once', async () => {
    await world.install(['stays', 'speaks-json']);
    const channel = await startBareChannel(world.database.url, { goAwayWithinMs: 300 });
    const staying = await ProtobufClient.login(channel.url, device('stays'));
    const json = await RawClient.login(channel.url, world.appId, 'speaks-json');
    const order: string[] = [];
    const goings = [
      staying.hears('goaway').then(() => order.push('asked')),
      json.closed.then(({ code }) => order.push(`json ${code}`)),
      staying.closed.then(({ code }) => order.push(`protobuf ${code}`)),
    ];
    await channel.close();
    await Promise.all(goings);
    expect(order.slice(0, 2).sort()).toEqual(['asked', 'json 1001']);
    expect(order[2]).toBe('protobuf 1001');
    const { rows } = await world.db.query(
      'SELECT FROM channel_session s JOIN channel_node n ON n.id = s.node_id',
    );
    expect(rows.length).toBe(0);
  });

  test('is not ready for others from the first moment, and takes no further device', async () => {
    await world.install(['watcher']);
    const api = await world.startApi();
    const client = await ProtobufClient.login(api.channelUrl, device('watcher'));
    expect(await api.request('GET', '/readyz')).toMatchObject({ status: 200, body: { status: 'ready' } });
    const closing = api.close();
    await client.hears('goaway');
    expect(await api.request('GET', '/readyz')).toMatchObject({ status: 503, body: { status: 'stopping' } });
    await expect(ProtobufClient.open(api.channelUrl)).rejects.toThrow('503');
    client.close();
    await closing;
  });

  test('a device that is asked while its login is under way is free to log in elsewhere', async () => {
    await world.install(['early']);
    const [old, next] = await Promise.all([
      startBareChannel(world.database.url, { goAwayWithinMs: 300 }),
      startBareChannel(world.database.url, {}),
    ]);
    const stranger = await ProtobufClient.open(old.url);
    const closing = old.close();
    await stranger.hears('goaway');
    stranger.say({ cmd: 'login', ...device('early') });
    const moved = await ProtobufClient.login(next.url, device('early'));
    expect((await stranger.closed).code).toBe(1001);
    await closing;
    expect(stranger.heard).toEqual([{ cmd: 'goaway' }]);
    moved.say({ cmd: 'echo', i: 1 });
    await moved.hears('echo');
    moved.close();
    await next.close();
  });

  test('stops in time: both waits together leave most of the ten seconds to the rest', () => {
    expect(channelLimits.goAwayWithinMs + channelLimits.closeWithinMs).toBeLessThanOrEqual(4000);
  });
});
