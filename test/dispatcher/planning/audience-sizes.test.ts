import { describe, expect, test } from 'vitest';
import { AudienceSizes } from '../../../dispatcher/planning/batches.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import type { Push } from '../../../shared/domain/pushes/record.ts';
import { createAppOn } from '../../support/gateways/app-gateway.ts';
import { useTestService } from '../../support/service.ts';
import { readBatches } from '../../support/tables.ts';

interface Given {
  appId?: string;
  where?: object;
  channels?: string[] | null;
  kind?: string;
  flowControl?: number | null;
  plannedThrough?: number;
}

/** Returns a push to all devices of an app, changed by these members. */
const pushOf = (given: Given = {}): Push => {
  const {
    appId = 'a',
    where = {},
    channels = null,
    kind = 'query',
    flowControl = null,
    plannedThrough = 0,
  } = given;
  return {
    appId,
    plannedThrough,
    pushOrder: { target: { kind, where, channels }, flowControl },
  } as Push;
};

/** Returns half of a push after a push with this many devices. */
function halfAfter(devices: number, next: Given = {}, before: Given = {}): number | undefined {
  const sizes = new AudienceSizes();
  sizes.record(pushOf(before), devices);
  return sizes.halfOf(pushOf(next));
}

describe('half of the targets of a push', () => {
  test('is known after a push to all devices with one page and more than two first batches', () => {
    expect([2000, 2001, 9999, 10_000, 10_001].map((devices) => halfAfter(devices))).toEqual([
      undefined,
      1001,
      5000,
      5000,
      undefined,
    ]);
  });

  test('is unknown for another app, a condition, channels, a rate, a later page', () => {
    const others = [
      { appId: 'b' },
      { where: { city: 'Wuhan' } },
      { channels: ['news'] },
      { flowControl: 1000 },
      { plannedThrough: 5000 },
    ];
    expect(others.map((next) => halfAfter(5000, next))).toEqual(others.map(() => undefined));
  });

  test('is unknown after a push to some devices', () => {
    expect(halfAfter(5000, {}, { where: { city: 'Wuhan' } })).toBeUndefined();
    expect(halfAfter(5000, {}, { channels: ['news'] })).toBeUndefined();
  });

  test('comes from the latest push, for at most ten thousand apps', () => {
    const sizes = new AudienceSizes();
    for (const devices of [9000, 4000]) sizes.record(pushOf(), devices);
    expect(sizes.halfOf(pushOf())).toBe(2000);
    for (let i = 0; i < 9999; i += 1) sizes.record(pushOf({ appId: `app ${i}` }), 3000);
    expect(sizes.halfOf(pushOf())).toBe(2000);
    sizes.record(pushOf({ appId: 'one more' }), 3000);
    expect(sizes.halfOf(pushOf())).toBeUndefined();
    expect(sizes.halfOf(pushOf({ appId: 'app 0' }))).toBe(1500);
  });
});

describe('consecutive pushes to all devices of an app', () => {
  const service = useTestService();

  async function sizesOfNext(app: App): Promise<number[]> {
    const before = (await readBatches(service.db, app)).length;
    const body = { data: { alert: 'All' } };
    const { objectId } = (
      await service.api.request('POST', '/1.1/push', { app, master: true, body })
    ).body;
    const record = await service.untilDone(app, objectId);
    expect(record).toMatchObject({ status: 'done', outcomes: { sent: record.devices } });
    const batches = await readBatches(service.db, app);
    return batches.slice(before).map(({ recipients }) => recipients.length);
  }

  test('have a small first batch and two equal batches', async () => {
    await service.dispatch();
    const { app } = await createAppOn(service, null, 2500);
    expect(await sizesOfNext(app)).toEqual([1000, 1500]);
    expect(await sizesOfNext(app)).toEqual([1250, 1250]);
    await service.addIosInstallations(app, 500);
    expect(await sizesOfNext(app)).toEqual([1250, 1750]);
    expect(await sizesOfNext(app)).toEqual([1500, 1500]);
    await service.db.query('DELETE FROM installation WHERE app_id = $1 AND id % 4 > 0', [
      app.appId,
    ]);
    expect(await sizesOfNext(app)).toHaveLength(1);
    expect(await sizesOfNext(app)).toHaveLength(1);
  });
});
