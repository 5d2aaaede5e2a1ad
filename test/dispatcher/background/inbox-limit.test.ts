import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { InboxLimit } from '../../../dispatcher/background/cleaner.ts';
import {
  acknowledgeMessages,
  evictOldest,
  maxPendingMessages,
} from '../../../shared/db/tables/channel-messages.ts';
import { createMetrics, type Metrics } from '../../../shared/metrics.ts';
import { startBareChannel } from '../../channel/support/bare-channel.ts';
import { ChannelFixture, eventually } from '../../channel/support/channel-fixture.ts';
import { RawClient } from '../../channel/support/raw-client.ts';

describe('inboxes over their limit', () => {
  let fixture: ChannelFixture;
  const metrics = createMetrics();

  beforeAll(async () => {
    fixture = await ChannelFixture.create();
    await fixture.startApi();
  });
  afterAll(() => fixture.drop());
  beforeEach(() => fixture.db.query('TRUNCATE channel_message, channel_inbox'));

  const query = async <T extends object>(text: string, values: unknown[]) =>
    (await fixture.db.query<T>(text, values)).rows;
  const pushesOf = async (installation: number) =>
    (
      await query<{ id: number }>(
        'SELECT push_id AS id FROM channel_inbox WHERE installation = $1 ORDER BY coalesce(position, id)',
        [installation],
      )
    ).map(({ id }) => id);
  const evictedOf = async (pushId: number) =>
    (
      await query<{ displaced: number }>('SELECT displaced FROM notification WHERE id = $1', [
        pushId,
      ])
    )[0]?.displaced;
  const countIn = async ({ channelMessages }: Pick<Metrics, 'channelMessages'>) =>
    (await channelMessages.get()).values.find(({ labels }) => labels.event === 'displaced')
      ?.value ?? 0;

  /** Fills inboxes with messages of other pushes that have no records. */
  const fill = (installations: number[], messages: number) =>
    query(
      `WITH message AS (
         INSERT INTO channel_message (app_id, push_id, digest, content, expires_at)
         SELECT $1, 1e9::bigint + n, '', '{}', now() + interval '1 hour'
           FROM generate_series(1, $3::int) AS n
         RETURNING id, push_id)
       INSERT INTO channel_inbox (app_id, installation, push_id, message_id)
       SELECT $1, unnest($2::bigint[]), push_id, id FROM message ORDER BY push_id`,
      [fixture.appId, installations, messages],
    );

  test('a walk in small steps drops the oldest messages, and records count them', async () => {
    const first = await fixture.enqueue([1, 2, 3]);
    await fill([1, 3], maxPendingMessages - 1);
    const second = await fixture.enqueue([1, 2]);
    const before = await countIn(metrics);
    const walk = new InboxLimit();
    const rows = maxPendingMessages + 10;
    const evicted: number[] = [];
    for (let step = 0; step < 4; step += 1)
      evicted.push(await walk.run({ db: fixture.db, metrics }, rows));
    expect(evicted.filter((messages) => messages > 0)).toEqual([1]);
    expect(await countIn(metrics)).toBe(before + 1);
    const kept = await pushesOf(1);
    expect(kept).toHaveLength(maxPendingMessages);
    expect(kept).not.toContain(first);
    expect(kept.at(-1)).toBe(second);
    expect(await pushesOf(2)).toEqual([first, second]);
    expect(await pushesOf(3)).toHaveLength(maxPendingMessages);
    expect([await evictedOf(first), await evictedOf(second)]).toEqual([1, 0]);
  });

  test('messages are ordered by their sequence, not by their time in the inbox', async () => {
    await fill([1], maxPendingMessages);
    const early = await fixture.enqueue([1]);
    await query('UPDATE channel_inbox SET position = 0 WHERE push_id = $1', [early]);
    expect(await evictOldest(fixture.db, fixture.appId, [1])).toBe(1);
    expect(await evictedOf(early)).toBe(1);
  });

  test('concurrent walks and acknowledgements count each message once', async () => {
    const pushes = [await fixture.enqueue([1, 2]), await fixture.enqueue([1, 2])];
    await fill([1, 2], maxPendingMessages);
    const acks = [1, 2].map((installation) => ({
      appId: fixture.appId,
      installation,
      pushId: pushes[0] ?? 0,
    }));
    const [acked = 0, ...displaced] = await Promise.all([
      acknowledgeMessages(fixture.db, acks),
      ...Array.from({ length: 4 }, () => new InboxLimit().run({ db: fixture.db, metrics })),
    ]);
    // A walk skips messages that are being acknowledged. The next walk includes them.
    const last = await new InboxLimit().run({ db: fixture.db, metrics });
    const removed = displaced.reduce((a, b) => a + b, acked + last);
    for (const installation of [1, 2])
      expect((await pushesOf(installation)).length).toBeLessThanOrEqual(maxPendingMessages);
    expect(removed).toBe(
      2 * (maxPendingMessages + 2) - (await pushesOf(1)).length - (await pushesOf(2)).length,
    );
    const records = await Promise.all(pushes.map(async (pushId) => (await evictedOf(pushId)) ?? 0));
    expect(acked + records.reduce((a, b) => a + b, 0)).toBe(removed);
  });

  test('a device that reconnects before the walk gets the newest messages', async () => {
    const [device = 0] = await fixture.install(['returns']);
    const first = await fixture.enqueue([device]);
    await fill([device], maxPendingMessages);
    const channel = await startBareChannel(fixture.database.url, {});
    const client = await RawClient.login(channel.url, fixture.appId, 'returns');
    await client.untilFrames(() => client.messageIds.length >= maxPendingMessages);
    expect(client.messageIds).not.toContain(String(first));
    client.close();
    await eventually(async () => (await evictedOf(first)) === 1);
    expect(await countIn(channel.metrics)).toBe(1);
    await channel.close();
  });
});
