import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectDevices } from '../../ops/sandbox/devices/devices.ts';
import { type ChannelApi, ChannelFixture, eventually } from './support/channel-fixture.ts';
import { RawClient } from './support/raw-client.ts';

describe('delivery of letters', () => {
  let world: ChannelFixture;
  let api: ChannelApi;

  beforeAll(async () => {
    world = await ChannelFixture.create();
    api = await world.startApi();
  });
  afterAll(() => world.drop());

  test('a connected device gets its letter and the acknowledgement counts', async () => {
    const [id = 0] = await world.install(['online']);
    const heard: unknown[] = [];
    const devices = await connectDevices({
      apiUrl: api.url,
      appId: world.appId,
      installationIds: ['online'],
      onMessage: (_id, content, letterId) => heard.push([content, letterId]),
    });
    const pushId = await world.deposit([id], { alert: 'Größe 🎈', z: 1, a: { b: [null] } });
    await devices.acked(1);
    expect(heard).toEqual([[{ alert: 'Größe 🎈', z: 1, a: { b: [null] } }, String(pushId)]]);
    await eventually(async () => (await world.ackedOf(pushId)) === 1);
    await devices.close();
  });

  test('members arrive in the order they were written', async () => {
    const [id = 0] = await world.install(['order']);
    const client = await RawClient.login(api.channelUrl, world.appId, 'order');
    const pushId = await world.deposit([id], { zebra: 1, alert: 'x', apple: 2 });
    await client.hears((frames) => frames.length === 2);
    expect(client.frames[1]).toBe(
      `{"cmd":"data","ids":["${pushId}"],"msg":[{"zebra":1,"alert":"x","apple":2}]}`,
    );
    client.close();
  });

  test('letters of a device that is away wait for it, oldest first', async () => {
    const [id = 0] = await world.install(['away']);
    const pushes: number[] = [];
    for (let i = 0; i < 70; i += 1) pushes.push(await world.deposit([id], { alert: String(i) }));
    const client = await RawClient.login(api.channelUrl, world.appId, 'away');
    await client.hears(() => client.letterIds.length >= pushes.length);
    expect(client.letterIds).toEqual(pushes.map(String));
    expect(client.frames.length, 'several letters travel in one frame').toBeLessThan(10);
    client.close();
  });

  test('what was not acknowledged comes again with the next connection, with the same id', async () => {
    const [id = 0] = await world.install(['silent']);
    const pushId = await world.deposit([id]);
    for (let i = 0; i < 2; i += 1) {
      const client = await RawClient.login(api.channelUrl, world.appId, 'silent');
      await client.hears(() => client.letterIds.length === 1);
      expect(client.letterIds).toEqual([String(pushId)]);
      client.close();
      await client.closed;
    }
    expect(await world.ackedOf(pushId)).toBe(0);
  });

  test('an acknowledgement counts once, however often it is sent, and for a finished push too', async () => {
    const [id = 0] = await world.install(['twice']);
    const pushId = await world.deposit([id]);
    await world.db.query(`UPDATE notification SET state = 'done', finished_at = now() WHERE id = $1`, [
      pushId,
    ]);
    const ack = { cmd: 'ack', appId: world.appId, installationId: 'twice', ids: [String(pushId)] };
    const client = await RawClient.login(api.channelUrl, world.appId, 'twice');
    await client.hears(() => client.letterIds.length === 1);
    client.say(ack);
    client.say(ack);
    await eventually(async () => (await world.ackedOf(pushId)) === 1);
    client.close();
    const again = await RawClient.login(api.channelUrl, world.appId, 'twice');
    again.say(ack);
    const next = await world.deposit([id]);
    await again.hears(() => again.letterIds.length === 1);
    again.say({ ...ack, ids: [String(next)] });
    await eventually(async () => (await world.ackedOf(next)) === 1);
    expect(await world.ackedOf(pushId)).toBe(1);
    again.close();
  });

  test('an acknowledgement reaches letters of its own device only', async () => {
    const [mine = 0, others = 0] = await world.install(['mine', 'others']);
    const pushId = await world.deposit([others]);
    const probe = await world.deposit([mine]);
    const client = await RawClient.login(api.channelUrl, world.appId, 'mine');
    client.say({
      cmd: 'ack',
      appId: world.appId,
      installationId: 'others',
      ids: [String(pushId), String(probe)],
    });
    await eventually(async () => (await world.ackedOf(probe)) === 1);
    expect(await world.ackedOf(pushId)).toBe(0);
    client.close();
  });

  test('an expired letter is not delivered', async () => {
    const [id = 0] = await world.install(['late']);
    await world.deposit([id], { alert: 'old' }, { expiresAt: new Date(Date.now() - 1000) });
    const fresh = await world.deposit([id], { alert: 'new' });
    const client = await RawClient.login(api.channelUrl, world.appId, 'late');
    await client.hears(() => client.letterIds.length > 0);
    await world.deposit([id], { alert: 'old' }, { expiresAt: new Date(Date.now() - 1000) });
    const fresher = await world.deposit([id], { alert: 'newest' });
    await client.hears(() => client.letterIds.length > 1);
    expect(client.letterIds).toEqual([String(fresh), String(fresher)]);
    client.close();
  });

  test('one push to a thousand devices: each gets it once, and the record counts a thousand', async () => {
    const installationIds = Array.from({ length: 1000 }, (_, i) => `crowd-${i}`);
    const ids = await world.install(installationIds);
    const devices = await connectDevices({ apiUrl: api.url, appId: world.appId, installationIds });
    const pushId = await world.push();
    await Promise.all([ids.slice(0, 500), ids.slice(500)].map((half) => world.deposit(half, {}, { pushId })));
    await devices.acked(1000);
    await eventually(async () => (await world.ackedOf(pushId)) === 1000);
    expect(devices.counters).toMatchObject({ received: 1000, repeated: 0, lost: 0 });
    await devices.close();
  });
});
