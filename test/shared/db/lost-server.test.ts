import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { startDispatcher } from '../../../dispatcher/start.ts';
import { isConnectionFailure } from '../../../shared/db/limits/database-errors.ts';
import { QueryLimiter, queryLimitsFor } from '../../../shared/db/limits/query-limits.ts';
import { Database } from '../../../shared/db/pool.ts';
import { query } from '../../../shared/db/query.ts';
import { chooseScanDatabase } from '../../../shared/db/standby.ts';
import { silentLog, testConfig } from '../../support/api.ts';
import { areDatabasesSharded, openTestDatabase } from '../../support/database.ts';

const { db: primary, url } = await openTestDatabase();

/** The proxy needs a server that listens on a Unix socket. */
const testOnOneServer = test.skipIf(areDatabasesSharded());

/**
 * Starts a proxy in front of the server of the tests, which listens on a Unix socket. `freeze` keeps
 * the connections open, and drops all their data.
 */
async function startProxy() {
  const [, user, database, folder] = /^postgresql:\/\/(.+)@\/(.+)\?host=(.+)&port/.exec(url) ?? [];
  const sockets: Socket[] = [];
  const server = createServer((near) => {
    const far = connect(`${folder}/.s.PGSQL.5432`);
    sockets.push(near, far);
    near.on('data', (data) => far.write(data));
    far.on('data', (data) => near.write(data));
    for (const socket of [near, far]) socket.on('error', () => undefined);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  return {
    url: `postgresql://${user}@127.0.0.1:${port}/${database}`,
    freeze() {
      for (const socket of sockets) socket.removeAllListeners('data').resume();
    },
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

testOnOneServer(
  'a standby that stops answering is not waited for: the primary is read',
  async () => {
    const proxy = await startProxy();
    const standby = new Database({ url: proxy.url, applicationName: 'test' });
    expect(await chooseScanDatabase(primary, standby)).toBe(standby);
    proxy.freeze();
    expect(await chooseScanDatabase(primary, standby)).toBe(primary);
    proxy.close();
    await standby.close();
  },
);

testOnOneServer(
  'a statement fails when its server is lost, and a limited read uses the primary',
  async () => {
    const proxy = await startProxy();
    const lost = new Database({ url: proxy.url, applicationName: 'test', statementTimeoutMs: 100 });
    const limits = queryLimitsFor(4);
    const limiter = new QueryLimiter({ primary, standby: lost, limits });
    const caller = { app: { appId: 'app' }, isMaster: false };
    const read = () =>
      limiter.read(caller, (tx) => query(tx).value<number>('SELECT 1'), { timeoutMs: 200 });
    await read();
    await lost.warmUp((connection) => connection.query('SELECT 1'), 5);
    proxy.freeze();
    const select = { text: 'SELECT 1', name: 'one' };
    const failures = await Promise.allSettled([
      lost.query('SELECT 1'),
      lost.transaction((tx) => tx.query(select)),
      lost.transaction((tx) => tx.query(select), { statementTimeoutMs: 200 }),
      lost.queryWithin(300, select),
      lost.withConnection((connection) => connection.query(select)),
    ]);
    expect(
      failures.map((end) => end.status === 'rejected' && isConnectionFailure(end.reason)),
    ).toEqual([true, true, true, true, true]);
    expect(lost.takeFailures()).toEqual({ unreachable: 4 });
    expect(lost.use).toMatchObject({ used: 0, idle: 0 });
    expect(await read()).toBe(1);
    proxy.close();
    await lost.close();
  },
  30_000,
);

testOnOneServer.each(['DATABASE_READ_URL', 'DATABASE_URL'])(
  'a scrape of a dispatcher does not wait for the server of %s',
  async (variable) => {
    const proxy = await startProxy();
    const urls = variable === 'DATABASE_URL' ? [proxy.url, url] : [url, proxy.url];
    const config = testConfig(urls[0] ?? '', { DATABASE_READ_URL: urls[1] ?? '' });
    const { metricsPort, stack } = await startDispatcher(config, silentLog);
    const scrape = async () =>
      (
        await fetch(`http://127.0.0.1:${metricsPort}/metrics`, {
          signal: AbortSignal.timeout(10_000),
        })
      ).text();
    expect(await scrape()).toContain('carillon_breaker_state');
    proxy.freeze();
    expect(await scrape()).toContain('carillon_breaker_state');
    proxy.close();
    await stack.close();
  },
  30_000,
);
