import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AccessTokens, type TokenFetch } from '../../../connectors/kit/access-token.ts';
import { retry } from '../../../connectors/kit/response-rules.ts';
import { dayQuota, tokenStore } from '../../../dispatcher/sending/sender-cache.ts';
import { minuteMs, sleep, systemClock } from '../../../shared/clock.ts';
import { Vault } from '../../../shared/crypto.ts';
import { Database } from '../../../shared/db/pool.ts';
import {
  addGatewayUse,
  allowedUnits,
  deleteOldRates,
  gatewayDaySweeps,
  grantTest,
  listProfileUse,
  msUntilAllowed,
  reserveRate,
} from '../../../shared/db/tables/gateway-limits.ts';
import { deleteOldGatewayTokens } from '../../../shared/db/tables/gateways.ts';
import {
  deleteOldGatewayMessages,
  insertGatewayMessages,
  listGatewayMessages,
} from '../../../shared/db/tables/receipts.ts';
import {
  callbackSecret,
  callbackUrl,
  generationOfSecret,
} from '../../../shared/http/outbound-addresses.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { MemoryTokens } from '../../support/gateways/sender-context.ts';

const vault = new Vault([Buffer.alloc(32, 1)]);
const appId = 'app';
let database: TestDatabase;
/** Two connection pools represent two dispatchers. */
let one: Database;
let other: Database;

beforeAll(async () => {
  database = await createTestDatabase();
  one = new Database({ url: database.url, applicationName: 'one' });
  other = new Database({ url: database.url, applicationName: 'other' });
  await one.query(
    `INSERT INTO app (app_id, name, edition, plan, secrets)
      VALUES ($1, 'A', 'home', 'commercial', '')`,
    [appId],
  );
});
afterAll(async () => {
  await one.close();
  await other.close();
  await database.drop();
});

