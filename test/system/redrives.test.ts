import { afterAll, beforeAll, expect, test } from 'vitest';
import { type RunningDispatcher, startDispatcher } from '../../dispatcher/start.ts';
import { Vault } from '../../shared/crypto.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import { callbackUrl } from '../../shared/http/outbound-addresses.ts';
import { silentLog, startTestApi, type TestApi, testConfig } from '../support/api.ts';
import { type MailServer, startMailServer } from '../support/servers/mail-server.ts';
import { changeMessages } from '../support/tables.ts';
import { useTestApi } from '../support/test-api.ts';

const api = useTestApi();
let other: TestApi;
let mailServer: MailServer;
let dispatcher: RunningDispatcher | undefined;

beforeAll(async () => {
  mailServer = await startMailServer();
  other = await startTestApi({ databaseUrl: api.databaseUrl });
});
afterAll(async () => {
  await Promise.all([other.close(), dispatcher?.stack.close()]);
  await mailServer.close();
});

const path = ({ appId }: App, rest: string) => `/console/api/apps/${appId}/${rest}`;
const redrive = (from: Pick<TestApi, 'request'>, app: App, of: string, body: object = {}) =>
  from.request('POST', path(app, `${of}/redrive`), { admin: true, body });

test('mails that five concurrent calls to two processes redrive are sent once each', async () => {
  const app = await api.createApp({ emailVerification: true });
  const email = 'anna@example.com';
  await api.request('POST', '/1.1/users', {
    app,
    body: { username: 'anna', password: 'p', email },
  });
  // State in which dispatchers leave mails that the provider refused: without a job.
  await api.db.query("DELETE FROM pgboss.job WHERE name = 'message'");
  await changeMessages(api.db, app, { state: 'failed', reason: 'refused', attempts: 4 });
  await api.db.query(
    `INSERT INTO outbox (app_id, kind, recipient, type, body, state, attempts, reason, created_at,
      expires_at)
     SELECT app_id, kind, recipient, type, body, state, attempts, reason, created_at, expires_at
       FROM outbox, generate_series(1, 39) WHERE app_id = $1`,
    [app.appId],
  );
  const calls = await Promise.all(
    [api, other, api, other, api].map((from) => redrive(from, app, 'outbox')),
  );
  const messages = calls.map(({ body }) => Number(body.messages));
  expect(messages.reduce((sum, n) => sum + n, 0)).toBe(40);
  dispatcher = await startDispatcher(
    testConfig(api.databaseUrl, { SMTP_URL: mailServer.url }),
    silentLog,
  );
  const states = async () => {
    const { rows } = await api.db.query(
      `SELECT state, count(*) AS n, (SELECT count(*) FROM pgboss.job WHERE name = 'message'
        AND state <> 'completed') AS jobs
         FROM outbox WHERE app_id = $1 GROUP BY state`,
      [app.appId],
    );
    return rows;
  };
  await expect.poll(states, { interval: 50 }).toEqual([{ state: 'sent', n: 40, jobs: 0 }]);
  expect(mailServer.mails.map(({ to }) => to)).toEqual(Array(40).fill([email]));
  expect((await redrive(api, app, 'outbox')).body).toMatchObject({ messages: 0, next: null });
});

test('an app keeps 1000 refused receipts; a metric counts the others', async () => {
  const app = await api.createApp();
  const vault = new Vault(testConfig(api.databaseUrl).secrets);
  const url = callbackUrl(api.url, vault, {
    appId: app.appId,
    connector: 'vendor_c',
    generation: 0,
  });
  const refuse = async (text: string) => {
    const body = new URLSearchParams({ cb: text }).toString();
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
    return (await fetch(url, { method: 'POST', body, headers })).status;
  };
  const kept = async () => {
    const { rows } = await api.db.query<{ n: number; other: boolean }>(
      'SELECT count(*) AS n FROM failed_receipt WHERE app_id = $1',
      [app.appId],
    );
    return rows[0]?.n;
  };
  const metric = async (isKept: string) => {
    const { body } = await api.request('GET', '/metrics');
    const line = `carillon_receipt_calls_refused_total{connector="vendor_c",kept="${isKept}"} `;
    return Number(String(body).split(line)[1]?.split('\n')[0] ?? 0);
  };
  expect(await refuse('x'.repeat(65 * 1024))).toBeGreaterThanOrEqual(400);
  expect([await kept(), await metric('no')]).toEqual([0, 1]);
  expect(await refuse('no receipts')).toBeGreaterThanOrEqual(400);
  expect([await kept(), await metric('yes')]).toEqual([1, 1]);
  await api.db.query(
    `INSERT INTO failed_receipt (app_id, connector, digest, status, reason, bytes, call)
     SELECT app_id, connector, 'copy ' || i, status, reason, bytes, call
       FROM failed_receipt, generate_series(1, 999) AS i WHERE app_id = $1`,
    [app.appId],
  );
  expect(await refuse('one more')).toBeGreaterThanOrEqual(400);
  expect([await kept(), await metric('no')]).toEqual([1000, 2]);
  // The limit is per app.
  const neighbour = await api.createApp();
  const { pathname } = new URL(
    callbackUrl(api.url, vault, { appId: neighbour.appId, connector: 'vendor_c', generation: 0 }),
  );
  await fetch(api.url + pathname, { method: 'POST', body: 'cb=x' });
  expect(await metric('yes')).toBe(2);
});
