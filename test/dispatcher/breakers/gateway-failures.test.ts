import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type RunningDispatcher, startDispatcher } from '../../../dispatcher/start.ts';
import { runChecks } from '../../../ops/cli/doctor/run-checks.ts';
import { openCertificateAuthority } from '../../../ops/sandbox/kit/certificates.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { createLogger } from '../../../shared/process/logging.ts';
import { testConfig } from '../../support/api.ts';
import { carillon } from '../../support/cli.ts';
import {
  beginPush,
  createAppOn,
  startRestartableGateway,
} from '../../support/gateways/app-gateway.ts';
import { useTestService } from '../../support/service.ts';

const fastPoll = { interval: 50, timeout: 20_000 };

let dispatcher: RunningDispatcher;
let env: Record<string, string>;
const logged: { breaker?: string; state?: string; reason?: string }[] = [];

const service = useTestService();
beforeAll(async () => {
  const destination = { write: (line: string) => void logged.push(JSON.parse(line)) };
  const log = createLogger({ level: 'warn', name: 'test', destination });
  dispatcher = await startDispatcher(testConfig(service.databaseUrl), log, {
    breakers: { coolDownMs: 300, maxCooldownMs: 600 },
  });
  const { adminToken, secrets } = testConfig(service.databaseUrl);
  env = {
    PUBLIC_URL: service.api.url,
    DATABASE_URL: service.databaseUrl,
    CARILLON_ADMIN_TOKEN: adminToken,
    CARILLON_SECRET: secrets.map((key) => key.toString('base64')).join(','),
  };
});
afterAll(async () => {
  await dispatcher?.stack.close();
});
afterEach(() => service.apns.behave());

async function lastFailureOf(id: string): Promise<{ reason: string; at: string } | null> {
  const { body } = await service.api.request('GET', '/console/api/breakers', { admin: true });
  return body.results.find((breaker: { id: string }) => breaker.id === id).lastFailure;
}

const recordOf = async (app: App, objectId: string) =>
  (await service.api.request('GET', `/1.1/tables/Notifications/${objectId}`, { app })).body;

describe('a gateway that refuses connections', () => {
  test('appears in every report until it answers again', async () => {
    const restartable = await startRestartableGateway();
    const { app, tokens, id } = await createAppOn(service, restartable.own, 1);
    await restartable.stop();
    const pushed = carillon(['push', '--app', app.appId, '--alert', 'x'], { env });
    await expect.poll(() => lastFailureOf(id), fastPoll).toMatchObject({ reason: 'ECONNREFUSED' });
    const { body: list } = await service.api.request('GET', '/1.1/notifications', {
      app,
      master: true,
    });
    const { objectId } = list.results[0];
    expect((await recordOf(app, objectId)).errors).toBe(
      'APNs does not answer: ECONNREFUSED; trying again',
    );
    expect(list.results[0].errors).toBe('APNs does not answer: ECONNREFUSED; trying again');
    const path = `/console/api/apps/${app.appId}/notifications/${objectId}/devices/${tokens[0]}`;
    const why = (await service.api.request('GET', path, { admin: true })).body;
    expect(why.gatewayFailure).toMatchObject({ reason: 'ECONNREFUSED' });
    expect(why.sentence).toContain('APNs does not answer: ECONNREFUSED');
    const breakers = await carillon(['breakers'], { env });
    expect(breakers.stdout).toMatch(/ECONNREFUSED at 20/);
    const { document } = await runChecks(env);
    expect(JSON.stringify(document)).toContain(
      `APNs does not answer: ECONNREFUSED (profile _default of app ${app.appId}`,
    );
    await restartable.restart();
    const { code, stderr, stdout } = await pushed;
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stderr).toContain('0 of 1 done; APNs does not answer: ECONNREFUSED; trying again\n');
    expect(stdout).not.toContain('Errors:');
    await expect.poll(() => lastFailureOf(id), fastPoll).toBeNull();
    expect(await recordOf(app, objectId)).toMatchObject({ status: 'done', errors: '' });
    await restartable.stop();
  });

  test('leaves its error code in the record of a push that expires meanwhile', async () => {
    const restartable = await startRestartableGateway();
    const { app } = await createAppOn(service, restartable.own, 1);
    await restartable.stop();
    const objectId = await beginPush(service, app, { expiration_interval: 10 });
    const record = await service.untilDone(app, objectId);
    expect(record.errors).toContain('expired; the last try: connect_failed ECONNREFUSED (1)');
  });

  test('is named in the log when its breaker opens', async () => {
    const restartable = await startRestartableGateway();
    const { app, id } = await createAppOn(service, restartable.own, 60);
    await restartable.stop();
    await beginPush(service, app, { expiration_interval: 10 });
    const opened = () => logged.find(({ breaker, state }) => breaker === id && state === 'open');
    await expect.poll(opened, fastPoll).toMatchObject({ reason: 'ECONNREFUSED' });
  });

  test('is not printed with --json, which prints only that it waits', async () => {
    const restartable = await startRestartableGateway();
    const { app } = await createAppOn(service, restartable.own, 1);
    await restartable.stop();
    const args = ['push', '--app', app.appId, '--alert', 'x', '--expire', '2', '--json'];
    const { stderr, json } = await carillon(args, { env });
    expect(stderr).toMatch(
      /^Push \S+ is accepted\. Waiting for its end; --no-wait does not wait\.\n$/,
    );
    expect(json().outcomes).toEqual({ expired: 1 });
  });
});

test('an untrusted certificate is reported by its error code', async () => {
  const restartable = await startRestartableGateway();
  const { certificate: ca } = await openCertificateAuthority();
  const { app, id } = await createAppOn(service, { ...restartable.own, ca }, 1);
  const objectId = await beginPush(service, app, { expiration_interval: 30 });
  await expect
    .poll(() => lastFailureOf(id), fastPoll)
    .toMatchObject({
      reason: expect.stringMatching(/^(UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|SELF_SIGNED)/),
    });
  expect((await recordOf(app, objectId)).errors).toMatch(
    /^APNs does not answer: [A-Z_]+; trying again$/,
  );
  await restartable.stop();
});

test('a failed status is reported, unless the gateway answers other requests', async () => {
  const { app, id } = await createAppOn(service, null, 1);
  service.apns.misbehave({ kind: 'answer', status: 503, reason: 'ServiceUnavailable' });
  const objectId = await beginPush(service, app);
  await expect
    .poll(() => lastFailureOf(id), fastPoll)
    .toMatchObject({ reason: '503 ServiceUnavailable' });
  expect((await recordOf(app, objectId)).errors).toBe(
    'APNs takes nothing: 503 ServiceUnavailable; trying again',
  );
  service.apns.behave();
  await service.untilDone(app, objectId);
  await expect.poll(() => lastFailureOf(id), fastPoll).toBeNull();
});

test('deleting a profile deletes its recorded failure', async () => {
  const restartable = await startRestartableGateway();
  const { app, id } = await createAppOn(service, restartable.own, 1);
  await restartable.stop();
  await beginPush(service, app, { expiration_interval: 60 });
  await expect.poll(() => lastFailureOf(id), fastPoll).not.toBeNull();
  const path = `/console/api/apps/${app.appId}/profiles/apns/_default`;
  expect((await service.api.request('DELETE', path, { admin: true })).status).toBeLessThan(300);
  const { rows } = await service.db.query('SELECT 1 FROM gateway_failure WHERE app_id = $1', [
    app.appId,
  ]);
  expect(rows).toEqual([]);
});
