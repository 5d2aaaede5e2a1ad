import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../ops/local/ports.ts';
import { enqueueMessage } from '../../shared/db/tables/channel-enqueue.ts';
import { moveToInboxes } from '../../shared/db/tables/channel-groups.ts';
import {
  acknowledgeMessages,
  deleteExpiredMessages,
} from '../../shared/db/tables/channel-messages.ts';
import { testEnvironment } from '../support/api.ts';
import { countSessions } from '../support/tables.ts';
import { startBareChannel } from './support/bare-channel.ts';
import { type ChannelApi, ChannelFixture, eventually } from './support/channel-fixture.ts';
import { RawClient } from './support/raw-client.ts';

describe('messages of connected devices', () => {
  let fixture: ChannelFixture;
  let api: ChannelApi;

  beforeAll(async () => {
    fixture = await ChannelFixture.create();
    api = await fixture.startApi();
  });
  afterAll(() => fixture.drop());

  const logIn = (name: string, url = api.channelUrl) => RawClient.login(url, fixture.appId, name);
  const countOf = async (table: string, pushId: number) =>
    (
      await fixture.db.query<{ n: number }>(
        `SELECT count(*) AS n FROM ${table} WHERE push_id = $1`,
        [pushId],
      )
    ).rows[0]?.n;
  const groupOf = async (pushId: number) =>
    (
      await fixture.db.query<{ id: number; pending: number[] }>(
        'SELECT id, pending FROM channel_group WHERE push_id = $1',
        [pushId],
      )
    ).rows[0];
  const ack = (client: RawClient, pushIds: number[]) =>
    client.send({ cmd: 'ack', ids: pushIds.map(String) });

  test('share one row until the last acknowledgement; others get inbox rows', async () => {
    const [one = 0, two = 0, away = 0] = await fixture.install(['one', 'two', 'away']);
    const clients = [await logIn('one'), await logIn('two')];
    const pushId = await fixture.enqueue([away, two, one]);
    expect((await groupOf(pushId))?.pending).toEqual([one, two]);
    expect(await countOf('channel_inbox', pushId)).toBe(1);
    for (const [i, client] of clients.entries()) {
      await client.untilFrames(() => client.messageIds.length === 1);
      ack(client, [pushId]);
      await eventually(async () => (await fixture.ackedOf(pushId)) === i + 1);
    }
    expect(await countOf('channel_group', pushId)).toBe(0);
    for (const client of clients) client.close();
  });

  test('are stored once for concurrent calls for the same devices', async () => {
    const names = Array.from({ length: 20 }, (_, i) => `same-${i}`);
    const ids = await fixture.install(names);
    const clients = await Promise.all(names.map((name) => logIn(name)));
    const pushId = await fixture.push();
    const message = { appId: fixture.appId, pushId, content: { alert: 'x' }, installations: ids };
    const expiresAt = new Date(Date.now() + 3_600_000);
    const counts = await Promise.all(
      Array.from({ length: 3 }, () => enqueueMessage(fixture.db, { ...message, expiresAt })),
    );
    expect(counts.reduce((sum, n) => sum + n, 0)).toBe(names.length);
    for (const client of clients) {
      await client.untilFrames(() => client.messageIds.length === 1);
      ack(client, [pushId]);
      ack(client, [pushId]);
    }
    await eventually(async () => (await countOf('channel_group', pushId)) === 0);
    expect(await fixture.ackedOf(pushId)).toBe(names.length);
    for (const client of clients) client.close();
  });

  test('without an acknowledgement move to the inbox and keep their order', async () => {
    const [id = 0] = await fixture.install(['leaves']);
    const client = await logIn('leaves');
    const first = await fixture.enqueue([id], { alert: 'first' });
    await client.untilFrames(() => client.messageIds.length === 1);
    client.close();
    await eventually(async () => {
      return (await countSessions(fixture.db, [id])) === 0;
    });
    const second = await fixture.enqueue([id], { alert: 'second' });
    expect(await countOf('channel_group', first)).toBe(1);
    await moveToInboxes(fixture.db, 0);
    expect(await countOf('channel_group', first)).toBe(0);
    const again = await logIn('leaves');
    await again.untilFrames(() => again.messageIds.length === 2);
    expect(again.messageIds).toEqual([first, second].map(String));
    again.close();
  });

  test('of a group are sent before newer messages after another login', async () => {
    const [id = 0] = await fixture.install(['returns']);
    const stale = await logIn('returns');
    const first = await fixture.enqueue([id], { alert: 'first' });
    await stale.untilFrames(() => stale.messageIds.length === 1);
    const again = await logIn('returns');
    const second = await fixture.enqueue([id], { alert: 'second' });
    await again.untilFrames(() => again.messageIds.length === 2);
    expect(again.messageIds).toEqual([first, second].map(String));
    ack(again, [second, first]);
    for (const pushId of [first, second])
      await eventually(async () => (await fixture.ackedOf(pushId)) === 1);
    again.close();
  });

  test('are acknowledged once, whether their group is unknown, known or deleted', async () => {
    const ids = await fixture.install(['a', 'b', 'c']);
    const clients = await Promise.all(['a', 'b', 'c'].map((name) => logIn(name)));
    const pushId = await fixture.enqueue(ids);
    const groupId = (await groupOf(pushId))?.id;
    const [a = 0, b = 0, c = 0] = ids;
    const of = (installation: number, group?: number) => ({
      appId: fixture.appId,
      installation,
      pushId,
      groupId: group,
    });
    expect(await acknowledgeMessages(fixture.db, [of(a), of(b, groupId), of(b, groupId)])).toBe(2);
    await moveToInboxes(fixture.db, 0);
    expect(await acknowledgeMessages(fixture.db, [of(a), of(b, groupId), of(c, groupId)])).toBe(1);
    expect(
      await acknowledgeMessages(
        fixture.db,
        ids.map((id) => of(id, groupId)),
      ),
    ).toBe(0);
    expect(await fixture.ackedOf(pushId)).toBe(3);
    for (const client of clients) client.close();
  });

  test('are neither lost nor repeated by concurrent acknowledgements and moves', async () => {
    const names = Array.from({ length: 50 }, (_, i) => `race-${i}`);
    const ids = await fixture.install(names);
    const clients = await Promise.all(names.map((name) => logIn(name)));
    const pushes = [await fixture.enqueue(ids), await fixture.enqueue(ids)];
    for (const client of clients) await client.untilFrames(() => client.messageIds.length === 2);
    const moves = Promise.all(Array.from({ length: 3 }, () => moveToInboxes(fixture.db, 0)));
    for (const client of clients) ack(client, pushes);
    await moves;
    for (const pushId of pushes) {
      await eventually(async () => (await fixture.ackedOf(pushId)) === names.length);
      expect(await countOf('channel_group', pushId)).toBe(0);
      expect(await countOf('channel_inbox', pushId)).toBe(0);
    }
    for (const client of clients) client.close();
  });

  test('are sent again to unacknowledged devices after a process is killed', async () => {
    const names = Array.from({ length: 10 }, (_, i) => `killed-${i}`);
    const ids = await fixture.install(names);
    const port = await freePort();
    const env = { ...process.env, ...testEnvironment(fixture.database.url), PORT: String(port) };
    const child = fork(fileURLToPath(new URL('../../api/main.ts', import.meta.url)), { env });
    await once(child, 'message');
    const url = `ws://127.0.0.1:${port}/1.1/channel`;
    const clients = await Promise.all(names.map((name) => logIn(name, url)));
    const pushId = await fixture.enqueue(ids);
    for (const client of clients) await client.untilFrames(() => client.messageIds.length === 1);
    for (const client of clients.slice(0, 4)) ack(client, [pushId]);
    await eventually(async () => (await fixture.ackedOf(pushId)) === 4);
    child.kill('SIGKILL');
    for (const client of clients) await client.closed;

    const back = await Promise.all(names.map((name) => logIn(name)));
    const probe = await fixture.enqueue(ids);
    for (const [i, client] of back.entries()) {
      await client.untilFrames(() => client.messageIds.includes(String(probe)));
      expect(client.messageIds).toEqual((i < 4 ? [probe] : [pushId, probe]).map(String));
      ack(client, [pushId, probe]);
    }
    for (const id of [pushId, probe])
      await eventually(async () => (await fixture.ackedOf(id)) === names.length);
    for (const client of back) client.close();
  });

  test('come from the inboxes if a process has too many waiting groups', async () => {
    const [id = 0] = await fixture.install(['busy']);
    const channel = await startBareChannel(fixture.database.url, { groupsWaiting: 0 });
    const client = await logIn('busy', channel.url);
    const pushes: number[] = [];
    for (let i = 0; i < 5; i += 1) pushes.push(await fixture.enqueue([id]));
    await client.untilFrames(() => client.messageIds.length === pushes.length);
    expect(client.messageIds).toEqual(pushes.map(String));
    client.close();
    await channel.close();
  });

  test('get inbox rows for a process of the previous version', async () => {
    const [id = 0] = await fixture.install(['older']);
    const client = await logIn('older');
    await fixture.db.query('UPDATE channel_node SET takes_groups = false');
    const pushId = await fixture.enqueue([id]);
    expect(await countOf('channel_inbox', pushId)).toBe(1);
    await client.untilFrames(() => client.messageIds.length === 1);
    await fixture.db.query('UPDATE channel_node SET takes_groups = true');
    client.close();
  });

  test('in an expired group are deleted and not moved', async () => {
    const [id = 0] = await fixture.install(['expires']);
    const client = await logIn('expires');
    const expiresAt = new Date(Date.now() - 1000);
    const [gone, kept] = [
      await fixture.enqueue([id], {}, { expiresAt }),
      await fixture.enqueue([id], {}, { expiresAt }),
    ];
    await fixture.db.query(
      "UPDATE channel_group SET created_at = now() - interval '1 day' WHERE push_id = $1",
      [gone],
    );
    expect(await moveToInboxes(fixture.db, 3_600_000)).toBe(1);
    for (const table of ['channel_group', 'channel_inbox'])
      expect(await countOf(table, gone)).toBe(0);
    expect(await countOf('channel_group', kept)).toBe(1);
    await deleteExpiredMessages(fixture.db, new Date(Date.now() + 11 * 60_000), 1000);
    expect(await countOf('channel_group', kept)).toBe(0);
    client.close();
  });
});
