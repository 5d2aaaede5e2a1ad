import { beforeAll, expect, test } from 'vitest';
import { type PlannedPage, pageSize, readPages } from '../../../dispatcher/planning/pages.ts';
import { scanSettings } from '../../../dispatcher/startup/open-deps.ts';
import { systemClock } from '../../../shared/clock.ts';
import { Database } from '../../../shared/db/pool.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import type { PushOrder } from '../../../shared/domain/pushes/push.ts';
import type { Push } from '../../../shared/domain/pushes/record.ts';
import { targetPageQuery } from '../../../shared/query/targets/targets.ts';
import { openTestDatabase } from '../../support/database.ts';
import { insertDevices, readDevices } from '../../support/tables.ts';

const devices = 61_500;
const app = { appId: 'app', options: { installationValidityDays: 90 } } as App;
const { db, url } = await openTestDatabase();

beforeAll(async () => {
  await db.query(
    `INSERT INTO app (app_id, name, edition, plan, secrets)
      VALUES ($1, 'A', 'home', 'commercial', '')`,
    [app.appId],
  );
  await insertDevices(
    db,
    app,
    Array.from({ length: 2 * devices }, (_, i) => ({
      deviceType: 'ios',
      deviceToken: `t${i}`,
      channels: [i % 2 === 0 ? 'even' : 'odd'],
    })),
  );
});
const pagesOf = (
  channels: string[],
  plannedThrough: number,
  planned = 0,
): AsyncGenerator<PlannedPage> => {
  const pushOrder = {
    target: { kind: 'query', where: {}, channels },
    redrive: null,
    languages: null,
  };
  const push = { appId: app.appId, pushOrder, plannedThrough, devices: planned } as unknown as Push;
  return readPages({ database: db, app, push, clock: systemClock });
};

async function idsOf(channel: string): Promise<number[]> {
  const found = (await readDevices(db, app)).filter(({ channels }) => channels.includes(channel));
  return found.map(({ id }) => id);
}

const idsIn = ({ page }: PlannedPage): number[] => [...page.idsByRoutingKey.values()].flat();

test('devices that match a condition are read once each, without transaction', async () => {
  const expected = await idsOf('even');
  const read: number[] = [];
  const sizes: number[] = [];
  const lasts: boolean[] = [];
  const ends: boolean[] = [];
  for await (const planned of pagesOf(['even'], 0)) {
    expect(db.use.used).toBe(0);
    read.push(...idsIn(planned));
    sizes.push(planned.page.size);
    lasts.push(planned.isLast);
    ends.push(planned.endsRead);
  }
  expect(read).toEqual(expected);
  expect(sizes).toEqual([1000, ...Array(5).fill(10_000), 10_000, 500]);
  expect(lasts).toEqual([...Array(7).fill(false), true]);
  expect(ends).toEqual([true, ...Array(4).fill(false), true, false, true]);
});

test('a statement reads as many devices as the push has, up to 200,000', async () => {
  const [firstId = 0] = await idsOf('even');
  const readsWith = async (planned: number): Promise<number[]> => {
    const reads = [0];
    for await (const { page, endsRead } of pagesOf(['even'], firstId, planned)) {
      reads.push((reads.pop() ?? 0) + page.size);
      if (endsRead) reads.push(0);
    }
    return reads.slice(0, -1);
  };
  expect(await readsWith(1000)).toEqual([50_000, 11_499]);
  expect(await readsWith(55_000)).toEqual([55_000, 6499]);
  expect(await readsWith(1_000_000)).toEqual([61_499]);
});

test('reading continues after the cursor, and ends with an empty page', async () => {
  const all = await idsOf('odd');
  const rest: number[] = [];
  for await (const planned of pagesOf(['odd'], all.at(-10_001) ?? 0)) rest.push(...idsIn(planned));
  expect(rest).toEqual(all.slice(-10_000));
  const behind: PlannedPage[] = [];
  for await (const planned of pagesOf(['odd'], all.at(-1) ?? 0)) behind.push(planned);
  expect(behind.map(({ page, isLast }) => [page.size, isLast])).toEqual([[0, true]]);
});

test('the devices of a page are grouped by hashing, not by sorting', async () => {
  await db.query('ANALYZE installation');
  const target = { kind: 'query', where: {}, channels: null };
  const pushOrder = { target, redrive: null, languages: null } as unknown as PushOrder;
  const page = { afterId: 1000, nowMs: systemClock.now(), size: pageSize };
  const { text, values } = targetPageQuery(app, pushOrder, page);
  const scans = new Database({ url, applicationName: 'scans', settings: scanSettings });
  const { rows } = await scans.query<{ 'QUERY PLAN': string }>(
    `EXPLAIN (COSTS OFF) ${text}`,
    values,
  );
  await scans.close();
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  expect(plan).toContain('HashAggregate');
  expect(plan).not.toContain('Sort');
});
