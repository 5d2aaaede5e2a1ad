import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { enqueueMessage } from '../../shared/db/tables/channel-enqueue.ts';
import {
  acknowledgeMessages,
  deleteExpiredMessages,
} from '../../shared/db/tables/channel-messages.ts';
import { ChannelFixture } from './support/channel-fixture.ts';

describe('messages in the database', () => {
  let fixture: ChannelFixture;

  beforeAll(async () => {
    fixture = await ChannelFixture.create();
    fixture.appId = 'app';
  });
  afterAll(() => fixture.drop());

  const expiresAt = new Date(Date.now() + 3_600_000);
  const enqueue = (pushId: number, installations: number[], alert = 'x') =>
    enqueueMessage(fixture.db, {
      appId: 'app',
      pushId,
      content: { alert },
      expiresAt,
      installations,
    });
  const countOf = async (table: string, pushId: number) =>
    (
      await fixture.db.query<{ n: number }>(
        `SELECT count(*) AS n FROM ${table} WHERE push_id = $1`,
        [pushId],
      )
    ).rows[0]?.n;

  test('a repeated call adds nothing, before and after the acknowledgement', async () => {
    const pushId = await fixture.push();
    expect(await enqueue(pushId, [1, 2, 3])).toBe(3);
    expect(await enqueue(pushId, [3, 2, 1])).toBe(0);
    expect(await acknowledgeMessages(fixture.db, [{ appId: 'app', installation: 2, pushId }])).toBe(
      1,
    );
    expect(await enqueue(pushId, [1, 2, 3])).toBe(0);
    expect(await countOf('channel_inbox', pushId)).toBe(2);
  });

  test('an overlapping call adds only the new recipients', async () => {
    const pushId = await fixture.push();
    expect(await enqueue(pushId, [10, 30, 20])).toBe(3);
    expect(await enqueue(pushId, [25, 35])).toBe(2);
    expect(await enqueue(pushId, [5, 10, 25, 25, 26, 40])).toBe(3);
    expect(await countOf('channel_inbox', pushId)).toBe(8);
    expect(await countOf('channel_message', pushId)).toBe(1);
  });

  test('a device gets one message of a push, even if rendered differently later', async () => {
    const pushId = await fixture.push();
    expect(await enqueue(pushId, [1], 'a')).toBe(1);
    expect(await enqueue(pushId, [1, 2], 'b')).toBe(1);
    expect(await countOf('channel_message', pushId)).toBe(2);
  });

  test('concurrent calls for one push share its message and lose no recipient', async () => {
    const pushId = await fixture.push();
    const parts = Array.from({ length: 20 }, (_, i) =>
      Array.from({ length: 50 }, (_, n) => i * 25 + n + 1),
    );
    const counts = await Promise.all(parts.map((part) => enqueue(pushId, part)));
    expect(counts.reduce((a, b) => a + b, 0)).toBe(525);
    expect(await countOf('channel_inbox', pushId)).toBe(525);
    expect(await countOf('channel_message', pushId)).toBe(1);
  });

  test('concurrent acknowledgements of the same messages count each once', async () => {
    const pushes = await Promise.all([fixture.push(), fixture.push(), fixture.push()]);
    const installations = Array.from({ length: 100 }, (_, i) => i + 1);
    for (const pushId of pushes) await enqueue(pushId, installations);
    const receipts = pushes.flatMap((pushId) =>
      installations.map((installation) => ({ appId: 'app', installation, pushId })),
    );
    const rounds = await Promise.all(
      Array.from({ length: 8 }, (_, i) =>
        acknowledgeMessages(fixture.db, i % 2 ? receipts : receipts.toReversed()),
      ),
    );
    expect(rounds.reduce((a, b) => a + b, 0)).toBe(300);
    for (const pushId of pushes) expect(await fixture.ackedOf(pushId)).toBe(100);
  });

  test('expired messages are deleted in limited passes after ten minutes', async () => {
    const pushId = await fixture.push();
    await enqueue(
      pushId,
      Array.from({ length: 25 }, (_, i) => i + 1),
    );
    const minutesLater = (minutes: number) => new Date(expiresAt.getTime() + minutes * 60_000);
    expect(await deleteExpiredMessages(fixture.db, minutesLater(9), 10)).toBe(0);
    const { rows } = await fixture.db.query<{ n: number }>(
      'SELECT count(*) AS n FROM channel_inbox',
    );
    let passes = 0;
    let expired = 0;
    const count = (messages: number) => {
      expired += messages;
    };
    for (let deleted = 10; deleted === 10; passes += 1) {
      deleted = await deleteExpiredMessages(fixture.db, minutesLater(10), 10, count);
      expect(deleted).toBeLessThanOrEqual(10);
    }
    expect(passes).toBeGreaterThan(2);
    expect(expired).toBe(rows[0]?.n);
    for (const table of ['channel_inbox', 'channel_deposit', 'channel_message'])
      expect(await countOf(table, pushId), table).toBe(0);
  });
});