describe('access tokens of two dispatchers', () => {
  function providers(credential: string, fetch: () => Promise<string>, count = 8) {
    let calls = 0;
    const all = Array.from({ length: count }, (_, i) => {
      const store = tokenStore(i % 2 === 0 ? one : other, vault, { appId, connector: 'vendor_a' });
      return new AccessTokens({
        store,
        clock: systemClock,
        credential,
        fetch: async () => {
          calls += 1;
          return { ok: true, value: await fetch(), lifetimeMs: 3_600_000 };
        },
      });
    });
    return { all, calls: () => calls };
  }

  test('come from one call for many concurrent threads', async () => {
    const { all, calls } = providers('a', async () => {
      await sleep(150);
      return 'token of a';
    });
    const results = await Promise.all(all.map((tokens) => tokens.current()));
    expect(results.every((result) => result.ok && result.value === 'token of a')).toBe(true);
    expect(calls()).toBe(1);
  });

  test('are replaced by one call after many concurrent refusals', async () => {
    let n = 0;
    const { all, calls } = providers('b', async () => `token ${++n}`);
    await Promise.all(all.map((tokens) => tokens.current()));
    const replaced = await Promise.all(all.map((tokens) => tokens.replace('token 1')));
    expect(replaced.every((result) => result?.ok && result.value === 'token 2')).toBe(true);
    expect(calls()).toBe(2);
    // The new token is refused as well. No third token is fetched.
    expect(await Promise.all(all.map((tokens) => tokens.replace('token 2')))).toEqual(
      all.map(() => null),
    );
    expect(calls()).toBe(2);
  });

  test('are used although their lifetime is beyond every date', async () => {
    const tokens = new AccessTokens({
      store: tokenStore(one, vault, { appId, connector: 'vendor_a' }),
      clock: systemClock,
      credential: 'endless',
      fetch: async () => ({ ok: true, value: 'endless token', lifetimeMs: 1e300 }),
    });
    const used = { ok: true, value: 'endless token' };
    expect([await tokens.current(), await tokens.current()]).toEqual([used, used]);
  });

  test('are used until they expire, also by new threads while no token can be fetched', async () => {
    const store = tokenStore(one, vault, { appId, connector: 'vendor_a' });
    const madeAtMs = Date.now() - 58 * minuteMs;
    const kept = { value: 'old token', madeAtMs, isReplacement: false };
    expect(await store.claim('d', minuteMs)).toBe(true);
    await store.keep('d', { ...kept, expiresAtMs: madeAtMs + 60 * minuteMs });
    let answer: TokenFetch = { ok: false, attempt: retry(503, 'token_call_refused') };
    const newThread = () =>
      new AccessTokens({ store, clock: systemClock, credential: 'd', fetch: async () => answer });
    const old = { ok: true, value: 'old token' };
    const tokens = newThread();
    expect([await tokens.current(), await tokens.current()]).toEqual([old, old]);
    expect(await store.claim('d', minuteMs)).toBe(true);
    expect(await newThread().current()).toEqual(old);
    await store.release('d');
    answer = { ok: true, value: 'new token', lifetimeMs: 60 * minuteMs };
    await expect.poll(() => tokens.current()).toEqual({ ok: true, value: 'new token' });
  });

  test('that were refused are not used again, although the renewal in progress fails', async () => {
    const store = new MemoryTokens();
    const madeAtMs = Date.now() - 58 * minuteMs;
    const old = { value: 'old token', madeAtMs, expiresAtMs: madeAtMs + 60 * minuteMs };
    await store.keep('e', { ...old, isReplacement: false });
    const called = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<TokenFetch>();
    const tokens = new AccessTokens({
      store,
      clock: systemClock,
      credential: 'e',
      fetch: () => {
        called.resolve();
        return answer.promise;
      },
    });
    const renewing = tokens.current();
    await called.promise;
    const replaced = tokens.replace('old token');
    // The store is in memory, so the replacement now waits for the renewal.
    await setImmediate();
    const attempt = retry(503, 'token_call_refused');
    answer.resolve({ ok: false, attempt });
    for (const result of await Promise.all([renewing, replaced]))
      expect(result).toMatchObject({ ok: false, attempt: { kind: 'retry', status: 503 } });
  });

  test('differ between credentials, and are encrypted in the table', async () => {
    const { all } = providers('client and s3cret', async () => 'a-very-secret-token', 1);
    await all[0]?.current();
    const { rows } = await one.query<{ text: string }>(
      'SELECT t::text AS text FROM gateway_token t',
    );
    expect(rows.length).toBeGreaterThan(0);
    const dump = rows.map(({ text }) => Buffer.from(text).toString('latin1')).join('');
    const hex = (text: string) => Buffer.from(text).toString('hex');
    for (const secret of ['s3cret', 'a-very-secret-token']) {
      expect(dump).not.toContain(secret);
      expect(dump).not.toContain(hex(secret));
    }
  });

  test('are renewed by another thread if the renewing thread crashed', async () => {
    const store = tokenStore(one, vault, { appId, connector: 'vendor_a' });
    expect(await store.claim('c', 200)).toBe(true);
    const { all } = providers('c', async () => 'token of c', 2);
    expect(await all[1]?.current()).toEqual({ ok: true, value: 'token of c' });
  });

  test('that were encrypted with a removed key are fetched again', async () => {
    const rotated = new Vault([Buffer.alloc(32, 2)]);
    const store = tokenStore(one, rotated, { appId, connector: 'vendor_a' });
    expect(await store.read('a')).toBeNull();
  });
});

describe('a quota class that is used up for the day', () => {
  const key = { appId, connector: 'vendor_e', profile: '_default' };

  test('is closed for every dispatcher, while other classes and profiles stay open', async () => {
    await dayQuota(one, key).close('public', 'the day is used up');
    await dayQuota(other, key).close('public', 'another reason');
    expect(await dayQuota(other, key).closed('public')).toBe('the day is used up');
    expect(await dayQuota(other, key).closed('private')).toBeNull();
    expect(await dayQuota(other, { ...key, profile: 'two' }).closed('public')).toBeNull();
  });

  test('opens with the next day in China', async () => {
    await one.query(`UPDATE gateway_day SET day = day - 1 WHERE connector = 'vendor_e'`);
    expect(await dayQuota(other, key).closed('public')).toBeNull();
    await one.query(`UPDATE gateway_day SET day = day - 500 WHERE connector = 'vendor_e'`);
    const before = new Date(systemClock.now() - 400 * 86_400_000);
    expect(await gatewayDaySweeps[0]?.(one, before, 10)).toBe(1);
  });
});

