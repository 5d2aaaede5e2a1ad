/** Tests installations of one device that older versions, imports or concurrent calls created. */
import { expect, test } from 'vitest';
import { mergeDevices } from '../../../dispatcher/background/cleaner.ts';
import { systemClock } from '../../../shared/clock.ts';
import { hastenRegistrationWalk } from '../../../shared/db/tables/installation-walks.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { useTestApi } from '../../support/test-api.ts';

const api = useTestApi();

/** Runs the background job until nothing is left to do. */
async function run(): Promise<void> {
  const limit = 3;
  while ((await mergeDevices({ db: api.db, clock: systemClock }, limit)) >= limit);
}

interface Fields {
  token?: string;
  installationId?: string;
  registrationId?: string;
  vendor?: string | null;
  deviceType?: string;
  channels?: string[];
  members?: object;
  hoursAgo?: number;
}
let serial = 0;
/** Writes an installation in the form of an older version. */
async function add(app: App, fields: Fields): Promise<string> {
  serial += 1;
  const { rows } = await api.db.query<{ object_id: string }>(
    `INSERT INTO installation (app_id, object_id, device_type, device_token, installation_id,
                               registration_id, vendor, channels, fields, updated_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, now() - make_interval(hours => $10))
       RETURNING object_id`,
    [
      ...[app.appId, `object${serial}`, fields.deviceType ?? 'ios', fields.token ?? null],
      ...[fields.installationId ?? null, fields.registrationId ?? null, fields.vendor ?? null],
      ...[fields.channels ?? null, fields.members ?? {}, fields.hoursAgo ?? 0],
    ],
  );
  return rows[0]?.object_id ?? '';
}

async function read(app: App) {
  const { rows } = await api.db.query<Record<string, unknown>>(
    `SELECT object_id, device_token, device_token_sent, registration_id FROM installation
      WHERE app_id = $1 ORDER BY id`,
    [app.appId],
  );
  return rows;
}

const tokenOf = (n: number) => `ab${n.toString(16).padStart(62, '0')}`;

test('tokens are rewritten for comparison, but keep their spelling, time and members', async () => {
  const app = await api.createApp();
  const lower = [1, 2, 3, 4, 5, 6, 7].map(tokenOf);
  for (const token of lower)
    await add(app, { token: token.toUpperCase(), channels: ['a'], hoursAgo: 5 });
  await add(app, { token: 'No-Hex-AB' });
  await add(app, { token: tokenOf(8) });
  const times =
    'SELECT array_agg(updated_at ORDER BY id) AS at FROM installation WHERE app_id = $1';
  const before = (await api.db.query(times, [app.appId])).rows;
  await run();
  const rows = await read(app);
  expect(rows.map((row) => row.device_token)).toEqual([...lower, 'No-Hex-AB', tokenOf(8)]);
  expect(rows.map((row) => row.device_token_sent)).toEqual([
    ...lower.map((token) => token.toUpperCase()),
    null,
    null,
  ]);
  expect((await api.db.query(times, [app.appId])).rows).toEqual(before);
  const installation = await api.request('GET', `/1.1/installations/${rows[0]?.object_id}`, {
    app,
  });
  expect(installation.body).toMatchObject({
    deviceToken: lower[0]?.toUpperCase(),
    channels: ['a'],
  });
});

test('installations with one token merge into the one that was saved last', async () => {
  const [app, other] = [await api.createApp(), await api.createApp()];
  const token = tokenOf(100);
  const mixed = `aB${token.slice(2)}`;
  await add(app, {
    token,
    channels: ['old'],
    members: { a: 1, b: 1 },
    installationId: 'x',
    hoursAgo: 3,
  });
  await add(app, { token: mixed, members: { c: 3 }, hoursAgo: 2 });
  const kept = await add(app, { token: token.toUpperCase(), members: { b: 2 }, hoursAgo: 1 });
  const first = await add(app, { token: tokenOf(101), channels: ['own'], hoursAgo: 0 });
  await add(app, { token: tokenOf(101).toUpperCase(), channels: ['other'], hoursAgo: 1 });
  const elsewhere = await add(other, { token: token.toUpperCase() });
  await run();
  expect((await read(app)).map((row) => row.object_id)).toEqual([kept, first]);
  expect((await read(other)).map((row) => row.object_id)).toEqual([elsewhere]);
  const get = async (id: string) =>
    (await api.request('GET', `/1.1/installations/${id}`, { app })).body;
  const merged = {
    deviceToken: token.toUpperCase(),
    channels: ['old'],
    installationId: 'x',
    a: 1,
    b: 2,
    c: 3,
  };
  expect(await get(kept)).toMatchObject(merged);
  expect(await get(first)).toMatchObject({ deviceToken: tokenOf(101), channels: ['own'] });
});

