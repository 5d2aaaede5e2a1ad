import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Connection } from '../../api/channel/connection.ts';
import { channelLimits } from '../../api/channel/limits.ts';
import { WaitingDevices } from '../../api/channel/waiting-devices.ts';
import { changeDevicesWith, findDevice } from '../support/tables.ts';
import { type ChannelApi, ChannelFixture } from './support/channel-fixture.ts';
import { ProtobufClient } from './support/protobuf-client.ts';
import { RawClient } from './support/raw-client.ts';

/**
 * Tests devices that log in before their installation exists
 * (protocol/channel.md#login-before-the-installation-is-saved).
 */
let fixture: ChannelFixture;
let api: ChannelApi;
let other: ChannelApi;

beforeAll(async () => {
  fixture = await ChannelFixture.create();
  const channelLimits = { tickEveryMs: 50, sweepEveryMs: 100, connectionsPerApp: 20 };
  api = await fixture.startApi({ channelLimits });
  other = await fixture.startApi({ channelLimits: { tickEveryMs: 50, sweepEveryMs: 100 } });
});
afterAll(() => fixture.drop());

const newId = () => `device-${randomUUID()}`;
const waitingDevice = (installationId: string, at = api) =>
  RawClient.login(at.channelUrl, fixture.appId, installationId);

async function appKeys() {
  const { body } = await api.request('GET', `/console/api/apps/${fixture.appId}`, { admin: true });
  return body;
}

/** Saves an installation like an SDK. */
async function save(installationId: string): Promise<string> {
  const body = { deviceType: 'android', installationId };
  const reply = await api.request('POST', '/1.1/installations', { app: await appKeys(), body });
  expect(reply.status).toBe(201);
  return reply.body.objectId;
}

const idOf = async (objectId: string): Promise<number> =>
  (await findDevice(fixture.db, fixture, { objectId })).id;

const messageTo = async (objectId: string) => String(await fixture.enqueue([await idOf(objectId)]));
const got = (client: RawClient, pushId: string) =>
  client.untilFrames(() => client.messageIds.includes(pushId));

