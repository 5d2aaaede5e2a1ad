import { expect, test } from 'vitest';
import {
  findInstallationsOfDevices,
  writeInstallationGroup,
} from '../../../../../shared/db/tables/installation-saves.ts';
import {
  findInstallationsOfDevice,
  insertInstallation,
  updateInstallation,
  updateInstallationVersion,
} from '../../../../../shared/db/tables/installations.ts';
import {
  changedDraft,
  parseInstallationChanges,
} from '../../../../../shared/domain/installations/changes.ts';
import { deviceIdsOf } from '../../../../../shared/domain/installations/identity.ts';
import { areDatabasesSharded, openTestDatabase } from '../../../../support/database.ts';

/** Runs a test that depends on how a single server writes rows and waits for locks. */
const testOnOneServer = test.skipIf(areDatabasesSharded());

// A connection sees its own statistics as soon as it has reported them.
const { db } = await openTestDatabase({ maxConnections: 1 });

const appId = 'app';
const ids = { installationId: 'saved' };
const draftOf = (members: Record<string, unknown> = {}) =>
  changedDraft(
    undefined,
    parseInstallationChanges({
      deviceType: 'ios',
      deviceToken: 'ab'.repeat(32),
      channels: ['news'],
      city: 'Basel',
      ...ids,
      ...members,
    }),
  );

/**
 * Returns the number of updates of the table since the last call, and the number that wrote no
 * index.
 */
const updatesSince = (() => {
  let before = { all: 0, hot: 0 };
  return async () => {
    await db.query('SELECT pg_stat_force_next_flush()');
    const { rows } = await db.query<{ all: number; hot: number }>(
      `SELECT n_tup_upd::int AS all, n_tup_hot_upd::int AS hot FROM pg_stat_user_tables
        WHERE relname = 'installation'`,
    );
    const { all = 0, hot = 0 } = rows[0] ?? {};
    const since = { all: all - before.all, hot: hot - before.hot };
    before = { all, hot };
    return since;
  };
})();

/** Inserts an installation into a page that has room for its next version (`fillfactor`). */
async function insert(): Promise<number> {
  await db.query('TRUNCATE installation CASCADE');
  const created = await insertInstallation(db, appId, {
    objectId: 'object',
    draft: draftOf(),
    now: new Date(1),
  });
  if (!created) throw new Error('it exists');
  await updatesSince();
  return created.id;
}

const deviceIds = deviceIdsOf(parseInstallationChanges(ids));
const versionOf = async () =>
  [...(await findInstallationsOfDevice(db, appId, deviceIds)).values()][0] ?? '';
const rowOf = async () => {
  const [[found] = []] = await findInstallationsOfDevices(db, [{ appId, ids: deviceIds }]);
  if (!found) throw new Error('it does not exist');
  return found.row;
};

const saves: [
  string,
  (id: number, save: { draft: ReturnType<typeof draftOf>; now: Date }) => Promise<unknown>,
][] = [
  ['under a lock', (id, save) => updateInstallation(db, appId, { id, ...save })],
  [
    'of a version',
    async (id, save) =>
      updateInstallationVersion(db, appId, { id, ...save, version: await versionOf() }),
  ],
  [
    'in a group',
    async (id, { draft, now }) =>
      writeInstallationGroup(db, {
        inserts: [],
        updates: [{ appId, id, row: await rowOf(), draft }],
        now,
      }),
  ],
];

testOnOneServer.each(saves)(
  'a save %s that changes only updatedAt and the badge writes no index',
  async (_way, save) => {
    const id = await insert();
    for (const second of [2, 3, 4])
      await save(id, { draft: draftOf(), now: new Date(second * 1000) });
    await save(id, { draft: draftOf({ badge: 5 }), now: new Date(5000) });
    expect(await updatesSince()).toEqual({ all: 4, hot: 4 });
  },
);

testOnOneServer.each(saves)(
  'a save %s that changes a channel or a custom member writes indexes',
  async (_way, save) => {
    const id = await insert();
    await save(id, { draft: draftOf({ channels: ['sports'] }), now: new Date(2000) });
    await save(id, { draft: draftOf({ channels: ['sports'], city: 'Bern' }), now: new Date(3000) });
    expect(await updatesSince()).toEqual({ all: 2, hot: 0 });
  },
);
