import { expect, test } from 'vitest';
import { findSavedItem, putSavedItem } from '../../../../shared/db/tables/console.ts';
import { listTextRows, replaceTexts } from '../../../../shared/db/tables/persons.ts';
import { openTestDatabase } from '../../../support/database.ts';

const { db } = await openTestDatabase();
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
