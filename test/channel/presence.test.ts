import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../ops/local/ports.ts';
import { connectDevices } from '../../ops/sandbox/devices/devices.ts';
import { deleteExpiredMessages } from '../../shared/db/tables/channel-messages.ts';
import { testEnvironment } from '../support/api.ts';
import { areDatabasesSharded } from '../support/database.ts';
import { countSessions } from '../support/tables.ts';
import { startBareChannel } from './support/bare-channel.ts';
import { type ChannelApi, ChannelFixture, eventually } from './support/channel-fixture.ts';
import { RawClient } from './support/raw-client.ts';

/** Removes the node that holds the session of a device. */
async function removeNodeOf({ db }: ChannelFixture, installation: number): Promise<void> {
  const { rows } = await db.query<{ id: string }>(
    'SELECT node_id AS id FROM channel_session WHERE installation = $1',
    [installation],
  );
  await db.query('DELETE FROM channel_node WHERE id = $1', [rows[0]?.id]);
}

describe('several api processes on one database', () => {
  let fixture: ChannelFixture;
  let one: ChannelApi;
  let two: ChannelApi;

  beforeAll(async () => {
    fixture = await ChannelFixture.create();
    one = await fixture.startApi();
    two = await fixture.startApi();
  });
  afterAll(() => fixture.drop());

  /** Ends the LISTEN connections. Returns when they are gone: they connect again after 100 ms. */
  const cutListeners = async () => {
    const listeners = `FROM pg_stat_activity
      WHERE application_name LIKE 'carillon listener%' AND datname = current_database()`;
    const { rowCount } = await fixture.db.query(`SELECT pg_terminate_backend(pid) ${listeners}`);
    expect(rowCount).toBeGreaterThan(0);
    await eventually(async () => (await fixture.db.query(`SELECT ${listeners}`)).rowCount === 0);
  };

  test('a second login closes the first with 4101, also in another process', async () => {
    await fixture.install(['roaming']);
    const first = await RawClient.login(one.channelUrl, fixture.appId, 'roaming');
    const second = await RawClient.login(one.channelUrl, fixture.appId, 'roaming');
    expect(await first.closed).toEqual({ code: 4101, reason: 'DUPLICATED_LOGIN' });
    const third = await RawClient.login(two.channelUrl, fixture.appId, 'roaming');
    expect(await second.closed).toEqual({ code: 4101, reason: 'DUPLICATED_LOGIN' });
    third.send({});
    await third.untilFrames((frames) => frames.length === 2);
    third.close();
  });

  test('of many concurrent logins exactly one stays, and gets the messages', async () => {
    const [id = 0] = await fixture.install(['crowded']);
    const clients = await Promise.all(
      Array.from({ length: 20 }, (_, i) => RawClient.open(i % 2 ? one.channelUrl : two.channelUrl)),
    );
    for (const client of clients)
      client.send({ cmd: 'login', appId: fixture.appId, installationId: 'crowded' });
    const open = () => clients.filter((client) => client.socket.readyState === client.socket.OPEN);
    await eventually(() => open().length === 1);
    const pushId = await fixture.enqueue([id]);
    const [survivor] = open();
    await survivor?.untilFrames(() => survivor.messageIds.includes(String(pushId)));
    for (const client of clients)
      if (client !== survivor) expect((await client.closed).code).toBe(4101);
    survivor?.close();
  });

  test('one push reaches the devices of both processes', async () => {
    const here = Array.from({ length: 50 }, (_, i) => `here-${i}`);
    const there = Array.from({ length: 50 }, (_, i) => `there-${i}`);
    const ids = await fixture.install([...here, ...there]);
    const { appId } = fixture;
    const fleets = await Promise.all([
      connectDevices({ apiUrl: one.url, appId, installationIds: here }),
      connectDevices({ apiUrl: two.url, appId, installationIds: there }),
    ]);
    const pushId = await fixture.enqueue(ids);
    await Promise.all(fleets.map((fleet) => fleet.received(50)));
    await eventually(async () => (await fixture.ackedOf(pushId)) === 100);
    for (const fleet of fleets) expect(fleet.counters).toMatchObject({ received: 50, repeated: 0 });
    await Promise.all(fleets.map((fleet) => fleet.close()));
  });

  test('messages and logins are recovered after missed notifications', async () => {
    const [id = 0] = await fixture.install(['deaf', 'moving']);
    const deaf = await RawClient.login(one.channelUrl, fixture.appId, 'deaf');
    const stale = await RawClient.login(one.channelUrl, fixture.appId, 'moving');
    await cutListeners();
    const pushId = await fixture.enqueue([id]);
    const moved = await RawClient.login(two.channelUrl, fixture.appId, 'moving');
    await deaf.untilFrames(() => deaf.messageIds.length === 1);
    expect(deaf.messageIds).toEqual([String(pushId)]);
    expect((await stale.closed).code).toBe(4101);
    deaf.close();
    moved.close();
  });

  test('a missed message is sent, although an expired one was never acknowledged', async () => {
    const [id = 0] = await fixture.install(['silent']);
    const client = await RawClient.login(one.channelUrl, fixture.appId, 'silent');
    const expired = await fixture.enqueue([id], {}, { expiresAt: new Date(Date.now() + 60_000) });
    await client.untilFrames(() => client.messageIds.length === 1);
    await deleteExpiredMessages(fixture.db, new Date(Date.now() + 3_000_000), 1000);
    await cutListeners();
    const missed = await fixture.enqueue([id]);
    await client.untilFrames(() => client.messageIds.length === 2);
    expect(client.messageIds).toEqual([String(expired), String(missed)]);
    client.close();
  });

  test('notifications with an invalid payload are ignored', async () => {
    const [id = 0] = await fixture.install(['calm']);
    const client = await RawClient.login(one.channelUrl, fixture.appId, 'calm');
    for (const channel of ['carillon_inbox', 'carillon_session'])
      for (const payload of ['nonsense', '{}', '[1]', 'null', '{"appId":1}'])
        await fixture.db.query('SELECT pg_notify($1, $2)', [channel, payload]);
    await fixture.enqueue([id]);
    await client.untilFrames(() => client.messageIds.length === 1);
    client.close();
  });

  test('a removed node restores its sessions', async () => {
    const [id = 0] = await fixture.install(['removed']);
    const channel = await startBareChannel(fixture.database.url, { heartbeatEveryMs: 100 });
    const client = await RawClient.login(channel.url, fixture.appId, 'removed');
    await removeNodeOf(fixture, id);
    const pushId = await fixture.enqueue([id]);
    await client.untilFrames(() => client.messageIds.length === 1);
    expect(client.messageIds).toEqual([String(pushId)]);
    await channel.close();
  });

  test.skipIf(areDatabasesSharded())(
    'a removed node restores its sessions, although the first try fails',
    async () => {
      const [id = 0] = await fixture.install(['refused']);
      const channel = await startBareChannel(fixture.database.url, { heartbeatEveryMs: 50 });
      await RawClient.login(channel.url, fixture.appId, 'refused');
      await fixture.db.query(`
        CREATE SEQUENCE refusals;
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          IF nextval('refusals') = 1 THEN RAISE EXCEPTION 'refused'; END IF;
          RETURN NEW;
        END $$;
        CREATE TRIGGER refuse BEFORE INSERT ON channel_session FOR EACH ROW
          WHEN (NEW.installation = ${id}) EXECUTE FUNCTION refuse()`);
      await removeNodeOf(fixture, id);
      await eventually(async () => (await countSessions(fixture.db, [id])) === 1);
      await fixture.db.query('DROP TRIGGER refuse ON channel_session');
      await channel.close();
    },
  );

  test('a login at a removed node does not wait for the next heartbeat', async () => {
    const [id = 0] = await fixture.install(['early']);
    const { rows } = await fixture.db.query<{ id: string }>('SELECT id FROM channel_node');
    const channel = await startBareChannel(fixture.database.url, {});
    const others = rows.map((row) => row.id);
    const removed = await fixture.db.query('DELETE FROM channel_node WHERE id <> ALL ($1)', [
      others,
    ]);
    expect(removed.rowCount).toBe(1);
    const client = await RawClient.login(channel.url, fixture.appId, 'early');
    const pushId = await fixture.enqueue([id]);
    await client.untilFrames(() => client.messageIds.includes(String(pushId)));
    await channel.close();
  });

  test('a killed process is removed, and the others serve its devices', async () => {
    const [moved = 0, stranded = 0] = await fixture.install(['moved', 'stranded']);
    const port = await freePort();
    const env = { ...process.env, ...testEnvironment(fixture.database.url), PORT: String(port) };
    const child = fork(fileURLToPath(new URL('../../api/main.ts', import.meta.url)), { env });
    await once(child, 'message');
    const killedUrl = `ws://127.0.0.1:${port}/1.1/channel`;
    const lost = [
      await RawClient.login(killedUrl, fixture.appId, 'moved'),
      await RawClient.login(killedUrl, fixture.appId, 'stranded'),
    ];
    child.kill('SIGKILL');
    for (const client of lost) expect((await client.closed).code).toBe(1006);
    const back = await RawClient.login(one.channelUrl, fixture.appId, 'moved');
    const pushId = await fixture.enqueue([moved, stranded]);
    await back.untilFrames(() => back.messageIds.includes(String(pushId)));
    await eventually(async () =>
      /^carillon_channel_connections 1$/m.test(await (await fetch(`${one.url}/metrics`)).text()),
    );
    const sessions = () =>
      fixture.db.query<{ installation: number; node_id: string }>(
        'SELECT installation, node_id FROM channel_session WHERE installation = ANY ($1)',
        [[moved, stranded]],
      );
    const left = (await sessions()).rows.find(({ installation }) => installation === stranded);
    await fixture.db.query(
      `UPDATE channel_node SET seen_at = now() - interval '61 s' WHERE id = $1`,
      [left?.node_id],
    );
    const channel = await startBareChannel(fixture.database.url, {});
    expect((await sessions()).rows.map(({ installation }) => installation)).toEqual([moved]);
    const found = await RawClient.login(channel.url, fixture.appId, 'stranded');
    await found.untilFrames(() => found.messageIds.includes(String(pushId)));
    back.close();
    await channel.close();
  });

  test('a stopping process closes with 1001 and stores acknowledgements', async () => {
    const installationIds = Array.from({ length: 30 }, (_, i) => `leaving-${i}`);
    const ids = await fixture.install(installationIds);
    const stopping = await fixture.startApi();
    const devices = await connectDevices({
      apiUrl: stopping.url,
      appId: fixture.appId,
      installationIds,
    });
    const pushId = await fixture.enqueue(ids);
    await devices.acked(30);
    const startedAtMs = performance.now();
    await stopping.close();
    expect(performance.now() - startedAtMs).toBeLessThan(3000);
    await devices.lost(30);
    expect(new Set(devices.closeCodes)).toEqual(new Set([1001]));
    expect(await countSessions(fixture.db, ids)).toBe(0);
    expect(await fixture.ackedOf(pushId)).toBe(30);
    await devices.close();
  });
});
