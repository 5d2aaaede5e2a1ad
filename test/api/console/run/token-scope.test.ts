import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadRoutes } from '../../../../api/route-loader.ts';
import { AccountReader } from '../../../../dispatcher/background/account-reader.ts';
import { hourMs, systemClock } from '../../../../shared/clock.ts';
import { Vault } from '../../../../shared/crypto.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { startTestApi, type TestApi, testConfig } from '../../../support/api.ts';
import { requestAccountRead } from '../../../support/tables.ts';
import { useTestApi } from '../../../support/test-api.ts';
import { callerOf, createToken } from '../callers.ts';

const base = '/console/api';
let movedMs = 0;
const clock = { ...systemClock, now: () => systemClock.now() + movedMs };
const api = useTestApi({ clock });
/** Two additional api processes. */
let others: TestApi[];
let own: App;
let other: App;

beforeAll(async () => {
  const start = () => startTestApi({ databaseUrl: api.databaseUrl, clock });
  others = await Promise.all([start(), start()]);
  [own, other] = [await api.createApp(), await api.createApp()];
});
afterAll(() => Promise.all(others.map((one) => one.close())));

/** Calls every process with a token. Returns the statuses. */
const statesOf = (token: string, path = '/session') =>
  Promise.all(
    [api, ...others].map(async (process) => {
      const headers = { Authorization: `Bearer ${token}` };
      return (await process.request('GET', base + path, { headers })).status;
    }),
  );

test('every route refuses a token for other apps before it reads anything', async () => {
  const routes = (await loadRoutes()).filter(({ auth }) => auth === 'admin');
  const call = await callerOf(api, 'owner', { apps: [own.appId] });
  for (const { method, operation, paths, isFiltered } of routes) {
    const [path = ''] = paths;
    const isOfApp = path.includes(':appId');
    if (!isOfApp && isFiltered) continue;
    for (const appId of [other.appId, 'nowhere']) {
      const to = path.slice(base.length).replace(':appId', appId).replace(/:\w+/g, 'x');
      const { status, body } = await call(method, to);
      expect([operation, status, body.error]).toEqual([
        operation,
        403,
        'This token is for other apps.',
      ]);
    }
  }
});

test('lists for a token of some apps contain nothing of other apps', async () => {
  const routes = (await loadRoutes()).filter(
    ({ auth, method, paths, isFiltered }) =>
      auth === 'admin' && method === 'GET' && isFiltered && !paths[0]?.includes(':'),
  );
  const call = await callerOf(api, 'owner', { apps: [own.appId] });
  const body = { reason: 'the other' };
  await api.request('PUT', `${base}/apps/${other.appId}/freeze`, { admin: true, body });
  const called: string[] = [];
  for (const { operation, paths } of routes.filter(
    ({ operation }) => operation !== 'streamEvents',
  )) {
    const path = (paths[0] ?? '').slice(base.length);
    const reply = await call('GET', operation === 'search' ? `${path}?q=${other.appId}` : path);
    expect([operation, reply.status]).toEqual([operation, 200]);
    const text = JSON.stringify(reply.body).replace(`"q":"${other.appId}"`, '');
    expect([operation, text]).toEqual([operation, expect.not.stringContaining(other.appId)]);
    called.push(operation);
  }
  expect(called).toEqual(
    expect.arrayContaining(['listApps', 'listFreezes', 'listBreakers', 'getOverview']),
  );
});

test('every process refuses a token after its deletion', async () => {
  const { id, token } = await createToken(api, 'viewer');
  expect(await statesOf(token)).toEqual([200, 200, 200]);
  expect(
    (await others[0]?.request('DELETE', `${base}/tokens/${id}`, { admin: true }))?.status,
  ).toBe(200);
  expect(await statesOf(token)).toEqual([401, 401, 401]);
});

test('every process refuses a token after its expiry', async () => {
  const expiresAt = new Date(clock.now() + hourMs).toISOString();
  const { token } = await createToken(api, 'viewer', { expiresAt });
  expect(await statesOf(token)).toEqual([200, 200, 200]);
  movedMs += hourMs;
  expect(await statesOf(token)).toEqual([401, 401, 401]);
});

test('a metric counts tokens that are valid, end within 30 days, or have ended', async () => {
  await api.db.query('DELETE FROM console_token');
  await api.db.query(
    `INSERT INTO console_token (digest, name, role, created_by, created_at, expires_at)
     SELECT sha256(coalesce(days::text, '')::bytea), 'counted', 'viewer', 'test', now(),
       now() + days * interval '1 day'
       FROM unnest(ARRAY[NULL, 100, 29, 1, -1]) AS days`,
  );
  await requestAccountRead(api.db);
  const vault = new Vault(testConfig(api.databaseUrl).secrets);
  await new AccountReader().run({ db: api.db, clock: systemClock, vault });
  const { body } = await api.request('GET', '/metrics');
  for (const [state, n] of Object.entries({ valid: 4, ending: 2, expired: 1 }))
    expect(body).toContain(`carillon_console_tokens{state="${state}"} ${n}`);
});

test('the list of tokens has the last use of each token, also on another process', async () => {
  const { id, token } = await createToken(api, 'viewer');
  const usedAt = async () => {
    const { results } = (await api.request('GET', `${base}/tokens`, { admin: true })).body;
    return results.find((one: { id: string }) => one.id === id).usedAt;
  };
  expect(await usedAt()).toBeNull();
  const headers = { Authorization: `Bearer ${token}` };
  for (const passedMs of [0, hourMs]) {
    movedMs += passedMs;
    await others[1]?.request('GET', `${base}/session`, { headers });
    expect(Math.abs(Date.parse(await usedAt()) - clock.now())).toBeLessThan(60_000);
  }
});