test('sent messages are summed per app, profile and day', async () => {
  const key = { appId, connector: 'vendor_a', profile: '_default' };
  await Promise.all([
    addGatewayUse(one, key, { requests: 2, recipients: 1500 }),
    addGatewayUse(other, key, { requests: 1, recipients: 500 }),
    addGatewayUse(other, { ...key, profile: 'two' }, { requests: 1, recipients: 10 }),
  ]);
  const { rows } = await one.query<{ day: string }>(
    `SELECT max(day)::text AS day FROM gateway_day`,
  );
  const page = { day: rows[0]?.day ?? '', limit: 10 };
  const shared = { connector: 'vendor_a', class: '', closedReason: null };
  expect(await listProfileUse(one, appId, page)).toEqual([
    { ...shared, profile: '_default', requests: 3, recipients: 2000 },
    { ...shared, profile: 'two', requests: 1, recipients: 10 },
  ]);
});

describe('test pushes', () => {
  const limit = { pushesPerDay: 3, devicesPerPush: 10 };
  const grant = (db: Database, pushId: number, batchId: number, devices: number) =>
    db.transaction((tx) =>
      grantTest(tx, { appId, connector: 'vendor_a', pushId, batchId, devices }, limit),
    );

  test('go to ten devices each, in any order of their batches', async () => {
    const granted = await Promise.all([
      grant(one, 1, 11, 6),
      grant(other, 1, 12, 6),
      grant(one, 1, 13, 6),
    ]);
    expect(granted.reduce((sum, n) => sum + n, 0)).toBe(10);
    // A second call for the same batch returns the same number.
    expect(await grant(other, 1, 11, 6)).toBe(granted[0]);
  });

  test('have a limit per day', async () => {
    const pushes = await Promise.all(
      [2, 3, 4, 5].map((push) => grant(push % 2 ? one : other, push, push * 10, 1)),
    );
    expect(pushes.reduce((sum, n) => sum + n, 0)).toBe(2);
  });
});

describe('the rate limit of a gateway', () => {
  const limit = { perSecond: 1000, burst: 100, rampMs: 10_000 };

  test('grows linearly, then stays constant; time and units are inverse functions', () => {
    expect(allowedUnits(limit, 0)).toBe(100);
    expect(allowedUnits(limit, 10_000)).toBe(5100);
    expect(allowedUnits(limit, 20_000)).toBe(15_100);
    for (const ms of [1, 500, 9999, 10_000, 60_000])
      expect(msUntilAllowed(limit, allowedUnits(limit, ms))).toBeCloseTo(ms);
    expect(msUntilAllowed({ perSecond: 10, burst: 0, rampMs: 0 }, 5)).toBe(500);
  });

  async function batches(count: number): Promise<number[]> {
    const { rows } = await one.query<{ id: number }>(
      `INSERT INTO push_batch (app_id, push_id, connector, profile, recipients)
       SELECT $1, 1, 'fcm', '_default', '{1}' FROM generate_series(1, $2::int) RETURNING id`,
      [appId, count],
    );
    return rows.map(({ id }) => id);
  }

  test('is shared by all dispatchers: reservations follow one another', async () => {
    const ids = await batches(12);
    const key = { appId, connector: 'fcm', profile: '_default' };
    const rate = { perSecond: 1000, burst: 200, rampMs: 0 };
    const slots = await Promise.all(
      ids.map((batchId, i) =>
        (i % 2 ? one : other).transaction((tx) =>
          reserveRate(tx, { ...key, batchId }, rate, { units: 100, isEven: true }),
        ),
      ),
    );
    slots.sort((a, b) => a.at.getTime() - b.at.getTime());
    // 200 requests are sent at once, then at most a hundred per tenth of a second.
    expect(slots.slice(0, 2).every(({ durationMs }) => durationMs === 0)).toBe(true);
    const beganMs = slots[0]?.at.getTime() ?? 0;
    for (const [i, { at, durationMs }] of slots.entries())
      expect((i + 1) * 100).toBeLessThanOrEqual(
        allowedUnits(rate, at.getTime() - beganMs + durationMs + 2),
      );
    expect(slots.at(-1)?.durationMs).toBeGreaterThanOrEqual(100);
  });

  test('sends a request with many targets when the rate allows all of them', async () => {
    const [first = 0, second = 0] = await batches(2);
    const key = { appId, connector: 'vendor_a', profile: '_default' };
    const rate = { perSecond: 1000, burst: 0, rampMs: 0 };
    const reserve = (batchId: number) =>
      one.transaction((tx) =>
        reserveRate(tx, { ...key, batchId }, rate, { units: 500, isEven: false }),
      );
    const [earlier, later] = [await reserve(first), await reserve(second)];
    expect([earlier.durationMs, later.durationMs]).toEqual([0, 0]);
    // The first request waits until 500 units are available, the second for another 500.
    expect(later.at.getTime() - earlier.at.getTime()).toBeGreaterThanOrEqual(499);
  });
});

