import { afterEach, describe, expect, test } from 'vitest';
import type { RunningDispatcher } from '../../dispatcher/start.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import { beginPush, createAppOn } from '../support/gateways/app-gateway.ts';
import { useTestService } from '../support/service.ts';

const dispatchers: RunningDispatcher[] = [];

const service = useTestService();
afterEach(() => service.apns.behave());

async function startUpTo(count: number): Promise<void> {
  while (dispatchers.length < count) dispatchers.push(await service.dispatch());
}

/** Sums the recipients of an app by outcome over the metrics of all dispatchers. */
async function counted(app: App): Promise<Record<string, number>> {
  const totals: Record<string, number> = {};
  const line = new RegExp(
    `^carillon_recipients_total\\{app="${app.appId}".*outcome="(\\w+)"\\} (\\d+)$`,
    'gm',
  );
  for (const { metricsPort } of dispatchers) {
    const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    // A counter starts with 0 for every outcome.
    for (const [, outcome = '', n] of text.matchAll(line))
      if (n !== '0') totals[outcome] = (totals[outcome] ?? 0) + Number(n);
  }
  return totals;
}

describe.each([2, 4])('%i dispatchers on one database', (count) => {
  test('send to each recipient once, with small and large pushes at the same time', {
    timeout: 90_000,
  }, async () => {
    await startUpTo(count);
    const before = { total: service.apns.total, distinct: service.apns.distinct };
    // Enough batches of a thousand for every dispatcher.
    const sizes = [4000, 2000, 400, 1];
    const apps = [];
    for (const size of sizes) apps.push(await createAppOn(service, null, size));
    const records = await Promise.all(
      apps.map(async ({ app }) => service.untilDone(app, await beginPush(service, app), 80_000)),
    );
    for (const [i, devices] of sizes.entries())
      expect(records[i]).toMatchObject({ status: 'done', devices, outcomes: { sent: devices } });
    const all = sizes.reduce((sum, size) => sum + size, 0);
    expect(service.apns.total - before.total).toBe(all);
    expect(service.apns.distinct - before.distinct).toBe(all);
    for (const [i, { app }] of apps.entries())
      expect(await counted(app)).toEqual({ sent: sizes[i] });
  });

  test('retry only the recipients that a gateway postpones', { timeout: 90_000 }, async () => {
    await startUpTo(count);
    const { app, tokens } = await createAppOn(service, null, 2000);
    const before = service.apns.total;
    service.apns.misbehave({
      kind: 'answer',
      status: 429,
      reason: 'TooManyRequests',
      retryAfter: '1',
      count: 300,
    });
    const record = await service.untilDone(app, await beginPush(service, app), 80_000);
    expect(record).toMatchObject({ devices: 2000, outcomes: { sent: 2000 } });
    expect(service.apns.total - before).toBe(2300);
    expect(tokens.filter((token) => service.apns.seen(token) > 2)).toEqual([]);
    expect(await counted(app)).toEqual({ sent: 2000 });
  });
});
