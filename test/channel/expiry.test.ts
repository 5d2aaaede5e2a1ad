import { beforeAll, expect, test } from 'vitest';
import type { App } from '../../shared/domain/apps/app.ts';
import { movableClock } from '../support/gateways/apns.ts';
import { useTestService } from '../support/service.ts';
import { insertDevices } from '../support/tables.ts';
import { eventually } from './support/channel-fixture.ts';
import { ProtobufClient } from './support/protobuf-client.ts';

const hourMs = 3_600_000;
const clock = movableClock(Date.now());
let app: App;

const service = useTestService({ clock });
beforeAll(async () => {
  app = await service.api.createApp();
  await service.dispatch({ clock });
  await insertDevices(service.db, app, [{ deviceType: 'android', installationId: 'phone' }]);
});

/** Sends a push and waits for its inbox row. Returns the time of the call. */
async function push(alert: string, timing: object = {}): Promise<number> {
  const { body } = await service.api.request('POST', '/1.1/push', {
    app,
    master: true,
    body: { data: { alert }, ...timing },
  });
  const record = await service.untilDone(app, body.objectId);
  expect(record).toMatchObject({ devices: 1, status: 'done' });
  return Date.parse(body.createdAt);
}

/** Logs in and returns the messages without acknowledging them. */
async function readMessages(): Promise<{ [member: string]: unknown }[]> {
  const url = `${service.api.url.replace('http', 'ws')}/1.1/channel`;
  const client = await ProtobufClient.login(url, { appId: app.appId, installationId: 'phone' });
  // A new message is sent after the pending messages.
  await push('last', { expiration_interval: 1 });
  await client.until(() =>
    client.data.some(({ msg }) => msg.some(({ data }) => data.includes('"last"'))),
  );
  client.close();
  await client.closed;
  clock.moveMs(1000);
  return client.data.flatMap(({ msg }) => msg.map(({ data }) => JSON.parse(data))).slice(0, -1);
}

const countStoredMessages = async () => {
  const { rows } = await service.db.query<{ alert: string }>(
    `SELECT m.content ->> 'alert' AS alert FROM channel_inbox i JOIN channel_message m
        ON m.app_id = i.app_id AND m.id = i.message_id WHERE m.content ->> 'alert' <> 'last'
          ORDER BY i.id`,
  );
  return rows.map(({ alert }) => alert);
};

test('a message expires with its push, by default after seven days', async () => {
  const weekFrom = await push('a week');
  const hourFrom = await push('an hour', { expiration_interval: 3600 });
  expect(await readMessages()).toEqual([
    { alert: 'a week', _expiration_time: new Date(weekFrom + 7 * 24 * hourMs).toISOString() },
    { alert: 'an hour', _expiration_time: new Date(hourFrom + hourMs).toISOString() },
  ]);
  clock.moveMs(hourMs);
  expect((await readMessages()).map(({ alert }) => alert)).toEqual(['a week']);
  expect(await countStoredMessages()).toEqual(['a week', 'an hour']);

  // A dispatcher removes messages ten minutes after their expiry, at its start at the earliest.
  clock.moveMs(10 * 60_000);
  await service.dispatch({ clock });
  await eventually(async () => (await countStoredMessages()).join() === 'a week');
  clock.moveMs(7 * 24 * hourMs);
  expect(await readMessages()).toEqual([]);
  await service.dispatch({ clock });
  await eventually(async () => (await countStoredMessages()).length === 0);
});