test('old rows are deleted: messages after a week, and unused rates and tokens', async () => {
  const push = { appId, id: 77 };
  const batch = { appId, pushId: push.id, batchId: 1, connector: 'vendor_a' };
  const messages = [
    { messageId: 'old', devices: 1000 },
    { messageId: 'new', devices: 2 },
  ];
  await insertGatewayMessages(one, [{ batch, messages }]);
  await one.query(
    `UPDATE gateway_message SET created_at = now() - interval '8 days' WHERE message_id = 'old'`,
  );
  await one.query(
    `UPDATE gateway_rate SET busy_until = now() - interval '8 days' WHERE connector = 'fcm'`,
  );
  await one.query(`UPDATE gateway_token SET expires_at = now() - interval '8 days'`);
  const before = new Date(systemClock.now() - 7 * 86_400_000);
  expect(await deleteOldGatewayMessages(one, before, 10)).toBe(1);
  await deleteOldRates(one, before);
  expect(await deleteOldGatewayTokens(one, before)).toBeGreaterThan(0);
  expect(
    (await listGatewayMessages(one, push, { after: null, limit: 10 })).map(
      ({ messageId }) => messageId,
    ),
  ).toEqual(['new']);
  const { rows } = await one.query<{ connector: string }>('SELECT connector FROM gateway_rate');
  expect(rows).toEqual([{ connector: 'vendor_a' }]);
  expect((await one.query('SELECT FROM gateway_token')).rows).toEqual([]);
});

test('the secret in the receipt URL is derived from a key, and older keys stay valid', () => {
  const owner = { appId: 'a1', connector: 'vendor_b' };
  const older = new Vault([Buffer.alloc(32, 1)]);
  const rotated = new Vault([Buffer.alloc(32, 2), Buffer.alloc(32, 1)]);
  const secret = callbackSecret(older, owner, 0);
  expect(secret).toMatch(/^[\w-]{24}$/);
  expect(callbackUrl('https://push.example.com', older, { ...owner, generation: 0 })).toBe(
    `https://push.example.com/callbacks/vendor_b/a1/${secret}`,
  );
  expect(callbackSecret(rotated, owner, 0)).not.toBe(secret);
  expect(generationOfSecret(rotated, owner, secret)).toBe(0);
  expect(generationOfSecret(rotated, { ...owner, appId: 'a2' }, secret)).toBeUndefined();
  expect(generationOfSecret(rotated, owner, `${secret.slice(0, 23)}!`)).toBeUndefined();
  const next = callbackSecret(older, owner, 7);
  expect(next).toMatch(/^7\.[\w-]{24}$/);
  expect(generationOfSecret(rotated, owner, next)).toBe(7);
  // The secret of one generation does not work for another generation.
  for (const forged of [
    next.slice(2),
    `8${next.slice(1)}`,
    `0.${secret}`,
    `7.${secret}`,
    `07${next.slice(1)}`,
  ])
    expect(generationOfSecret(rotated, owner, forged)).toBeUndefined();
});
