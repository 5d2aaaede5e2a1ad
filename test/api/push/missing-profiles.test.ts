import { describe, expect, test } from 'vitest';
import { AbsentKinds } from '../../../api/services/push/absent-kinds.ts';
import { systemClock } from '../../../shared/clock.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { changeDevices } from '../../support/tables.ts';
import { useTestApi } from '../../support/test-api.ts';

const api = useTestApi();

/** Inserts devices of a vendor. Numbers start at 1. */
const addDevices = (app: App, vendor: string, count: number, deviceProfile: string | null = null) =>
  api.db.query(
    `INSERT INTO installation (app_id, object_id, device_type, installation_id, vendor,
      registration_id, device_profile, fields)
     SELECT $1, lpad(to_hex(i), 24, '0'), 'android', gen_random_uuid(), $2::text, gen_random_uuid(),
            $4::text, jsonb_build_object('n', i)
       FROM generate_series(1, $3::int) AS i`,
    [app.appId, vendor, count, deviceProfile],
  );

const pushTo = async (app: App, where: object): Promise<number> =>
  (
    await api.request('POST', '/1.1/push', {
      app,
      master: true,
      body: { data: { alert: 'Hello' }, where },
    })
  ).status;

test('a repeated request returns the first push, even if it would be refused now', async () => {
  const app = await api.createApp({ hybridPush: true });
  const push = (body: object) =>
    api.request('POST', '/1.1/push', {
      app,
      master: true,
      body: { data: { alert: 'Hello' }, where: {}, ...body },
    });
  const first = await push({ req_id: 'repeated' });
  expect(first.status).toBe(200);
  const registered = await api.request('POST', '/1.1/installations', {
    app,
    body: { deviceType: 'android', vendor: 'HMS', registrationId: 'r', installationId: 'i' },
  });
  expect(registered.status).toBe(201);
  expect((await push({ req_id: 'other' })).status).toBe(400);
  expect(await push({ req_id: 'repeated' })).toMatchObject({ status: 200, body: first.body });
});

describe('a push to devices of a vendor without a profile', () => {
  test('is refused if an index or the first thousand devices show it', async () => {
    const app = await api.createApp({ hybridPush: true });
    await addDevices(app, 'vendor_a', 1500);
    await api.db.query('ANALYZE installation');
    const last = (1500).toString(16).padStart(24, '0');
    const refused = [
      {},
      [],
      { $and: [] },
      { n: 1500 },
      { n: { $gte: 1 } },
      { n: { $gte: 900 } },
      { deviceType: 'android' },
      { vendor: 'HMS' },
      { objectId: last },
      { objectId: { $in: [last] } },
      { channels: { $exists: false } },
    ];
    for (const where of refused) expect(await pushTo(app, where), JSON.stringify(where)).toBe(400);
    const accepted = [
      { n: { $gte: 1400 } },
      { n: 1501 },
      { objectId: 'f'.repeat(24) },
      { deviceType: 'ios' },
      { vendor: 'mi' },
      { channels: 'news' },
    ];
    for (const where of accepted) expect(await pushTo(app, where), JSON.stringify(where)).toBe(200);
  });

  test('is accepted if its devices name their own profile or cannot be active', async () => {
    const app = await api.createApp({ hybridPush: true });
    await addDevices(app, 'vendor_b', 5, 'shop');
    expect(await pushTo(app, {})).toBe(200);
    const idle = await api.createApp({ hybridPush: true });
    await addDevices(idle, 'vendor_b', 5);
    expect(await pushTo(idle, {})).toBe(400);
    await changeDevices(api.db, idle, { valid: false });
    expect(await pushTo(idle, {})).toBe(200);
  });

  test('is refused as soon as its first device was saved', async () => {
    const app = await api.createApp({ hybridPush: true });
    expect(await pushTo(app, {})).toBe(200);
    const register = async (vendor: string) => {
      const registrationId = `${vendor}-registration`;
      const body = { deviceType: 'android', installationId: vendor, vendor, registrationId };
      return (await api.request('POST', '/1.1/installations', { app, body })).body;
    };
    await register('oppo');
    expect(await pushTo(app, { vendor: 'oppo' })).toBe(400);
    expect(await pushTo(app, { vendor: 'mi' })).toBe(200);
    const { objectId } = await register('lc');
    const path = `/1.1/installations/${objectId}`;
    const body = { vendor: 'mi', registrationId: 'changed' };
    expect((await api.request('PUT', path, { app, body })).status).toBe(200);
    expect(await pushTo(app, { vendor: 'mi' })).toBe(400);
  });

  test('is found half a second after another process saved its first device', () => {
    let nowMs = 0;
    const absent = new AbsentKinds({ ...systemClock, monotonicMs: () => nowMs });
    const kind = { deviceType: 'web', vendor: 'webpush' };
    absent.add('app', kind);
    nowMs = 499;
    expect(absent.has('app', kind)).toBe(true);
    expect(absent.has('other app', kind)).toBe(false);
    nowMs = 500;
    expect(absent.has('app', kind)).toBe(false);
  });

  test('is refused while pushes of other apps are accepted', async () => {
    const apps = await Promise.all(
      Array.from({ length: 6 }, () => api.createApp({ hybridPush: true })),
    );
    for (const [i, app] of apps.entries()) if (i % 2) await addDevices(app, 'vendor_e', 3);
    const statuses = await Promise.all([...apps, ...apps].map((app) => pushTo(app, {})));
    expect(statuses).toEqual([200, 400, 200, 400, 200, 400, 200, 400, 200, 400, 200, 400]);
  });
});
