import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  acknowledgeMessages,
  deleteExpiredMessages,
  enqueueMessage,
} from '../../shared/db/tables/channel/messages.ts';
import { ChannelFixture } from './support/channel-fixture.ts';

describe('letters in the database', () => {
  let world: ChannelFixture;

  beforeAll(async () => {
    world = await ChannelFixture.create();
    world.appId = 'app';
  });
  afterAll(() => world.drop());

  const expiresAt = new Date(Date.now() + 3_600_000);
  const deposit = (pushId: number, installations: number[], alert = 'x') =>
    enqueueMessage(world.db, { appId: 'app', pushId, content: { alert }, expiresAt, installations });
  const countOf = async (table: string, pushId: number) =>
    (await world.db.query<{ n: number }>(`SELECT count(*) AS n FROM ${table} WHERE push_id = $1`, [pushId]))
      .rows[0]?.n;

  test('a repeated deposit deposits nothing, before and after the acknowledgement', async () => {
    const pushId = await world.push();
    expect(await deposit(pushId, [1, 2, 3])).toBe(3);
    expect(await deposit(pushId, [3, 2, 1])).toBe(0);
    expect(await acknowledgeMessages(world.db, [{ appId: 'app', installation: 2, pushId }])).toBe(1);
    expect(await deposit(pushId, [1, 2, 3])).toBe(0);
    expect(await countOf('channel_inbox', pushId)).toBe(2);
  });

  test('a deposit that overlaps earlier ones adds only who is new', async () => {
    const pushId = await world.push();
    expect(await deposit(pushId, [10, 30, 20])).toBe(3);
    expect(await deposit(pushId, [25, 35])).toBe(2);
    expect(await deposit(pushId, [5, 10, 25, 25, 26, 40])).toBe(3);
    expect(await countOf('channel_inbox', pushId)).toBe(8);
    expect(await countOf('channel_message', pushId)).toBe(1);
  });

  test('a device gets one letter of a push, also when it is rendered differently the second time', async () => {
    const pushId = await world.push();
    expect(await deposit(pushId, [1], 'a')).toBe(1);
    expect(await deposit(pushId, [1, 2], 'b')).toBe(1);
    expect(await countOf('channel_message', pushId)).toBe(2);
  });

  test('deposits of one push at the same time share its message and lose nobody', async () => {
    const pushId = await world.push();
    const parts = Array.from({ length: 20 }, (_, i) => Array.from({ length: 50 }, (_, n) => i * 25 + n + 1));
    const counts = await Promise.all(parts.map((part) => deposit(pushId, part)));
    expect(counts.reduce((a, b) => a + b, 0)).toBe(525);
    expect(await countOf('channel_inbox', pushId)).toBe(525);
    expect(await countOf('channel_message', pushId)).toBe(1);
  });

  test('acknowledgements of the same letters at the same time count each once', async () => {
    const pushes = await Promise.all([world.push(), world.push(), world.push()]);
    const installations = Array.from({ length: 100 }, (_, i) => i + 1);
    for (const pushId of pushes) await deposit(pushId, installations);
    const receipts = pushes.flatMap((pushId) =>
      installations.map((installation) => ({ appId: 'app', installation, pushId })),
    );
    const rounds = await Promise.all(
      Array.from({ length: 8 }, (_, i) =>
        acknowledgeMessages(world.db, i % 2 ? receipts : receipts.toReversed()),
      ),
    );
    expect(rounds.reduce((a, b) => a + b, 0)).toBe(300);
    for (const pushId of pushes) expect(await world.ackedOf(pushId)).toBe(100);
  });

  test('expired letters are deleted in bounded passes, ten minutes after their time', async () => {
    const pushId = await world.push();
    await deposit(
      pushId,
      Array.from({ length: 25 }, (_, i) => i + 1),
    );
    const minutesLater = (minutes: number) => new Date(expiresAt.getTime() + minutes * 60_000);
    expect(await deleteExpiredMessages(world.db, minutesLater(9), 10)).toBe(0);
    let passes = 0;
    for (let deleted = 10; deleted === 10; passes += 1) {
      deleted = await deleteExpiredMessages(world.db, minutesLater(10), 10);
      expect(deleted).toBeLessThanOrEqual(10);
    }
    expect(passes).toBeGreaterThan(2);
    for (const table of ['channel_inbox', 'channel_deposit', 'channel_message'])
      expect(await countOf(table, pushId), table).toBe(0);
  });
});
