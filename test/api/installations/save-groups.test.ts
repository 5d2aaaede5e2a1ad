import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { useTestApi } from '../../support/test-api.ts';

const api = useTestApi();
let app: App;
let other: App;
beforeAll(async () => {
  app = await api.createApp({ installationBytes: 128 * 1024 });
  other = await api.createApp();
});

let serial = 0;
const device = (more: JsonObject = {}): JsonObject & { installationId: string } => {
  serial += 1;
  return { deviceType: 'android', installationId: `device-${serial}`, ...more };
};
const save = async (owner: App, body: JsonObject) => {
  const { installation, isNew } = await api.services.installations.register(
    { app: owner, isMaster: false, session: undefined, remoteAddress: '192.0.2.1' },
    body,
    JSON.stringify(body).length,
  );
  return { objectId: installation.objectId, isNew };
};
/** Returns the error code of a refused save, or whether the save created an installation. */
const result = (owner: App, body: JsonObject) =>
  save(owner, body).then(
    ({ isNew }) => isNew,
    (error) => error.code,
  );

/** Returns the members and transaction ids of installations, by installation id. */
async function rowsOf(bodies: JsonObject[]) {
  const { rows } = await api.db.query<{
    installation_id: string;
    xmin: string;
    fields: JsonObject;
  }>(
    `SELECT installation_id, xmin::text, fields FROM installation
      WHERE app_id = ANY($1) AND installation_id = ANY($2) ORDER BY id`,
    [[app.appId, other.appId], bodies.map(({ installationId }) => installationId)],
  );
  return rows;
}
const transactionsOf = async (bodies: JsonObject[]) =>
  new Set((await rowsOf(bodies)).map(({ xmin }) => xmin));

describe('concurrent saves', () => {
  test('are one transaction, new ones and repeats, of all apps', async () => {
    const bodies = Array.from({ length: 30 }, (_, i) => device({ n: i }));
    const ownerOf = (i: number) => (i % 2 === 0 ? app : other);
    const created = await Promise.all(bodies.map((body, i) => save(ownerOf(i), body)));
    expect(created.every(({ isNew }) => isNew)).toBe(true);
    expect(await transactionsOf(bodies)).toHaveProperty('size', 1);
    const added = Array.from({ length: 10 }, () => device());
    const again = await Promise.all([
      ...bodies.map((body, i) =>
        save(ownerOf(i), { ...body, n: { __op: 'Increment', amount: 100 } }),
      ),
      ...added.map((body) => save(app, body)),
    ]);
    expect(again.map(({ isNew }) => isNew)).toEqual([
      ...bodies.map(() => false),
      ...added.map(() => true),
    ]);
    expect(again.slice(0, 30).map(({ objectId }) => objectId)).toEqual(
      created.map(({ objectId }) => objectId),
    );
    expect(await transactionsOf([...bodies, ...added])).toHaveProperty('size', 1);
    expect((await rowsOf(bodies)).map(({ fields }) => fields.n)).toEqual(
      bodies.map((_, i) => i + 100),
    );
  });

  test('keep every kind of value', async () => {
    const bodies = [
      device({
        channels: ['a"b'.slice(0, 1), 'x_=-', '', '频道'],
        badge: 0,
        valid: false,
        timeZone: 'UTC',
      }),
      device({
        channels: [],
        vendor: 'HMS',
        registrationId: 'r,"{}\\',
        deviceProfile: 'p',
        apnsTopic: 't',
      }),
      device({
        note: 'NULL',
        quote: `"'\\{},`,
        nested: { list: [1, null, 'é😀'] },
        deviceToken: 'NULL',
      }),
    ];
    const read = async ({ objectId }: { objectId: string }) =>
      (await api.request('GET', `/1.1/installations/${objectId}`, { app })).body;
    const created = await Promise.all(bodies.map((body) => save(app, body)));
    expect(await transactionsOf(bodies)).toHaveProperty('size', 1);
    for (const [i, one] of created.entries())
      expect(await read(one)).toMatchObject(bodies[i] ?? {});
    await Promise.all(
      bodies.map((body) => save(app, { installationId: body.installationId, again: true })),
    );
    for (const [i, one] of created.entries())
      expect(await read(one)).toMatchObject({ ...bodies[i], again: true });
  });

  test('are refused one by one, while the others are written', async () => {
    const known = device({ deviceToken: 'known-token' });
    await save(app, known);
    const good = Array.from({ length: 10 }, () => device());
    const bad: [JsonObject, number][] = [
      [device({ deviceToken: 5 }), 114],
      [device({ deviceType: 'toaster' }), 111],
      [device({ deviceToken: 'known-token' }), 137],
      [{ ...known, deviceType: 'web' }, 117],
      [device({ channels: ['a b'] }), 112],
      [device({ badge: { __op: 'Increment', amount: 'x' } }), 111],
    ];
    const results = await Promise.all(
      [...good, ...bad.map(([body]) => body)].map((body) => result(app, body)),
    );
    expect(results).toEqual([...good.map(() => true), ...bad.map(([, code]) => code)]);
    expect(await transactionsOf(good)).toHaveProperty('size', 1);
  });

  test('of one device are all applied, whichever of its ids they name', async () => {
    const body = device({ deviceToken: 'many-names', n: 0 });
    const { objectId } = await save(app, body);
    const increment = { n: { __op: 'Increment', amount: 1 } };
    const { installationId } = body;
    const ids: JsonObject[] = [
      { installationId },
      { deviceToken: 'many-names', deviceType: 'android' },
      { objectId },
    ];
    const saves = Array.from({ length: 12 }, (_, i) => ({ ...ids[i % 3], ...increment }));
    const saved = await Promise.all(saves.map((one) => save(app, one)));
    expect(new Set(saved.map((one) => one.objectId))).toEqual(new Set([objectId]));
    expect((await rowsOf([body]))[0]?.fields).toEqual({ n: 12 });
  });

  test('give a device token to one of two new devices', async () => {
    const bodies = [device({ deviceToken: 'wanted' }), device({ deviceToken: 'wanted' })];
    const results = await Promise.all([...bodies, device()].map((body) => result(app, body)));
    expect(results.slice(0, 2).sort()).toEqual([137, true]);
    expect(results[2]).toBe(true);
    expect(await rowsOf(bodies)).toHaveLength(1);
  });

  test('renew device tokens, even one that another device gives up', async () => {
    const [a, b] = [device({ deviceToken: 'token-a' }), device({ deviceToken: 'token-b' })];
    await Promise.all([save(app, a), save(app, b)]);
    expect(
      await Promise.all([result(app, { ...a, deviceToken: 'token-c' }), result(app, device())]),
    ).toEqual([false, true]);
    expect(await result(app, { ...b, deviceToken: 'token-a' })).toBe(false);
  });

  test('keep the large members of an installation', async () => {
    const text = 'x'.repeat(50_000);
    const large = device({ text });
    const plain = device();
    await Promise.all([save(app, large), save(app, plain)]);
    await Promise.all(
      [large, plain].map(({ installationId }) => save(app, { installationId, seen: 1 })),
    );
    expect((await rowsOf([large]))[0]?.fields).toEqual({ text, seen: 1 });
    expect((await rowsOf([plain]))[0]?.fields).toEqual({ seen: 1 });
  });
});

