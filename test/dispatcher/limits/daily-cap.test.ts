import { beforeAll, describe, expect, test, vi } from 'vitest';
import { deleteOldUsage, grantRecipients } from '../../../shared/db/tables/usage.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { beginPush } from '../../support/gateways/app-gateway.ts';
import { useTestService } from '../../support/service.ts';
import { insertUsage } from '../../support/tables.ts';

const service = useTestService();
beforeAll(async () => {
  await Promise.all([service.dispatch(), service.dispatch()]);
});

/** Allows for a busy machine. */
const timeoutMs = 120_000;
vi.setConfig({ testTimeout: timeoutMs });

async function appWithIos(count: number, dailyRecipientCap: number) {
  const app = await service.api.createApp({ dailyRecipientCap });
  await service.addApnsProfile(app);
  return { app, tokens: await service.addIosInstallations(app, count) };
}

const begin = (app: App, body: object = {}) => beginPush(service, app, body);

async function push(app: App, body: object = {}): Promise<Record<string, unknown>> {
  return service.untilDone(app, await begin(app, body), timeoutMs);
}

async function usedToday(app: App): Promise<number> {
  const { body } = await service.api.request('GET', `/console/api/apps/${app.appId}/usage`, {
    admin: true,
  });
  return body.recipients;
}

const sentTo = (tokens: string[]) =>
  tokens.reduce((sum, token) => sum + service.apns.seen(token), 0);

describe('the daily recipient cap', () => {
  test('sends to the first recipients, and counts the rest as capped', async () => {
    const { app, tokens } = await appWithIos(30, 20);
    const record = await push(app);
    expect(record).toMatchObject({
      devices: 30,
      successes: 20,
      outcomes: { sent: 20, capped: 10 },
    });
    expect(record.errors).toContain('the daily recipient cap of 20 is reached (10)');
    expect(tokens.map((token) => service.apns.seen(token)).filter((n) => n === 1)).toHaveLength(20);
    expect(await usedToday(app)).toBe(20);
  });

  test('sends nothing more that day after it is reached', async () => {
    const { app, tokens } = await appWithIos(10, 10);
    await push(app);
    expect(await push(app)).toMatchObject({ devices: 10, successes: 0, outcomes: { capped: 10 } });
    expect(sentTo(tokens)).toBe(10);
  });

  test('of zero sends nothing at all', async () => {
    const { app, tokens } = await appWithIos(5, 0);
    expect(await push(app)).toMatchObject({ devices: 5, outcomes: { capped: 5 } });
    expect(sentTo(tokens)).toBe(0);
  });

  test('applies to the next push after it is raised', async () => {
    const { app, tokens } = await appWithIos(10, 10);
    await push(app);
    const path = `/console/api/apps/${app.appId}`;
    const body = { options: { dailyRecipientCap: 15 } };
    expect((await service.api.request('PATCH', path, { admin: true, body })).status).toBe(200);
    // A changed option takes effect on every process within one second.
    await new Promise((resolve) => setTimeout(resolve, 1000));
    expect(await push(app)).toMatchObject({ outcomes: { sent: 5, capped: 5 } });
    expect(sentTo(tokens)).toBe(15);
  });

  test('counts each app separately', async () => {
    const [full, other] = [await appWithIos(3, 3), await appWithIos(3, 3)];
    await push(full.app);
    expect(await push(other.app)).toMatchObject({ outcomes: { sent: 3 } });
  });

  test('is never exceeded by two dispatchers and several concurrent pushes', async () => {
    const { app, tokens } = await appWithIos(1200, 2777);
    const ids = await Promise.all(Array.from({ length: 4 }, () => begin(app)));
    const records = await Promise.all(ids.map((id) => service.untilDone(app, id, timeoutMs)));
    const sum = { sent: 0, capped: 0 };
    for (const { outcomes } of records) {
      const counts: { sent?: number; capped?: number } = outcomes ?? {};
      sum.sent += counts.sent ?? 0;
      sum.capped += counts.capped ?? 0;
    }
    expect(sum).toEqual({ sent: 2777, capped: 4 * 1200 - 2777 });
    expect(sentTo(tokens)).toBe(2777);
    expect(await usedToday(app)).toBe(2777);
  });

  test('does not count a retry again', async () => {
    const { app } = await appWithIos(20, 25);
    service.apns.misbehave({ kind: 'answer', status: 503, reason: 'ServiceUnavailable', count: 5 });
    expect(await push(app)).toMatchObject({ successes: 20, outcomes: { sent: 20 } });
    expect(await usedToday(app)).toBe(20);
  });
});

describe('a grant', () => {
  test('is given once, even to concurrent requests', async () => {
    const { app } = await appWithIos(1, 1000);
    await push(app);
    const { rows } = await service.db.query<{ id: number }>(
      'UPDATE push_batch SET granted = NULL, is_settled = false WHERE app_id = $1 RETURNING id',
      [app.appId],
    );
    const batch = { appId: app.appId, batchId: rows[0]?.id ?? 0 };
    const grants = Array.from({ length: 8 }, () =>
      grantRecipients(service.db, [{ ...batch, cap: 1000 }]),
    );
    const given = (await Promise.all(grants)).flat().filter((grant) => grant !== undefined);
    expect(given).toEqual([1]);
    expect(await usedToday(app)).toBe(2);
  });
});

test('usage is kept for its retention time and then deleted', async () => {
  const { app } = await appWithIos(0, 1);
  for (const day of ['2020-01-01', '2020-01-02', '2020-01-03'])
    await insertUsage(service.db, app, {}, day);
  expect(await deleteOldUsage(service.db, new Date('2020-01-03T12:00:00Z'), 100)).toBe(2);
  expect(await deleteOldUsage(service.db, new Date('2020-01-03T12:00:00Z'), 100)).toBe(0);
});
