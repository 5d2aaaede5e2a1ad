import { once } from 'node:events';
import { createServer } from 'node:http';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import {
  checkFreezes,
  checkGateways,
  type Finding,
} from '../../../api/services/operator/doctor/checks.ts';
import {
  checkCredentials,
  checkRotations,
  checkSecretKeys,
} from '../../../api/services/operator/doctor/credential-checks.ts';
import { checkDatabase, checkMigrations } from '../../../ops/cli/doctor/database.ts';
import { checkAdminToken, checkProcess } from '../../../ops/cli/doctor/processes.ts';
import { createApnsCredentials } from '../../../ops/sandbox/apns/server.ts';
import { systemClock } from '../../../shared/clock.ts';
import { Vault } from '../../../shared/crypto.ts';
import { Database } from '../../../shared/db/pool.ts';
import { clearGatewayFailure, recordGatewayFailure } from '../../../shared/db/tables/gateways.ts';
import { ProcessRegister } from '../../../shared/db/tables/processes.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { connectionReason, withStatus } from '../../../shared/domain/reasons.ts';
import { silentLog, testConfig } from '../../support/api.ts';
import { useTestService } from '../../support/service.ts';

const service = useTestService();
let app: App;

beforeAll(async () => {
  app = await service.api.createApp();
  await service.addApnsProfile(app);
});

const brief = (findings: Finding[]) => findings.map(({ status, code }) => [status, code]);
const admin = (method: string, path: string, body?: object) =>
  service.api.request(method, `/console/api${path}`, { admin: true, ...(body ? { body } : {}) });

describe('the clock of the database', () => {
  test.each([
    [0, 'ok'],
    [10_000, 'warn'],
    [-10_000, 'warn'],
    [120_000, 'fail'],
  ])('that differs by %d ms is reported as %s', async (ms, status) => {
    const [database, clock] = await checkDatabase(service.db, {
      ...systemClock,
      now: () => Date.now() + ms,
    });
    expect([database, clock]).toMatchObject([
      { name: 'database', status: 'ok' },
      { name: 'clock', status },
    ]);
    if (ms !== 0) expect(clock?.detail).toContain(ms > 0 ? ' behind ' : ' ahead of ');
  });
});

test('a database whose migrations cannot be read is reported', async () => {
  expect(await checkMigrations(service.databaseUrl)).toMatchObject({
    name: 'migrations',
    status: 'ok',
  });
  expect(
    await checkMigrations(service.databaseUrl.replace(/test_[0-9a-f]{16}/, 'gone')),
  ).toMatchObject({
    name: 'migrations',
    status: 'fail',
    detail: expect.stringContaining('does not exist'),
  });
});

test('freezes of an app and of the service are reported until they end', async () => {
  expect(await checkFreezes(service.db)).toEqual([]);
  for (const path of [`/apps/${app.appId}/freeze`, '/freeze'])
    expect((await admin('PUT', path, { reason: 'a wrong text' })).status).toBe(200);
  const findings = await checkFreezes(service.db);
  expect(brief(findings)).toEqual([
    ['warn', 'serviceFrozen'],
    ['warn', 'appFrozen'],
  ]);
  expect(findings[1]?.params).toMatchObject({ app: app.appId, reason: 'a wrong text' });
  for (const path of [`/apps/${app.appId}/freeze`, '/freeze']) await admin('DELETE', path);
  expect(await checkFreezes(service.db)).toEqual([]);
});

test.each([
  [withStatus(503, 'ServiceUnavailable'), 'gatewayFails'],
  ['ENOTFOUND', 'gatewayWithoutName'],
  [connectionReason('SELF_SIGNED_CERT_IN_CHAIN'), 'gatewayUntrusted'],
  [connectionReason('PROXY_407'), 'gatewayWithoutTunnel'],
  ['ECONNREFUSED', 'gatewayUnreached'],
])(
  'a gateway that failed with %s is reported with its reason until it answers',
  async (reason, code) => {
    expect(brief(await checkGateways(service.db))).toEqual([['ok', 'gatewaysFine']]);
    const key = { appId: app.appId, connector: 'apns', profile: '_default' } as const;
    await recordGatewayFailure(service.db, key, { reason, at: new Date() });
    expect(brief(await checkGateways(service.db))).toEqual([['warn', code]]);
    await clearGatewayFailure(service.db, key, new Date());
    expect(brief(await checkGateways(service.db))).toEqual([['ok', 'gatewaysFine']]);
  },
);