describe('a save that waits for a lock', () => {
  test('for its row delays no other save', async () => {
    const locked = device();
    await save(app, locked);
    let isOver = false;
    const late = await api.db.transaction(async (tx) => {
      await tx.query(
        'SELECT 1 FROM installation WHERE app_id = $1 AND installation_id = $2 FOR UPDATE',
        [app.appId, locked.installationId],
      );
      const waiting = save(app, { ...locked, seen: 1 }).finally(() => {
        isOver = true;
      });
      const bodies = Array.from({ length: 10 }, () => device());
      await Promise.all(bodies.map((body) => save(app, body)));
      expect(await transactionsOf(bodies)).toHaveProperty('size', 1);
      expect(isOver).toBe(false);
      return { waiting };
    });
    expect(await late.waiting).toMatchObject({ isNew: false });
    expect((await rowsOf([locked]))[0]?.fields).toEqual({ seen: 1 });
  });

  test('for an id that another transaction inserts delays others only once', async () => {
    const hostile = await api.createApp();
    const taken = device();
    const bodies = Array.from({ length: 5 }, () => device());
    const after = [device(), device()];
    const late = await api.db.transaction(async (tx) => {
      await tx.query(
        `INSERT INTO installation (app_id, object_id, device_type, installation_id)
         VALUES ($1, 'taken', 'android', $2)`,
        [hostile.appId, taken.installationId],
      );
      const waiting = save(hostile, taken);
      await Promise.all(bodies.map((body) => save(app, body)));
      await Promise.all([save(hostile, device()), ...after.map((body) => save(app, body))]);
      expect(await transactionsOf(after)).toHaveProperty('size', 1);
      return { waiting };
    });
    expect(await late.waiting).toEqual({ objectId: 'taken', isNew: false });
  });
});

test('an app with too many waiting saves gets 429; other apps wait for one group', async () => {
  const hostile = await api.createApp();
  let doneOfHostile = 0;
  const attack = Array.from({ length: 2100 }, () =>
    save(hostile, device()).then(
      () => {
        doneOfHostile += 1;
        return 'saved';
      },
      (error) => `${error.name} ${error.isOfKey}`,
    ),
  );
  expect(await save(app, device())).toMatchObject({ isNew: true });
  expect(doneOfHostile).toBeLessThan(200);
  const results = await Promise.all(attack);
  expect(results.filter((one) => one === 'saved')).toHaveLength(2000);
  expect(results.filter((one) => one === 'QueueFull true')).toHaveLength(100);
});