test('an installation that is being saved is left for a later pass', async () => {
  const app = await api.createApp();
  const token = tokenOf(200);
  await add(app, { token, hoursAgo: 1 });
  await add(app, { token: token.toUpperCase() });
  await api.db.transaction(async (tx) => {
    await tx.query('SELECT FROM installation WHERE app_id = $1 AND device_token = $2 FOR UPDATE', [
      app.appId,
      token,
    ]);
    await mergeDevices({ db: api.db, clock: systemClock }, 100);
    expect(await read(app)).toHaveLength(2);
  });
  await run();
  expect((await read(app)).map((row) => row.device_token)).toEqual([token]);
});

test('a vendor registration id stays with the installation saved last', async () => {
  const [app, other] = [await api.createApp(), await api.createApp()];
  const android = { deviceType: 'android', vendor: 'vendor_b' };
  const rows: [App, Fields, boolean][] = [
    [app, { ...android, registrationId: 'r1', hoursAgo: 2 }, false],
    [app, { ...android, registrationId: 'r1', hoursAgo: 0 }, true],
    [app, { ...android, registrationId: 'r1', hoursAgo: 1 }, false],
    [app, { ...android, registrationId: 'r1', vendor: 'vendor_c', hoursAgo: 9 }, true],
    [app, { ...android, registrationId: 'r1', vendor: null, hoursAgo: 9 }, true],
    [app, { ...android, registrationId: 'R1', hoursAgo: 9 }, true],
    [app, { deviceType: 'harmony', registrationId: 'r1', hoursAgo: 3 }, false],
    [app, { deviceType: 'android', vendor: 'vendor_a', registrationId: 'r1', hoursAgo: 2 }, true],
    [other, { ...android, registrationId: 'r1', hoursAgo: 9 }, true],
  ];
  const kept = new Map<string, string | null>();
  for (const [owner, fields, isKept] of rows)
    kept.set(await add(owner, fields), isKept ? (fields.registrationId ?? null) : null);
  await run();
  const left = [...(await read(app)), ...(await read(other))];
  expect(new Map(left.map((row) => [row.object_id, row.registration_id]))).toEqual(kept);
});

test('a walk reads all ids in pages, and the next walk starts a day later', async () => {
  const app = await api.createApp();
  const many = (from: number, to: number, id: string) =>
    api.db.query(
      `INSERT INTO installation (app_id, object_id, device_type, installation_id, registration_id,
        vendor, fields, updated_at)
       SELECT $1, 'many' || i, 'android', 'many' || i, ${id}, 'vendor_b', '{}',
         now() - make_interval(mins => i)
         FROM generate_series($2::int, $3::int) AS i`,
      [app.appId, from, to],
    );
  // Each id occurs twice, and one id fills more than a page.
  await many(1, 12_000, "'id' || i / 2");
  await many(12_001, 18_500, "'id999'");
  const owners = async () => {
    const { rows } = await api.db.query<{ rows: number; ids: number }>(
      'SELECT count(*) AS rows, count(DISTINCT registration_id) AS ids FROM installation WHERE app_id = $1 AND registration_id IS NOT NULL',
      [app.appId],
    );
    return rows[0];
  };
  await run();
  expect(await owners()).toEqual({ rows: 6001, ids: 6001 });
  const newest = await api.db.query(
    "SELECT object_id FROM installation WHERE app_id = $1 AND registration_id = 'id999'",
    [app.appId],
  );
  expect(newest.rows).toEqual([{ object_id: 'many1998' }]);
  await many(18_501, 18_502, "'id1'");
  await run();
  expect(await owners()).toEqual({ rows: 6003, ids: 6001 });
  await hastenRegistrationWalk(api.db, app.appId);
  await run();
  expect(await owners()).toEqual({ rows: 6001, ids: 6001 });
});
