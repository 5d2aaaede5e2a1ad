import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectDevices } from '../../ops/sandbox/devices/devices.ts';
import { testEnvironment } from '../support/api.ts';
import { startBareChannel } from './support/bare-channel.ts';
import { type ChannelApi, ChannelFixture, eventually, freePort } from './support/channel-fixture.ts';
import { RawClient } from './support/raw-client.ts';

describe('several api processes on one database', () => {
  let world: ChannelFixture;
  let one: ChannelApi;
  let two: ChannelApi;

  beforeAll(async () => {
    world = await ChannelFixture.create();
    one = await world.startApi();
    two = await world.startApi();
  });
  afterAll(() => world.drop());

  const cutListeners = () =>
    world.db.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name = 'carillon listener' AND datname = current_database()`,
    );

  test('a second login closes the first with 4101, in the same process and in another', async () => {
    await world.install(['roaming']);
    const first = await RawClient.login(one.channelUrl, world.appId, 'roaming');
    const second = await RawClient.login(one.channelUrl, world.appId, 'roaming');
    expect(await first.closed).toEqual({ code: 4101, reason: 'DUPLICATED_LOGIN' });
    const third = await RawClient.login(two.channelUrl, world.appId, 'roaming');
    expect(await second.closed).toEqual({ code: 4101, reason: 'DUPLICATED_LOGIN' });
    third.say({});
    await third.hears((frames) => frames.length === 2);
    third.close();
  });

  test('of many logins at once exactly one stays, and it gets the letters', async () => {
    const [id = 0] = await world.install(['crowded']);
    const clients = await Promise.all(
      Array.from({ length: 20 }, (_, i) => RawClient.open(i % 2 ? one.channelUrl : two.channelUrl)),
    );
    for (const client of clients) client.say({ cmd: 'login', appId: world.appId, installationId: 'crowded' });
    const open = () => clients.filter((client) => client.socket.readyState === client.socket.OPEN);
    await eventually(() => open().length === 1);
    const pushId = await world.deposit([id]);
    const [survivor] = open();
    await survivor?.hears(() => survivor.letterIds.includes(String(pushId)));
    for (const client of clients) if (client !== survivor) expect((await client.closed).code).toBe(4101);
    survivor?.close();
  });

  test('one push reaches the devices of both', async () => {
    const here = Array.from({ length: 50 }, (_, i) => `here-${i}`);
    const there = Array.from({ length: 50 }, (_, i) => `there-${i}`);
    const ids = await world.install([...here, ...there]);
    const { appId } = world;
    const fleets = await Promise.all([
      connectDevices({ apiUrl: one.url, appId, installationIds: here }),
      connectDevices({ apiUrl: two.url, appId, installationIds: there }),
    ]);
    const pushId = await world.deposit(ids);
    await Promise.all(fleets.map((fleet) => fleet.received(50)));
    await eventually(async () => (await world.ackedOf(pushId)) === 100);
    for (const fleet of fleets) expect(fleet.counters).toMatchObject({ received: 50, repeated: 0 });
    await Promise.all(fleets.map((fleet) => fleet.close()));
  });

  test('letters and logins are made up for when notices were missed', async () => {
    const [id = 0] = await world.install(['deaf', 'moving']);
    const deaf = await RawClient.login(one.channelUrl, world.appId, 'deaf');
    const stale = await RawClient.login(one.channelUrl, world.appId, 'moving');
    await cutListeners();
    const pushId = await world.deposit([id]);
    const moved = await RawClient.login(two.channelUrl, world.appId, 'moving');
    await deaf.hears(() => deaf.letterIds.length === 1);
    expect(deaf.letterIds).toEqual([String(pushId)]);
    expect((await stale.closed).code).toBe(4101);
    deaf.close();
    moved.close();
  });

  test('notices that nobody of ours wrote are passed over', async () => {
    const [id = 0] = await world.install(['calm']);
    const client = await RawClient.login(one.channelUrl, world.appId, 'calm');
    for (const channel of ['carillon_inbox', 'carillon_session'])
      for (const payload of ['nonsense', '{}', '[1]', 'null', '{"appId":1}'])
        await world.db.query('SELECT pg_notify($1, $2)', [channel, payload]);
    await world.deposit([id]);
    await client.hears(() => client.letterIds.length === 1);
    client.close();
  });

  test('a node that was taken for dead takes its seats again', async () => {
    const [id = 0] = await world.install(['buried']);
    const channel = await startBareChannel(world.database.url, { heartbeatEveryMs: 100 });
    const client = await RawClient.login(channel.url, world.appId, 'buried');
    await world.db.query(
      'DELETE FROM channel_node WHERE id = (SELECT node_id FROM channel_session WHERE installation = $1)',
      [id],
    );
    const pushId = await world.deposit([id]);
    await client.hears(() => client.letterIds.length === 1);
    expect(client.letterIds).toEqual([String(pushId)]);
    await channel.close();
  });

  test('a login at a node that was taken for dead does not wait for its next sign of life', async () => {
    const [id = 0] = await world.install(['early']);
    const { rows } = await world.db.query<{ id: string }>('SELECT id FROM channel_node');
    const channel = await startBareChannel(world.database.url, {});
    const others = rows.map((row) => row.id);
    const buried = await world.db.query('DELETE FROM channel_node WHERE id <> ALL ($1)', [others]);
    expect(buried.rowCount).toBe(1);
    const client = await RawClient.login(channel.url, world.appId, 'early');
    const pushId = await world.deposit([id]);
    await client.hears(() => client.letterIds.includes(String(pushId)));
    await channel.close();
  });

  test('a process that is killed is buried, and its devices are served by the others', async () => {
    const [moved = 0, stranded = 0] = await world.install(['moved', 'stranded']);
    const port = await freePort();
    const env = { ...process.env, ...testEnvironment(world.database.url), PORT: String(port) };
    const child = fork(fileURLToPath(new URL('../../api/main.ts', import.meta.url)), { env });
    await once(child, 'message');
    const doomed = `ws://127.0.0.1:${port}/1.1/channel`;
    const lost = [
      await RawClient.login(doomed, world.appId, 'moved'),
      await RawClient.login(doomed, world.appId, 'stranded'),
    ];
    child.kill('SIGKILL');
    for (const client of lost) expect((await client.closed).code).toBe(1006);
    const back = await RawClient.login(one.channelUrl, world.appId, 'moved');
    const pushId = await world.deposit([moved, stranded]);
    await back.hears(() => back.letterIds.includes(String(pushId)));
    await eventually(async () =>
      /^carillon_channel_connections 1$/m.test(await (await fetch(`${one.url}/metrics`)).text()),
    );
    const seats = () =>
      world.db.query<{ installation: number; node_id: string }>(
        'SELECT installation, node_id FROM channel_session WHERE installation = ANY ($1)',
        [[moved, stranded]],
      );
    const left = (await seats()).rows.find(({ installation }) => installation === stranded);
    await world.db.query(`UPDATE channel_node SET seen_at = now() - interval '61 s' WHERE id = $1`, [
      left?.node_id,
    ]);
    const channel = await startBareChannel(world.database.url, {});
    expect((await seats()).rows.map(({ installation }) => installation)).toEqual([moved]);
    const found = await RawClient.login(channel.url, world.appId, 'stranded');
    await found.hears(() => found.letterIds.includes(String(pushId)));
    back.close();
    await channel.close();
  });

  test('a process that stops says 1001, stores acknowledgements, and leaves nothing behind', async () => {
    const installationIds = Array.from({ length: 30 }, (_, i) => `leaving-${i}`);
    const ids = await world.install(installationIds);
    const stopping = await world.startApi();
    const devices = await connectDevices({ apiUrl: stopping.url, appId: world.appId, installationIds });
    const pushId = await world.deposit(ids);
    await devices.acked(30);
    const startedAtMs = performance.now();
    await stopping.close();
    expect(performance.now() - startedAtMs).toBeLessThan(3000);
    await devices.lost(30);
    expect(new Set(devices.closeCodes)).toEqual(new Set([1001]));
    const { rows } = await world.db.query('SELECT FROM channel_session WHERE installation = ANY ($1)', [ids]);
    expect(rows.length).toBe(0);
    expect(await world.ackedOf(pushId)).toBe(30);
    await devices.close();
  });
});
