import { expect, test } from 'vitest';
import { Database, type Handle } from '../../../../../shared/db/pool.ts';
import {
  findInstallationsOfDevices,
  saveSettings,
  writeInstallationGroup,
} from '../../../../../shared/db/tables/installation-saves.ts';
import {
  changedDraft,
  parseInstallationChanges,
} from '../../../../../shared/domain/installations/changes.ts';
import { areDatabasesSharded, openTestDatabase } from '../../../../support/database.ts';

/** Runs a test that depends on how a single server writes rows and waits for locks. */
const testOnOneServer = test.skipIf(areDatabasesSharded());

const { db, url } = await openTestDatabase({ maxConnections: 1, settings: saveSettings });

const appId = 'app';
const idsOf = (installationId: string) => ({
  objectId: undefined,
  installationId,
  deviceToken: undefined,
  registrationId: undefined,
});
const draftOf = (installationId: string) =>
  changedDraft(undefined, parseInstallationChanges({ deviceType: 'android', installationId }));
const write = (handle: Handle, installationIds: string[]) =>
  writeInstallationGroup(handle, {
    inserts: installationIds.map((id) => ({
      appId,
      objectId: `object of ${id}`,
      draft: draftOf(id),
    })),
    updates: [],
    now: new Date(1000),
  });

testOnOneServer(
  'an update writes nothing to a row that was changed, locked or deleted',
  async () => {
    const names = ['changed', 'locked', 'gone', 'free'];
    await write(db, names);
    const found = await findInstallationsOfDevices(
      db,
      names.map((name) => ({ appId, ids: idsOf(name) })),
    );
    const updates = found.flat().map(({ installation, row }) => ({
      appId,
      id: installation.id,
      row,
      draft: { ...draftOf(installation.installationId ?? ''), fields: { seen: true } },
    }));
    expect(updates).toHaveLength(4);
    await db.query(`UPDATE installation SET badge = 1 WHERE installation_id = 'changed'`);
    await db.query(`DELETE FROM installation WHERE installation_id = 'gone'`);
    const holder = new Database({ url, applicationName: 'test' });
    const { updated } = await holder.transaction(async (tx) => {
      await tx.query(`SELECT 1 FROM installation WHERE installation_id = 'locked' FOR UPDATE`);
      return writeInstallationGroup(db, { inserts: [], updates, now: new Date(2000) });
    });
    await holder.close();
    const { rows } = await db.query<{ id: number; installation_id: string }>(
      `SELECT id, installation_id FROM installation WHERE fields = '{"seen": true}'
      AND updated_at = $1`,
      [new Date(2000)],
    );
    expect(rows.map((row) => row.installation_id)).toEqual(['free']);
    expect([...updated]).toEqual(rows.map(({ id }) => id));
  },
);

testOnOneServer('an insert skips ids that are taken', async () => {
  await write(db, ['taken']);
  expect([...(await write(db, ['taken', 'new'])).inserted]).toEqual(['object of new']);
});

testOnOneServer('plans find rows by index or ctid, whatever the statistics are', async () => {
  const statements: string[] = [];
  const recorder: Handle = {
    query: (statement, values) => {
      const text = typeof statement === 'string' ? statement : statement.text;
      if (/\binstallation\b/.test(text)) statements.push(text);
      return db.query(statement, values);
    },
  };
  await write(recorder, ['planned']);
  const [found] = await findInstallationsOfDevices(recorder, [{ appId, ids: idsOf('planned') }]);
  const updates = (found ?? []).map(({ installation, row }) => ({
    appId,
    id: installation.id,
    row,
    draft: draftOf('planned'),
  }));
  const inserts = [{ appId, objectId: 'both', draft: draftOf('both') }];
  await writeInstallationGroup(recorder, { inserts: [], updates, now: new Date(3000) });
  await writeInstallationGroup(recorder, { inserts, updates: [], now: new Date(3000) });
  await writeInstallationGroup(recorder, { inserts, updates, now: new Date(3000) });
  for (const prepareStatistics of ['DELETE FROM installation', 'VACUUM ANALYZE installation']) {
    await db.query(prepareStatistics);
    for (const text of new Set(statements)) expect(await scansOf(text)).toEqual([]);
  }
});

/** Returns the lines of a plan that scan the table instead of looking up single rows. */
async function scansOf(text: string): Promise<string[]> {
  const count = Math.max(...[...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number)));
  await db.query(`PREPARE tried AS ${text}`);
  const { rows } = await db.query<{ 'QUERY PLAN': string }>(
    `EXPLAIN EXECUTE tried(${Array.from({ length: count }, () => 'NULL').join(', ')})`,
  );
  await db.query('DEALLOCATE tried');
  const lines = rows.map((row) => row['QUERY PLAN']);
  return lines.filter(
    (line, i) =>
      / on installation/.test(line) &&
      !/Insert on|Update on|LockRows/.test(line) &&
      !/(Index Cond: \(\(app_id = .* AND \(|TID Cond:)/.test(lines[i + 1] ?? ''),
  );
}
