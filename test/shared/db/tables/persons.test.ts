import { expect, test, vi } from 'vitest';
import { findSavedItem, putSavedItem } from '../../../../shared/db/tables/console.ts';
import {
  eraseDevices,
  listTextRows,
  type Person,
  replaceTexts,
} from '../../../../shared/db/tables/persons.ts';
import { countWaitingForLocks, openTestDatabase } from '../../../support/database.ts';

const { db } = await openTestDatabase({ settings: { deadlock_timeout: '10ms' } });
const appId = 'app-of-persons';

test('the erasure of a text does not undo a change made since the text was read', async () => {
  const key = { appId, kind: 'audience', name: 'one device' } as const;
  const where = { installationId: 'device-of-ada', orders: 12345678901234567890n };
  await putSavedItem(db, key, { content: { where }, updatedBy: 'x' });
  const page = { appId, texts: ['"device-of-ada"'], after: '', limit: 10 };
  const texts = { whole: new Set(['device-of-ada']), guarded: new Set(''), targets: new Set('') };
  const erase = async () => {
    const [row] = await listTextRows(db, 'savedItems', page);
    if (!row) throw new Error('no row');
    return () => replaceTexts(db, 'savedItems', { appId, row, texts });
  };
  const late = await erase();
  const changed = { where: { ...where, city: 'Turin' } };
  await putSavedItem(db, key, { content: changed, updatedBy: 'y' });
  expect(await late()).toBe(false);
  expect((await findSavedItem(db, key))?.content).toEqual(changed);
  expect(await (await erase())()).toBe(true);
  expect((await findSavedItem(db, key))?.content).toEqual({
    where: { ...changed.where, installationId: 'erased' },
  });
});

test('the erasure of a text ends for a row with a number that JavaScript rounds', async () => {
  await db.query(
    `INSERT INTO saved_item (app_id, kind, name, content, updated_by)
     VALUES ($1, 'audience', 'rounded', '{"id": "device-of-bob", "n": 0.12345678901234567890}', 'x')`,
    [appId],
  );
  const page = { appId, texts: ['"device-of-bob"'], after: '', limit: 10 };
  const texts = { whole: new Set(['device-of-bob']), guarded: new Set(''), targets: new Set('') };
  const [row] = await listTextRows(db, 'savedItems', page);
  if (!row) throw new Error('no row');
  expect(await replaceTexts(db, 'savedItems', { appId, row, texts })).toBe(true);
  expect(await listTextRows(db, 'savedItems', page)).toEqual([]);
});

const person: Person = { appId, userId: 1, objectId: 'ada', contacts: [], lockDigests: [] };

/** Devices of the person. */
const [high, low] = [1200, 100];

/** Writes two rows of each table of the devices. The row with the lower key is stored last. */
async function insertRows(): Promise<void> {
  for (const table of ['installation', 'channel_inbox', 'channel_group', 'push_receipt'])
    await db.query(`DELETE FROM ${table} WHERE app_id = $1`, [appId]);
  for (const [place, device] of [low, high].entries()) {
    const id = 20 - 10 * place;
    await db.query(
      `INSERT INTO installation (app_id, id, object_id, device_type) OVERRIDING SYSTEM VALUE
       VALUES ($1, $2, 'object-' || $3::text, 'ios')`,
      [appId, place === 0 ? high : low, place],
    );
    await db.query(
      `INSERT INTO channel_inbox (app_id, id, installation, push_id, message_id)
         OVERRIDING SYSTEM VALUE VALUES ($1, $2, $3, 1, 1)`,
      [appId, id, device],
    );
    await db.query(
      `INSERT INTO channel_group (app_id, id, push_id, message_id, lowest, highest, pending,
         expires_at)
       VALUES ($1, $2, $3, 1, $4, $4, ARRAY[$4::bigint], now())`,
      [appId, id, place, device],
    );
    await db.query(
      `INSERT INTO push_receipt (app_id, push_id, connector, block, delivered)
       VALUES ($1, $2, 'fcm', $3::bigint / 512, ~0::bit(512))`,
      [appId, id, device],
    );
  }
}

const lockIn = (table: string, condition: string) =>
  `SELECT FROM ${table} WHERE app_id = $1 AND ${condition} FOR UPDATE`;

test.each([
  ['receipts', lockIn('push_receipt', 'push_id = 10'), lockIn('push_receipt', 'push_id = 20')],
  ['groups', lockIn('channel_group', 'id = 10'), lockIn('channel_group', 'id = 20')],
  ['inboxes', lockIn('channel_inbox', 'id = 10'), lockIn('channel_inbox', 'id = 20')],
  ['a group and an inbox', lockIn('channel_group', 'id = 10'), lockIn('channel_inbox', 'id = 10')],
  ['devices', lockIn('installation', 'id = 100'), lockIn('installation', 'id = 1200')],
])('the erasure of devices locks %s in the order of other calls', async (_of, first, second) => {
  await insertRows();
  let erasure: Promise<unknown> = Promise.resolve();
  await db.transaction(async (tx) => {
    await tx.query(first, [appId]);
    erasure = db.transaction((other) => eraseDevices(other, person, [high, low]));
    erasure.catch(() => undefined);
    await vi.waitUntil(async () => (await countWaitingForLocks(db)) === 1, { timeout: 20_000 });
    await tx.query(second, [appId]);
  });
  await expect(erasure).resolves.toMatchObject({ installations: 2, channelMessages: 4 });
});
