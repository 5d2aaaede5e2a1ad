import { expect, test } from 'vitest';
import { query } from '../../../../shared/db/query.ts';
import {
  limitOfToken,
  maxTokensOfDevice,
  maxTypesOfApp,
  saveToken,
} from '../../../../shared/db/tables/live-activities.ts';
import { openTestDatabase, runDuring } from '../../../support/database.ts';

const { db } = await openTestDatabase();

/** Inserts an app with two devices. Returns its id and theirs. */
async function anApp(appId: string): Promise<{ appId: string; devices: number[] }> {
  await db.query(
    `INSERT INTO app (app_id, name, edition, plan, secrets)
     VALUES ($1, $1, 'home', 'commercial', '')`,
    [appId],
  );
  const devices = await query(db).column<number>(
    `INSERT INTO installation (app_id, object_id, device_type)
     VALUES ($1, 'a', 'ios'), ($1, 'b', 'ios') RETURNING id`,
    [appId],
  );
  return { appId, devices };
}

const insertTokens = (appId: string, kind: string, [device]: number[], n: number) =>
  db.query(
    `INSERT INTO live_activity_token (app_id, kind, name, installation, token)
     SELECT $1, $2, 'n' || n, $3, 't' || n FROM generate_series(1, $4::int) AS n`,
    [appId, kind, device, n],
  );

test('concurrent reports do not exceed the limit of a device', async () => {
  const { appId, devices } = await anApp('limit of a device');
  await insertTokens(appId, 'update', devices, maxTokensOfDevice - 1);
  const key = { appId, kind: 'update', installation: devices[0] ?? 0 } as const;
  const limit = await runDuring(
    db,
    async (tx) => {
      expect(await limitOfToken(tx, { ...key, name: 'x' })).toBeNull();
      await saveToken(tx, { ...key, name: 'x', token: 'x' });
    },
    (tx) => limitOfToken(tx, { ...key, name: 'y' }),
  );
  expect(limit).toBe('device');
});

test('concurrent reports do not exceed the limit of an app', async () => {
  const { appId, devices } = await anApp('limit of an app');
  await insertTokens(appId, 'start', devices, maxTypesOfApp - 1);
  const [, device = 0] = devices;
  const third = await query(db).number(
    `INSERT INTO installation (app_id, object_id, device_type) VALUES ($1, 'c', 'ios')
     RETURNING id`,
    [appId],
  );
  const key = { appId, kind: 'start' } as const;
  const limit = await runDuring(
    db,
    async (tx) => {
      expect(await limitOfToken(tx, { ...key, installation: device, name: 'x' })).toBeNull();
      await saveToken(tx, { ...key, installation: device, name: 'x', token: 'x' });
    },
    (tx) => limitOfToken(tx, { ...key, installation: third, name: 'y' }),
  );
  expect(limit).toBe('app');
});

test('a token that two devices report at the same time belongs to one of them', async () => {
  const { appId, devices } = await anApp('one token');
  const [one = 0, other = 0] = devices;
  const key = { appId, kind: 'start', name: 'x', token: 'same' } as const;
  await runDuring(
    db,
    (tx) => saveToken(tx, { ...key, installation: one }),
    (tx) => saveToken(tx, { ...key, installation: other }),
  );
  const holders = await query(db).column<number>(
    'SELECT installation FROM live_activity_token WHERE app_id = $1',
    [appId],
  );
  expect(holders).toEqual([other]);
});

test('a device that is deleted during the report gets no token', async () => {
  const { appId, devices } = await anApp('a deleted device');
  const installation = devices[0] ?? 0;
  const limit = await runDuring(
    db,
    (tx) => tx.query('DELETE FROM installation WHERE app_id = $1', [appId]),
    (tx) => limitOfToken(tx, { appId, kind: 'update', name: 'x', installation }),
  );
  expect(limit).toBeUndefined();
});
