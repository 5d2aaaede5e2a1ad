import { expect, test } from 'vitest';
import { rotateOnce } from '../../../dispatcher/background/secret-rotation.ts';
import { Vault } from '../../../shared/crypto.ts';
import { keepFailedReceipt } from '../../../shared/db/tables/receipts.ts';
import { findSecretRotation } from '../../../shared/db/tables/secrets.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { sealContexts } from '../../../shared/domain/apps/seal-contexts.ts';
import { silentLog, testConfig, testEnvironment } from '../../support/api.ts';
import { beginPush, createAppOn } from '../../support/gateways/app-gateway.ts';
import { useTestService } from '../../support/service.ts';

const newKey = Buffer.alloc(32, 3).toString('base64');
const env = { CARILLON_SECRET: `${newKey},${testEnvironment('').CARILLON_SECRET}` };
const devices = 5000;
const maxMs = 120_000;

const began = Promise.withResolvers<void>();
const seen = new Map<string, number>();
const service = useTestService({
  env,
  gateway: {
    onRequest: ({ token }) => {
      seen.set(token, (seen.get(token) ?? 0) + 1);
      began.resolve();
    },
  },
});
const secret = (method: string, query = '') =>
  service.api.request(method, `/console/api/secret/rotation${query}`, { admin: true });

/**
 * Writes a value as a process does that still encrypts with the old key. Also saves an
 * installation.
 */
async function save(app: App, i: number): Promise<void> {
  const vault = new Vault(testConfig(service.databaseUrl).secrets);
  const refused = {
    connector: 'vendor_d',
    digest: `digest ${i}`,
    status: 400,
    reason: 'x',
    bytes: 2,
  } as const;
  const context = sealContexts.receipt(app.appId, refused.connector, refused.digest);
  await keepFailedReceipt(
    service.db,
    app.appId,
    { ...refused, call: vault.seal('call', context) },
    1000,
  );
  const body = { deviceType: 'android', installationId: `device-${i}` };
  expect((await service.api.request('POST', '/1.1/installations', { app, body })).status).toBe(201);
}

test('a rotation during a push and saves repeats nothing and loses nothing', {
  timeout: maxMs,
}, async () => {
  const { app, tokens } = await createAppOn(service, null, devices);
  const vault = new Vault(testConfig(service.databaseUrl, env).secrets);
  await service.dispatch();
  const objectId = await beginPush(service, app, { where: { deviceType: 'ios' } });
  let isDone = false;
  const done = service.untilDone(app, objectId, maxMs).finally(() => {
    isDone = true;
  });
  await began.promise;
  // The profile is encrypted with the old key until the first round. The last round ends after the
  // push.
  for (let i = 0, isLast = false; !isLast; i += 1) {
    isLast = isDone;
    await save(app, i);
    expect(await secret('POST')).toMatchObject({ status: 200, body: { mismatches: [] } });
    // The dispatcher rotates too. If it has reserved the rotation, this test has to wait.
    while (!(await findSecretRotation(service.db, vault.keyIds[0]))?.finishedAt)
      await rotateOnce({ db: service.db, vault, log: silentLog });
  }
  expect(await done).toMatchObject({ devices, outcomes: { sent: devices } });
  expect(tokens.filter((token) => seen.get(token) !== 1)).toEqual([]);
  const { body } = await secret('GET', '?count=1');
  expect(body).toMatchObject({
    left: 0,
    keys: [{ isFirst: true }, { values: {}, mayBeRemoved: true }],
  });
});
