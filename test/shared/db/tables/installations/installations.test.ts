import { expect, test } from 'vitest';
import { insertBatches } from '../../../../../shared/db/tables/batches.ts';
import {
  findInstallationsOfDevice,
  insertInstallation,
  updateInstallation,
  updateInstallationVersion,
} from '../../../../../shared/db/tables/installations.ts';
import { loadBatches, savedAtMs } from '../../../../../shared/db/tables/recipients.ts';
import {
  changedDraft,
  parseInstallationChanges,
} from '../../../../../shared/domain/installations/changes.ts';
import { deviceIdsOf } from '../../../../../shared/domain/installations/identity.ts';
import { openTestDatabase } from '../../../../support/database.ts';

const { db } = await openTestDatabase();

const appId = 'app';
const draftOf = (members: Record<string, string>) =>
  changedDraft(undefined, parseInstallationChanges({ deviceType: 'android', ...members }));

/** Inserts an installation that was saved at the given time. */
async function insert(members: Record<string, string>, now = new Date(1_000_000_000_123)) {
  const objectId = `object of ${JSON.stringify(members)}`;
  const created = await insertInstallation(db, appId, { objectId, draft: draftOf(members), now });
  if (!created) throw new Error('it exists');
  return created;
}

test('an update without a lock writes nothing to a row that has changed', async () => {
  const { id } = await insert({ installationId: 'changing' });
  const ids = deviceIdsOf(parseInstallationChanges({ installationId: 'changing' }));
  const read = await findInstallationsOfDevice(db, appId, ids);
  const version = [...read.values()][0] ?? '';
  const first = {
    id,
    draft: draftOf({ installationId: 'changing', name: 'first' }),
    now: new Date(1),
  };
  const second = {
    id,
    draft: draftOf({ installationId: 'changing', name: 'second' }),
    now: new Date(2),
  };
  expect(await updateInstallation(db, appId, first)).toMatchObject({ fields: { name: 'first' } });
  expect(await updateInstallationVersion(db, appId, { ...second, version })).toBeUndefined();
  const current = await findInstallationsOfDevice(db, appId, ids);
  const [[installation, newVersion] = []] = [...current];
  expect(installation?.fields).toEqual({ name: 'first' });
  const saved = await updateInstallationVersion(db, appId, {
    ...second,
    version: newVersion ?? '',
  });
  expect(saved?.fields).toEqual({ name: 'second' });
});

test('recipients are loaded, even if a token contains the separator', async () => {
  const saved = new Date(1_700_000_000_456);
  const tokens = ['plain', 'two\nlines', '"quoted"\\'];
  const created = await Promise.all(
    tokens.map((_, i) => insert({ registrationId: `registration-${i}`, vendor: 'mi' }, saved)),
  );
  // The api refuses such tokens, but a row may still contain one.
  for (const [i, { id }] of created.entries())
    await db.query('UPDATE installation SET registration_id = $2 WHERE id = $1', [id, tokens[i]]);
  const without = await insert({ installationId: 'without-registration', vendor: 'mi' }, saved);
  const ids = [...created, without].map(({ id }) => id);
  const load = async (wanted: number[]) => {
    const recipients = [...wanted, 999_999];
    const batch = {
      connector: 'vendor_b',
      profile: '',
      recipients,
      badges: null,
      attempt: 0,
      hasJob: true,
    } as const;
    const [batchId = 0] = await insertBatches(db, appId, 1, [batch]);
    const [loaded] = await loadBatches(db, [{ appId, batchId }], 'registrationId');
    const groups = loaded?.groups ?? [];
    return new Map(
      groups.flatMap((group) =>
        group.ids.map((id, place) => [id, [group.tokens[place], savedAtMs(group, place)]] as const),
      ),
    );
  };
  const loadedTokens = ['plain', 'two lines', '"quoted"\\', ''];
  const expected = loadedTokens.map((token, i) => [ids[i], [token, saved.getTime()]]);
  expect([...(await load(ids))].sort()).toEqual(expected.sort());
  expect(await load(ids.slice(0, 1))).toEqual(new Map([[ids[0], ['plain', saved.getTime()]]]));
});
