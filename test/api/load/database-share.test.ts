import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Database } from '../../../shared/db/pool.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { useTestApi } from '../../support/test-api.ts';

let db: Database;
let hostile: App;
let other: App;
const api = useTestApi();
beforeAll(async () => {
  db = new Database({ url: api.databaseUrl, applicationName: 'test', maxConnections: 3 });
  const options = { allowInstallationQuery: true, allowUserQuery: true, forbidClientPush: false };
  hostile = await api.createApp(options);
  other = await api.createApp(options);
});
afterAll(async () => {
  await db.close();
});

let devices = 0;
const register = async (app: App, body: object = {}): Promise<string> => {
  devices += 1;
  const whole = { deviceType: 'android', installationId: `device-${devices}`, ...body };
  return (await api.request('POST', '/1.1/installations', { app, body: whole })).body.objectId;
};
const list = (app: App, where: object = {}, more: { master?: boolean } = {}) =>
  api.request('GET', `/1.1/installations?where=${encodeURIComponent(JSON.stringify(where))}`, {
    app,
    ...more,
  });

/** Locks the table while `work` runs, so that every query of the table occupies a connection. */
const whileLocked = <T>(table: string, work: () => Promise<T>): Promise<T> =>
  db.transaction(async (tx) => {
    await tx.query(`LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
    return work();
  });

/** Counts the transactions of the api that wait for a lock. */
async function waiting(name: string): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    `SELECT count(*) AS count FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = $1 AND wait_event_type = 'Lock'`,
    [name],
  );
  return rows[0]?.count ?? 0;
}

/** Saves a device of another app, updates it by a condition and lists it. */
async function expectAnswersToOthers() {
  const id = await register(other, { city: 'Rome' });
  const met = await api.request('PUT', `/1.1/installations/${id}?where={"city":{"$regex":"^R"}}`, {
    app: other,
    body: { seen: 1 },
  });
  expect(met.status).toBe(200);
  expect((await list(other, { seen: 1 })).body.results).toHaveLength(1);
}

describe('an app with the heaviest load', () => {
  test('runs two slow conditional updates at a time, and others get replies', async () => {
    const ids = await Promise.all([register(hostile), register(hostile)]);
    const put = (id: string) =>
      api.request('PUT', `/1.1/installations/${id}?where={"city":{"$regex":"^R"}}`, {
        app: hostile,
        body: { a: 1 },
      });
    const active = () => waiting('carillon api (queries)');
    // A locked row is as slow as the most expensive condition, on every machine.
    const codes = await db.transaction(async (tx) => {
      await tx.query('SELECT 1 FROM installation WHERE app_id = $1 FOR UPDATE', [hostile.appId]);
      let isOver = false;
      const attack = Promise.all(Array.from({ length: 4 }, () => ids.map(put)).flat()).finally(
        () => {
          isOver = true;
        },
      );
      await expect.poll(active).toBe(2);
      await expectAnswersToOthers();
      expect(await active()).toBeLessThanOrEqual(2);
      expect(isOver).toBe(false);
      return (await attack).map(({ body }) => body.code);
    });
    expect(codes.filter((code) => code === 124).length).toBeGreaterThanOrEqual(2);
    // The other calls waited too long.
    expect(codes.filter((code) => ![124, 429].includes(code))).toEqual([]);
  });

  test('delays neither saves and pushes of other apps nor health checks', async () => {
    const user = await api.request('POST', '/1.1/users', {
      app: hostile,
      body: { username: 'u', password: 'p' },
    });
    await whileLocked('app_user', async () => {
      const path = `/1.1/users/${user.body.objectId}`;
      const attack = Array.from({ length: 40 }, () => api.request('GET', path, { app: hostile }));
      const lists = Array.from({ length: 10 }, () =>
        api.request('GET', '/1.1/users', { app: hostile }),
      );
      await expect.poll(() => waiting('carillon api')).toBe(6);
      await expect.poll(() => waiting('carillon api (queries)')).toBe(2);
      expect(await register(other)).toEqual(expect.any(String));
      expect((await api.request('GET', '/readyz')).body).toEqual({ status: 'ready' });
      const body = { data: { alert: 'hi' }, where: { city: 'nowhere' } };
      expect((await api.request('POST', '/1.1/push', { app: other, body })).status).toBe(200);
      expect(await waiting('carillon api')).toBeLessThanOrEqual(6);
      expect(await Promise.all(lists.map(async (one) => (await one).body.code))).toContain(124);
      void Promise.allSettled(attack);
    });
  });

  test('gets 429 with Retry-After while a hundred of its queries wait', async () => {
    const calls = Array.from({ length: 150 }, () => list(hostile));
    const refusal = await whileLocked('installation', () =>
      Promise.any(
        calls.map(async (call) => ((await call).status === 429 ? call : Promise.reject(call))),
      ),
    );
    expect(refusal.body.code).toBe(429);
    expect(refusal.headers.get('retry-after')).toBe('1');
    const statuses = (await Promise.all(calls)).map(({ status }) => status);
    expect(new Set(statuses).isSubsetOf(new Set([200, 400, 429]))).toBe(true);
    expect((await list(hostile)).status).toBe(200);
  });

  test('waits less long with the app key than with the master key', async () => {
    const master = await whileLocked('installation', async () => {
      const reply = list(other, {}, { master: true });
      await expect.poll(() => waiting('carillon api (queries)')).toBe(1);
      expect(await list(other)).toMatchObject({ status: 400, body: { code: 124 } });
      return { reply };
    });
    expect((await master.reply).status).toBe(200);
  });

  test('has its push accepted while its condition waits', async () => {
    const own = await api.createApp({ ...hostile.options, hybridPush: true });
    await register(own, { vendor: 'vendor_a', registrationId: 'r' });
    const body = { data: { alert: 'hi' } };
    const send = () => api.request('POST', '/1.1/push', { app: own, body });
    expect(await send()).toMatchObject({ status: 400, body: { code: 1 } });
    await whileLocked('installation', async () => {
      const lists = [list(own), list(own)];
      await expect.poll(() => waiting('carillon api (queries)')).toBe(2);
      expect((await send()).status).toBe(200);
      await Promise.all(lists);
    });
  });
});

describe('a reply', () => {
  let big: App;
  let device: string;
  const pointer = (i: number) => ({ __type: 'Pointer', className: '_User', objectId: `big${i}` });
  beforeAll(async () => {
    big = await api.createApp({ allowInstallationQuery: true, allowUserQuery: true });
    // Half of the rows compress to almost nothing in the database.
    await db.query(
      `INSERT INTO app_user (app_id, object_id, username, session_nonce, session_hash, fields)
       SELECT $1, 'big' || i, 'big' || i, int8send(i), sha256(int8send(i)),
                jsonb_build_object('text', CASE WHEN i % 2 = 0 THEN repeat('x', 1000000) ELSE (
                  SELECT string_agg(md5((i * j)::text), '')
                    FROM generate_series(1, 31250) AS j) END)
         FROM generate_series(1, 20) AS i`,
      [big.appId],
    );
    const all = Array.from({ length: 20 }, (_, i) => pointer(i + 1));
    device = await register(big, {
      all,
      few: all.slice(0, 3),
      same: Array.from({ length: 20 }, () => pointer(1)),
    });
  });
  const get = async (path: string, master = false) => {
    const { status, body } = await api.request('GET', path, { app: big, master });
    return status === 200 ? 'whole' : `${status} ${body.code} ${body.error}`;
  };
  const tooLarge = expect.stringMatching(/^400 116 .*ask for fewer rows/);

  test('contains rows of at most 4 MB with the app key, or 16 MB with the master key', async () => {
    for (const path of [
      '/1.1/users',
      '/1.1/classes/_User',
      `/1.1/cloudQuery?cql=select%20*%20from%20_User&`,
    ]) {
      const limited = (limit: number) =>
        path.includes('cql') ? path.replace('&', `%20limit%20${limit}`) : `${path}?limit=${limit}`;
      expect(await get(limited(3))).toBe('whole');
      expect(await get(limited(5))).toEqual(tooLarge);
      expect(await get(limited(15), true)).toBe('whole');
      expect(await get(limited(20), true)).toEqual(tooLarge);
    }
    expect(await get('/1.1/scan/classes/_User?limit=15', true)).toBe('whole');
    expect(await get('/1.1/scan/classes/_User?limit=20', true)).toEqual(tooLarge);
  });

  test('includes at most as much, also for an object that is included many times', async () => {
    for (const path of [`/1.1/installations/${device}?`, '/1.1/installations?']) {
      expect(await get(`${path}include=few`)).toBe('whole');
      expect(await get(`${path}include=all`)).toEqual(tooLarge);
      expect(await get(`${path}include=all`, true)).toEqual(tooLarge);
      expect(await get(`${path}include=same`)).toMatch(/^400 116 Too much is to be included/);
    }
    const inner = await api.request('POST', '/1.1/batch', {
      app: big,
      body: {
        requests: [
          { method: 'GET', path: `/1.1/installations/${device}`, params: { include: 'all' } },
        ],
      },
    });
    expect(inner.body[0].error.code).toBe(116);
  });
});