test('a failure of the database is not reported as a missing key', async () => {
  const url = service.databaseUrl;
  const impatient = new Database({ url, applicationName: 'test', statementTimeoutMs: 200 });
  const vault = new Vault(testConfig(url).secrets);
  await service.db.transaction(async (tx) => {
    await tx.query('LOCK TABLE profile_rotation IN ACCESS EXCLUSIVE MODE');
    const checked = checkCredentials({ db: impatient, vault, nowMs: Date.now() });
    await expect(checked).rejects.toThrow('statement timeout');
  });
  await impatient.close();
});

test('credentials on trial are reported if their gateway does not answer', async () => {
  const rotations = () => checkRotations({ db: service.db, nowMs: Date.now() });
  expect(await rotations()).toEqual([]);
  const { publicKey: _, ...key } = createApnsCredentials();
  const profile = `/apps/${app.appId}/profiles/apns/_default`;
  const credentials = {
    auth: 'token',
    ...key,
    endpoint: 'https://127.0.0.1:9',
    ca: service.apns.ca,
  };
  const { body: staged } = await admin('PUT', `${profile}/candidate`, credentials);
  expect(staged).toMatchObject({ state: 'staged', detail: expect.any(String) });
  expect(await rotations()).toMatchObject([
    {
      status: 'warn',
      code: 'candidateUnchecked',
      params: { app: app.appId, detail: staged.detail },
    },
  ]);
  expect((await admin('PUT', profile, { ...credentials, endpoint: service.apns.url })).status).toBe(
    200,
  );
  expect(await rotations()).toEqual([]);
});

describe('the keys of CARILLON_SECRET', () => {
  const [old = Buffer.alloc(32)] = testConfig('postgresql://x').secrets;
  const both = new Vault([Buffer.alloc(32, 9), old]);
  const keysOf = (vault: Vault) => checkSecretKeys({ db: service.db, vault });

  /** Registers a dispatcher that reports these keys until the end of the test. */
  async function register(secretKeys: readonly string[]): Promise<void> {
    const report = { nowMs: Date.now(), maxFiles: 65_536, duties: {}, secretKeys: [...secretKeys] };
    const facts = () => ({ threads: 1, connections: 1, report });
    const one = new ProcessRegister(service.db, { kind: 'dispatcher', log: silentLog, facts });
    await one.start();
    onTestFinished(() => one.close());
  }

  test('are not mentioned if there is only one', async () => {
    expect(await keysOf(new Vault([old]))).toEqual([]);
  });

  test('are fine if all values and processes have the first key', async () => {
    const first = new Vault([old, Buffer.alloc(32, 9)]);
    await register(first.keyIds);
    const codes = brief(await keysOf(first));
    // The api of this test has reported the same keys.
    expect(codes).toEqual([['ok', 'secretKeysFine']]);
  });

  test('are reported if a process encrypts with another key', async () => {
    await register([both.keyIds[1] ?? '']);
    const findings = await keysOf(both);
    expect(findings).toContainEqual(
      expect.objectContaining({
        code: 'otherSecretKeys',
        params: expect.objectContaining({ kind: 'dispatcher' }),
      }),
    );
    expect(brief(findings)).toContainEqual(['warn', 'oldSecretValues']);
  });

  test('are reported as uncounted if the tables cannot be read in time', async () => {
    await service.db.transaction(async (tx) => {
      await tx.query('LOCK TABLE app_user IN ACCESS EXCLUSIVE MODE');
      expect(brief(await keysOf(both))).toContainEqual(['warn', 'secretsUncounted']);
    });
  });
});

describe('a process', () => {
  /**
   * Starts a server that answers every call with a status until the end of the test. Returns the
   * URL.
   */
  async function answering(status: number): Promise<string> {
    const server = createServer((_request, response) => response.writeHead(status).end());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => void server.close());
    const address = server.address();
    return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  }

  test.each([
    [503, 'its database'],
    [404, 'something else'],
  ])('that answers %d is not ready', async (status, advice) => {
    const finding = await checkProcess('api', await answering(status));
    expect(finding).toMatchObject({ status: 'fail', advice: expect.stringContaining(advice) });
    expect(await checkProcess('api', service.api.url)).toMatchObject({ status: 'ok' });
  });

  test('cannot be checked without an admin token', async () => {
    expect(await checkAdminToken(service.api.url, undefined)).toMatchObject([
      { status: 'fail', detail: 'it is missing' },
    ]);
    const { adminToken } = testConfig(service.databaseUrl);
    expect(await checkAdminToken(service.api.url, adminToken)).toMatchObject([{ status: 'ok' }]);
  });
});
