import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectDevices } from '../../ops/sandbox/devices/devices.ts';
import { type ChannelApi, ChannelFixture, eventually } from './support/channel-fixture.ts';
import { RawClient } from './support/raw-client.ts';

describe('delivery of messages', () => {
  let fixture: ChannelFixture;
  let api: ChannelApi;

  beforeAll(async () => {
    fixture = await ChannelFixture.create();
    api = await fixture.startApi();
  });
  afterAll(() => fixture.drop());

  test('a connected device gets its message, and the acknowledgement counts', async () => {
    const [id = 0] = await fixture.install(['online']);
    const received: unknown[] = [];
    const devices = await connectDevices({
      apiUrl: api.url,
      appId: fixture.appId,
      installationIds: ['online'],
      onMessage: (_id, content, messageId) => received.push([content, messageId]),
    });
    const pushId = await fixture.enqueue([id], { alert: 'Größe 🎈', z: 1, a: { b: [null] } });
    await devices.acked(1);
    expect(received).toEqual([[{ alert: 'Größe 🎈', z: 1, a: { b: [null] } }, String(pushId)]]);
    await eventually(async () => (await fixture.ackedOf(pushId)) === 1);
    await devices.close();
  });

  test('simulated devices connect although no proxy serves PUBLIC_URL yet', async () => {
    const env = { PUBLIC_URL: 'https://push.example.invalid' };
    const behindProxy = await fixture.startApi({ env });
    await fixture.install(['proxied']);
    const { appId } = fixture;
    const route = await fetch(new URL(`/v1/route?appId=${appId}`, behindProxy.url));
    expect(await route.json()).toMatchObject({
      server: expect.stringMatching(/^wss:\/\/push\.example\.invalid\//),
    });
    const devices = await connectDevices({
      apiUrl: behindProxy.url,
      appId,
      installationIds: ['proxied'],
    });
    expect(devices.counters).toMatchObject({ connected: 1, lost: 0 });
    await devices.close();
  });

  test('members keep their order', async () => {
    const [id = 0] = await fixture.install(['order']);
    const client = await RawClient.login(api.channelUrl, fixture.appId, 'order');
    const pushId = await fixture.enqueue([id], { zebra: 1, alert: 'x', apple: 2 });
    await client.untilFrames((frames) => frames.length === 2);
    expect(client.frames[1]).toBe(
      `{"cmd":"data","ids":["${pushId}"],"msg":[{"zebra":1,"alert":"x","apple":2}]}`,
    );
    client.close();
  });

  test('messages wait for an offline device, oldest first', async () => {
    const [id = 0] = await fixture.install(['away']);
    const pushes: number[] = [];
    for (let i = 0; i < 70; i += 1) pushes.push(await fixture.enqueue([id], { alert: String(i) }));
    const client = await RawClient.login(api.channelUrl, fixture.appId, 'away');
    await client.untilFrames(() => client.messageIds.length >= pushes.length);
    expect(client.messageIds).toEqual(pushes.map(String));
    expect(client.frames.length, 'several messages in one frame').toBeLessThan(10);
    client.close();
  });

  test('an unacknowledged message is sent again on the next connection', async () => {
    const [id = 0] = await fixture.install(['silent']);
    const pushId = await fixture.enqueue([id]);
    for (let i = 0; i < 2; i += 1) {
      const client = await RawClient.login(api.channelUrl, fixture.appId, 'silent');
      await client.untilFrames(() => client.messageIds.length === 1);
      expect(client.messageIds).toEqual([String(pushId)]);
      client.close();
      await client.closed;
    }
    expect(await fixture.ackedOf(pushId)).toBe(0);
  });

  test('a repeated acknowledgement counts once, even for a finished push', async () => {
    const [id = 0] = await fixture.install(['twice']);
    const pushId = await fixture.enqueue([id]);
    await fixture.db.query(
      `UPDATE notification SET state = 'done', finished_at = now() WHERE id = $1`,
      [pushId],
    );
    const ack = {
      cmd: 'ack',
      appId: fixture.appId,
      installationId: 'twice',
      ids: [String(pushId)],
    };
    const client = await RawClient.login(api.channelUrl, fixture.appId, 'twice');
    await client.untilFrames(() => client.messageIds.length === 1);
    client.send(ack);
    client.send(ack);
    await eventually(async () => (await fixture.ackedOf(pushId)) === 1);
    client.close();
    const again = await RawClient.login(api.channelUrl, fixture.appId, 'twice');
    again.send(ack);
    const next = await fixture.enqueue([id]);
    await again.untilFrames(() => again.messageIds.length === 1);
    again.send({ ...ack, ids: [String(next)] });
    await eventually(async () => (await fixture.ackedOf(next)) === 1);
    expect(await fixture.ackedOf(pushId)).toBe(1);
    again.close();
  });

  test('an acknowledgement affects only messages of its own device', async () => {
    const [mine = 0, others = 0] = await fixture.install(['mine', 'others']);
    const pushId = await fixture.enqueue([others]);
    const probe = await fixture.enqueue([mine]);
    const client = await RawClient.login(api.channelUrl, fixture.appId, 'mine');
    client.send({
      cmd: 'ack',
      appId: fixture.appId,
      installationId: 'others',
      ids: [String(pushId), String(probe)],
    });
    await eventually(async () => (await fixture.ackedOf(probe)) === 1);
    expect(await fixture.ackedOf(pushId)).toBe(0);
    client.close();
  });

  test('an expired message is not delivered', async () => {
    const [id = 0] = await fixture.install(['late']);
    await fixture.enqueue([id], { alert: 'old' }, { expiresAt: new Date(Date.now() - 1000) });
    const fresh = await fixture.enqueue([id], { alert: 'new' });
    const client = await RawClient.login(api.channelUrl, fixture.appId, 'late');
    await client.untilFrames(() => client.messageIds.length > 0);
    await fixture.enqueue([id], { alert: 'old' }, { expiresAt: new Date(Date.now() - 1000) });
    const fresher = await fixture.enqueue([id], { alert: 'newest' });
    await client.untilFrames(() => client.messageIds.length > 1);
    expect(client.messageIds).toEqual([String(fresh), String(fresher)]);
    client.close();
  });

  test('sent and acknowledged messages are counted', async () => {
    const counted = async () => {
      const { body } = await api.request('GET', '/metrics');
      return ['sent', 'acknowledged'].map((event) =>
        Number(body.match(`carillon_channel_messages_total{event="${event}"} (\\d+)`)?.[1]),
      );
    };
    const [sent = 0, acknowledged = 0] = await counted();
    const [id = 0] = await fixture.install(['counted']);
    const client = await RawClient.login(api.channelUrl, fixture.appId, 'counted');
    const pushId = await fixture.enqueue([id]);
    await client.untilFrames(() => client.messageIds.length > 0);
    client.send({ cmd: 'ack', ids: [String(pushId)] });
    await eventually(async () => {
      const [s = 0, a = 0] = await counted();
      return s > sent && a > acknowledged;
    });
    client.close();
  });

  test('one push to a thousand devices reaches and counts each once', async () => {
    const installationIds = Array.from({ length: 1000 }, (_, i) => `crowd-${i}`);
    const ids = await fixture.install(installationIds);
    const devices = await connectDevices({
      apiUrl: api.url,
      appId: fixture.appId,
      installationIds,
    });
    const pushId = await fixture.push();
    await Promise.all(
      [ids.slice(0, 500), ids.slice(500)].map((half) => fixture.enqueue(half, {}, { pushId })),
    );
    await devices.acked(1000);
    await eventually(async () => (await fixture.ackedOf(pushId)) === 1000);
    expect(devices.counters).toMatchObject({ received: 1000, repeated: 0, lost: 0 });
    await devices.close();
  });
});
