import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../../ops/local/ports.ts';
import { waitForDatabase } from '../../../shared/db/outage.ts';
import { Database } from '../../../shared/db/pool.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database?.drop());

const silent = pino({ level: 'silent' });

/** Returns a log and a promise of its first line. */
function observedLog() {
  let resolveFirst: () => void;
  const firstLine = new Promise<void>((resolve) => {
    resolveFirst = resolve;
  });
  return { log: pino({ level: 'warn' }, { write: () => resolveFirst() }), firstLine };
}

/** Returns the path of the database's socket for the relay. */
function socketPath(): string {
  const host = new URLSearchParams(database.url.split('?')[1]).get('host');
  return `${host}/.s.PGSQL.5432`;
}

test('a process waits for a database that is not up yet', async () => {
  const relay = () =>
    createServer((socket) => {
      const other = connect(socketPath());
      socket.on('error', () => other.destroy()).pipe(other);
      other.on('error', () => socket.destroy()).pipe(socket);
    });
  const port = await freePort();
  const name = /test_[0-9a-f]+/.exec(database.url)?.[0];
  const url = `postgresql://carillon@127.0.0.1:${port}/${name}`;
  const db = new Database({ url, applicationName: 'late' });
  const { log, firstLine } = observedLog();
  const waiting = waitForDatabase(db, log);
  await firstLine;
  const server = relay();
  await once(server.listen(port, '127.0.0.1'), 'listening');
  await waiting;
  expect((await db.query<{ n: number }>('SELECT 1 AS n')).rows).toEqual([{ n: 1 }]);
  await db.close();
  server.close();
});

test('a missing database is reported immediately', async () => {
  const url = database.url.replace(/test_[0-9a-f]+/, 'nowhere');
  const db = new Database({ url, applicationName: 'lost' });
  await expect(waitForDatabase(db, silent)).rejects.toThrow('"nowhere" does not exist');
  await db.close();
});
