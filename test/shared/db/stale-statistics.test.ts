import { afterAll, beforeAll, expect, test } from 'vitest';
import { Database, type Handle } from '../../../shared/db/pool.ts';
import { findInstallation } from '../../../shared/db/tables/installations.ts';
import { findRole } from '../../../shared/db/tables/roles.ts';
import { deleteUser, findUser, setPassword } from '../../../shared/db/tables/users.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

/**
 * Statements about one row, in an app that has grown since the last ANALYZE. PostgreSQL then
 * expects one row of the app, so that every index that begins with the app looks equally good.
 */
let database: TestDatabase;
/** One connection, because each connection plans a prepared statement for itself. */
let db: Database;
const rows = 2000;
/** Executions after which PostgreSQL keeps the plan of a prepared statement. */
const warmUps = 6;

beforeAll(async () => {
  database = await createTestDatabase();
  db = new Database({ url: database.url, applicationName: 'test', maxConnections: 1 });
  await db.query('SET session_replication_role = replica');
  for (const table of ['installation', 'app_user', 'role'])
    await db.query(`ALTER TABLE ${table} SET (autovacuum_enabled = false)`);
  await fill('before');
  await db.query('ANALYZE');
  await fill('after');
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

async function fill(appId: string): Promise<void> {
  const series = `generate_series(1, ${rows}) AS i`;
  await db.query(
    `INSERT INTO installation (app_id, object_id, device_type, device_token)
     SELECT $1, lpad(i::text, 24, '0'), 'ios', lpad(i::text, 64, '0') FROM ${series}`,
    [appId],
  );
  await db.query(
    `INSERT INTO app_user (app_id, object_id, username, session_nonce, session_hash)
     SELECT $1, lpad(i::text, 24, '0'), 'user' || i, int8send(i) || int8send(i),
            sha256(i::text::bytea) FROM ${series}`,
    [appId],
  );
  await db.query(
    `INSERT INTO role (app_id, object_id, name, acl, fields)
     SELECT $1, lpad(i::text, 24, '0'), 'role' || i, '{}', '{}' FROM ${series}`,
    [appId],
  );
}

const objectId = '7'.padStart(24, '0');
const app = { appId: 'after', objectId };
const statements: [string, (tx: Handle) => Promise<unknown>][] = [
  ['a device is read', (tx) => findInstallation(tx, app)],
  ['a device is locked', (tx) => findInstallation(tx, { ...app, isLocked: true })],
  ['a user is read by id', (tx) => findUser(tx, 'after', { key: { objectId } })],
  ['a user is read by name', (tx) => findUser(tx, 'after', { key: { username: 'user7' } })],
  ['a user is deleted', (tx) => deleteUser(tx, 'after', 0)],
  [
    'a password is set',
    (tx) => setPassword(tx, 'after', { id: 2 * rows, hash: 'x', now: new Date() }),
  ],
  ['a role is read', (tx) => findRole(tx, 'after', { objectId })],
];

/** Returns how many rows of tables this connection has read and not reported yet. */
async function rowsRead(tx: Handle): Promise<number> {
  const { rows } = await tx.query<{ n: number }>(
    'SELECT sum(idx_tup_fetch + seq_tup_read)::int AS n FROM pg_stat_xact_user_tables',
  );
  return rows[0]?.n ?? 0;
}

test.each(statements)('%s without reading the rows of its app', async (_name, run) => {
  for (let i = 0; i < warmUps; i += 1) await db.transaction(run);
  const read = await db.transaction(async (tx) => {
    const before = await rowsRead(tx);
    await run(tx);
    return (await rowsRead(tx)) - before;
  });
  expect(read).toBeLessThan(20);
});