describe('a login before the installation is saved', () => {
  test('succeeds, and pushes arrive when the installation exists', async () => {
    const installationId = newId();
    const client = await waitingDevice(installationId);
    expect(client.frames).toEqual(['{}']);
    client.send({ cmd: 'login', appId: fixture.appId, installationId });
    client.send({ cmd: 'ack', ids: ['1'] });
    client.send({});
    await client.untilFrames((frames) => frames.length === 2);
    const objectId = await save(installationId);
    await got(client, await messageTo(objectId));
    await got(client, await messageTo(objectId));
    client.close();
  });

  test.each(['lc.protobuf2.3', 'lc.proto2base64.3'])('succeeds with %s', async (subProtocol) => {
    const installationId = newId();
    const client = await ProtobufClient.login(
      api.channelUrl,
      { appId: fixture.appId, installationId },
      subProtocol,
    );
    expect(client.received.at(0)).toMatchObject({ cmd: 'loggedin' });
    await messageTo(await save(installationId));
    await client.untilCommand('data');
    client.close();
  });

  test('also works for an installation that is not valid yet', async () => {
    const installationId = newId();
    const [id = 0] = await fixture.install([installationId], { valid: false });
    const client = await waitingDevice(installationId);
    await changeDevicesWith(fixture.db, fixture, { id }, { valid: true });
    await got(client, String(await fixture.enqueue([id])));
    client.close();
  });

  test('also works after a deletion, before or during the connection', async () => {
    const installationId = newId();
    const app = await appKeys();
    const remove = (objectId: string) =>
      api.request('DELETE', `/1.1/installations/${objectId}`, { app, master: true });
    const first = await save(installationId);
    await remove(first);
    const client = await waitingDevice(installationId);
    const second = await save(installationId);
    await got(client, await messageTo(second));
    await remove(second);
    const third = await save(installationId);
    await got(client, await messageTo(third));
    client.close();
  });

  test('ends with its app, like a connection with a session', async () => {
    const app = await api.createApp();
    const installationId = newId();
    const body = { deviceType: 'android', installationId };
    await api.request('POST', '/1.1/installations', { app, body });
    const clients = await Promise.all(
      [newId(), installationId].map((id) => RawClient.login(api.channelUrl, app.appId, id)),
    );
    const still = await waitingDevice(newId());
    const path = `/console/api/apps/${app.appId}`;
    const deletion = { admin: true, body: { appId: app.appId } };
    expect((await api.request('DELETE', path, deletion)).status).toBe(200);
    for (const client of clients)
      expect(await client.closed).toEqual({ code: 4100, reason: 'APP_NOT_AVAILABLE' });
    still.send({});
    await still.untilFrames((frames) => frames.length === 2);
    still.close();
  });

  test('is bound to its app and its id: another login is 4103', async () => {
    for (const login of [
      { appId: fixture.appId, installationId: newId() },
      { appId: 'unknownAppUnknownAppUnkn', installationId: 'x' },
      { appId: fixture.appId },
    ]) {
      const client = await waitingDevice(newId());
      client.send({ cmd: 'login', ...login });
      expect((await client.closed).code).toBe(4103);
    }
    const client = await waitingDevice(newId());
    client.socket.send('no JSON');
    expect((await client.closed).code).toBe(4114);
  });

  test('on another connection closes the first with 4101', async () => {
    const installationId = newId();
    const first = await waitingDevice(installationId);
    const second = await waitingDevice(installationId);
    expect((await first.closed).code).toBe(4101);
    await got(second, await messageTo(await save(installationId)));
    second.close();
  });

  test('never replaces a connection that the device has opened elsewhere since', async () => {
    const installationId = newId();
    const stale = await waitingDevice(installationId);
    const [id = 0] = await fixture.install([installationId], { valid: false });
    // The other process learns of the installation first.
    await fixture.db.query(
      `WITH valid AS (UPDATE installation SET valid = true WHERE id = $1)
       INSERT INTO channel_session (app_id, installation, node_id)
       SELECT $2, $1, id FROM channel_node LIMIT 1`,
      [id, fixture.appId],
    );
    const live = await waitingDevice(installationId, other);
    const later = newId();
    const after = await waitingDevice(later);
    // The next device in the queue has its session, so the process has checked the stale device.
    await got(after, await messageTo(await save(later)));
    await got(live, String(await fixture.enqueue([id])));
    expect(stale.socket.readyState).toBe(stale.socket.OPEN);
    expect(stale.messageIds).toEqual([]);
    for (const client of [stale, live, after]) client.close();
  });

  test('counts towards the limit of the app: 1013 above it', async () => {
    const app = await api.createApp();
    const login = (installationId: string) =>
      RawClient.login(api.channelUrl, app.appId, installationId);
    const clients = await Promise.all(Array.from({ length: 20 }, (_, i) => login(`waits-${i}`)));
    const refused = await RawClient.open(api.channelUrl);
    refused.send({ cmd: 'login', appId: app.appId, installationId: 'one-more' });
    expect((await refused.closed).code).toBe(1013);
    const [first] = clients;
    first?.close();
    await first?.closed;
    await expect
      .poll(async () => {
        const client = await RawClient.open(api.channelUrl);
        client.send({ cmd: 'login', appId: app.appId, installationId: 'waits-0' });
        client.send({});
        return Promise.race([
          client.closed.then(({ code }) => code),
          client
            .untilFrames(() => client.frames.includes('{}'))
            .then(
              () => 0,
              () => -1,
            ),
        ]);
      })
      .toBe(0);
    for (const client of clients) client.close();
  });
});

describe('waiting devices', () => {
  const connection = () => Object.create(Connection.prototype) as Connection;

  test('are checked in rotation, by app and within an app, within the limit', () => {
    const waiting = new WaitingDevices();
    for (let app = 0; app < 10; app += 1)
      for (let i = 0; i < 10; i += 1)
        waiting.add(connection(), { appId: `app ${app}`, installationId: String(i) });
    const seen = new Set<string>();
    for (let turn = 0; turn < 10; turn += 1) {
      const lookups = waiting.next(16);
      expect(lookups.length).toBeLessThanOrEqual(8);
      expect(lookups.flatMap(({ installationIds }) => installationIds).length).toBeLessThanOrEqual(
        16,
      );
      for (const { appId, installationIds } of lookups)
        for (const id of installationIds) seen.add(appId + id);
    }
    expect(seen.size).toBe(100);
    expect(channelLimits.waitingPerTick).toBe(1000);
  });

  test('are removed when they close, and one connection waits for a device', () => {
    const waiting = new WaitingDevices();
    const [first, second] = [connection(), connection()];
    const device = { appId: 'app', installationId: 'x' };
    expect(waiting.add(first, device)).toBeUndefined();
    expect(waiting.add(second, device)).toBe(first);
    expect(waiting.remove(first)).toBeUndefined();
    expect(waiting.find(device)).toBe(second);
    expect(waiting.remove(second)).toEqual(device);
    expect([waiting.size, waiting.next(10)]).toEqual([0, []]);
  });
});
