import { randomUUID } from 'node:crypto';
/** Tests which devices a push deletes (docs/reference/protocol/delivery.md#promise-7). */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { AccountReader } from '../../../dispatcher/background/account-reader.ts';
import {
  createServiceAccount,
  type FcmGateway,
  startFcmGateway,
} from '../../../ops/sandbox/fcm/server.ts';
import { systemClock } from '../../../shared/clock.ts';
import { Vault } from '../../../shared/crypto.ts';
import { putProfile } from '../../../shared/db/tables/profiles.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { deletableOf, keptOf } from '../../../shared/domain/pushes/invalid-tokens.ts';
import { testConfig } from '../../support/api.ts';
import { carillon } from '../../support/cli.ts';
import { beginPush, createAppOn } from '../../support/gateways/app-gateway.ts';
import { useTestService } from '../../support/service.ts';
import {
  changeDevices,
  daysAgo,
  findDevice,
  insertDevices,
  readDevices,
  requestAccountRead,
} from '../../support/tables.ts';

const account = createServiceAccount();
let fcm: FcmGateway;

const service = useTestService();
beforeAll(async () => {
  fcm = await startFcmGateway({ account });
  await service.dispatch();
  await service.dispatch();
});
afterAll(() => fcm.close());
afterEach(() => {
  service.apns.behave();
  service.apns.badTokens.clear();
  service.apns.deadTokens.clear();
  fcm.behave();
  fcm.deadTokens.clear();
});

const push = async (app: App, body: object = {}) =>
  service.untilDone(app, await beginPush(service, app, body));

async function tokensLeft(app: App): Promise<string[]> {
  const devices = await readDevices(service.db, app);
  return devices.map(({ deviceToken, registrationId }) => deviceToken ?? registrationId ?? '');
}

/** Waits until a push has decided about its tokens. It does so after it is done. */
async function untilLeft(app: App, expected: readonly string[]): Promise<void> {
  const sorted = expected.toSorted();
  await expect.poll(async () => (await tokensLeft(app)).toSorted()).toEqual(sorted);
}

const recordOf = async (app: App, { objectId }: Record<string, unknown>) =>
  (await service.api.request('GET', `/1.1/tables/Notifications/${objectId}`, { app })).body;

const notifications = (app: App, { objectId }: Record<string, unknown>) =>
  `/console/api/apps/${app.appId}/notifications/${objectId}`;

const deleteInvalid = (app: App, record: Record<string, unknown>) =>
  service.api.request('POST', `${notifications(app, record)}/delete-invalid`, { admin: true });

/** Reads an app's metric of kept tokens as an api does after it read the shared state. */
async function keptTokensMetric(app: App): Promise<string[]> {
  const vault = new Vault(testConfig(service.databaseUrl).secrets);
  await requestAccountRead(service.db);
  await new AccountReader().run({ db: service.db, vault, clock: systemClock });
  const { body } = await service.api.request('GET', '/metrics');
  const lines: string[] = body.split('\n');
  return lines.filter(
    (line) => line.startsWith('carillon_tokens_kept{') && line.includes(app.appId),
  );
}

/** Makes APNs report these tokens as invalid, or prove that they are invalid. */
const callBad = (tokens: readonly string[]) => {
  for (const token of tokens) service.apns.badTokens.add(token);
};
const prove = (tokens: readonly string[]) => {
  for (const token of tokens) service.apns.deadTokens.set(token, Date.now() + 60_000);
};

describe('which devices of a profile may be deleted', () => {
  test.each([
    // Columns: replies, reported invalid, proven invalid, may delete those without proof, may
    // delete those with proof.
    [1, 1, 0, true, true],
    [19, 19, 0, true, true],
    [20, 20, 0, false, true],
    [39, 20, 0, false, true],
    [40, 20, 0, true, true],
    [41, 20, 0, true, true],
    [80, 78, 0, false, true],
    [1_000_000, 500_000, 0, true, true],
    [1_000_000, 500_001, 0, false, true],
    [19, 19, 19, true, true],
    [20, 20, 20, false, false],
    [22, 20, 20, false, false],
    [23, 20, 20, false, true],
    [100, 60, 60, false, true],
    [100, 90, 90, false, true],
    [100, 91, 91, false, false],
    // Reported and proven tokens together are the majority. The proven tokens alone are not.
    [100, 60, 30, false, true],
    [100, 50, 25, true, true],
  ])(
    'for %i replies, %i reported invalid, %i proven invalid',
    (answers, invalid, proofs, called, proven) => {
      const profile = {
        connector: 'apns',
        profile: '_default',
        reason: 'x',
        answers,
        invalid,
        proofs,
      } as const;
      expect(deletableOf(profile)).toEqual({ called, proven });
      const kept = (called ? 0 : invalid - proofs) + (proven ? 0 : proofs);
      expect(keptOf(profile)?.kept ?? 0).toBe(kept);
    },
  );
});

describe('a push whose gateway reports most tokens as invalid', () => {
  test('deletes none, and reports this until an operator deletes them', async () => {
    const { app, tokens } = await createAppOn(service, null, 80);
    callBad(tokens.slice(0, 78));
    const started = await push(app);
    await expect.poll(async () => (await recordOf(app, started)).keptTokens).toBeDefined();
    const record = await recordOf(app, started);
    const counts = { connector: 'apns', profile: '_default', answers: 80, invalid: 78, kept: 78 };
    expect(record).toMatchObject({ successes: 2, invalidTokens: 78, keptTokens: [counts] });
    expect(record.errors).toMatch(
      /^APNs, profile _default: 78 of 80 answers call .+BadDeviceToken.+no device was/,
    );
    await untilLeft(app, tokens);

    const { body: report } = await service.api.request('GET', '/console/api/doctor', {
      admin: true,
    });
    const keptTokens = report.results.filter(({ code }: { code: string }) => code === 'tokensKept');
    expect(keptTokens).toMatchObject([
      { level: 'warn', params: { push: started.objectId, devices: 78 } },
    ]);

    const labels = `{connector="apns",app="${app.appId}",profile="_default"}`;
    await expect.poll(() => keptTokensMetric(app)).toEqual([`carillon_tokens_kept${labels} 78`]);

    expect(await deleteInvalid(app, started)).toMatchObject({ status: 200, body: { deleted: 78 } });
    await untilLeft(app, tokens.slice(78));
    expect(await recordOf(app, started)).toMatchObject({ errors: 'apns: BadDeviceToken (78)' });
    expect((await recordOf(app, started)).keptTokens).toBeUndefined();
    expect(await deleteInvalid(app, started)).toMatchObject({ status: 200, body: { deleted: 0 } });
    const { body: later } = await service.api.request('GET', '/console/api/doctor', {
      admin: true,
    });
    expect(later.results.filter(({ code }: { code: string }) => code === 'tokensKept')).toEqual([]);
    await expect.poll(() => keptTokensMetric(app)).toEqual([]);
  });

  test('deletes none even if each of its batches has successes', async () => {
    const { app, tokens } = await createAppOn(service, null, 2500);
    const bad = tokens.filter((_, i) => i % 5 < 3);
    callBad(bad);
    const started = await push(app);
    await expect
      .poll(async () => (await recordOf(app, started)).keptTokens)
      .toMatchObject([{ invalid: 1500 }]);
    await untilLeft(app, tokens);
  });

  test("keeps devices that were saved since, also from the operator's deletion", async () => {
    const { app, tokens } = await createAppOn(service, null, 30);
    callBad(tokens);
    const started = await push(app);
    await expect.poll(async () => (await recordOf(app, started)).keptTokens).toBeDefined();
    const saved = { deviceType: 'ios', deviceToken: tokens[0], topic: 'com.example.app' };
    expect(
      (await service.api.request('POST', '/1.1/installations', { app, body: saved })).status,
    ).toBe(200);
    const { adminToken } = testConfig(service.databaseUrl);
    const env = { PUBLIC_URL: service.api.url, CARILLON_ADMIN_TOKEN: adminToken };
    const args = ['devices', 'delete-invalid', String(started.objectId), '--app', app.appId];
    expect(await carillon(args, { env })).toMatchObject({
      code: 0,
      stdout: '29 devices are deleted.\n',
    });
    await untilLeft(app, tokens.slice(0, 1));
  });

  test('judges each profile by its own replies', async () => {
    const { app, tokens } = await createAppOn(service, null, 90);
    await service.addApnsProfile(app, 'other');
    const others = tokens.slice(0, 30);
    await changeDevices(service.db, app, { deviceProfile: 'other' }, others);
    callBad([...others.slice(0, 25), ...tokens.slice(30, 40)]);
    const started = await push(app);
    await expect
      .poll(async () => (await recordOf(app, started)).keptTokens)
      .toMatchObject([{ profile: 'other', answers: 30, invalid: 25 }]);
    await untilLeft(app, [...others, ...tokens.slice(40)]);
  });
});

describe('tokens that are reported invalid without proof', () => {
  test('are deleted if another batch of the push had a success', async () => {
    const { app, tokens } = await createAppOn(service, null, 2500);
    callBad(tokens.slice(0, 1000));
    expect(await push(app)).toMatchObject({ devices: 2500, successes: 1500, invalidTokens: 1000 });
    await untilLeft(app, tokens.slice(1000));
  });

  test('stay without a success of their own profile', async () => {
    const { app, tokens } = await createAppOn(service, null, 30);
    await service.addApnsProfile(app, 'other');
    const [first = '', ...rest] = tokens;
    await changeDevices(service.db, app, { deviceProfile: 'other' }, [first]);
    callBad([first, ...rest.slice(0, 3)]);
    expect(await push(app)).toMatchObject({ invalidTokens: 4, successes: 26 });
    await untilLeft(app, [first, ...rest.slice(3)]);
  });

  test('stay in a push to one device', async () => {
    const { app, tokens } = await createAppOn(service, null, 2);
    callBad(tokens.slice(0, 1));
    const where = { deviceToken: tokens[0] };
    expect(await push(app, { where })).toMatchObject({ devices: 1, invalidTokens: 1 });
    expect(await push(app, { where: { deviceToken: tokens[1] } })).toMatchObject({ successes: 1 });
    await untilLeft(app, tokens);
  });
});

describe('tokens that are proven invalid', () => {
  test('are deleted in a push to one device', async () => {
    const { app, tokens } = await createAppOn(service, null, 2);
    prove(tokens.slice(0, 1));
    expect(await push(app, { where: { deviceToken: tokens[0] } })).toMatchObject({
      invalidTokens: 1,
    });
    await untilLeft(app, tokens.slice(1));
  });

  test('are deleted without a success', async () => {
    const { app, tokens } = await createAppOn(service, null, 5);
    prove(tokens);
    expect(await push(app)).toMatchObject({ devices: 5, successes: 0, invalidTokens: 5 });
    await untilLeft(app, []);
  });

  test('are deleted if they are more than half', async () => {
    const { app, tokens } = await createAppOn(service, null, 50);
    prove(tokens.slice(0, 40));
    const started = await push(app);
    await untilLeft(app, tokens.slice(40));
    expect((await recordOf(app, started)).keptTokens).toBeUndefined();
  });

  test('are kept if they are more than nine tenths', async () => {
    const { app, tokens } = await createAppOn(service, null, 50);
    prove(tokens.slice(0, 48));
    const started = await push(app);
    await expect
      .poll(async () => (await recordOf(app, started)).keptTokens)
      .toMatchObject([{ answers: 50, invalid: 48, kept: 48, reason: 'Unregistered' }]);
    await untilLeft(app, tokens);
    expect(await deleteInvalid(app, started)).toMatchObject({ body: { deleted: 48 } });
  });

  test('do not count as successes for tokens without proof', async () => {
    const { app, tokens } = await createAppOn(service, null, 60);
    prove(tokens.slice(0, 25));
    callBad(tokens.slice(25, 35));
    const started = await push(app);
    await expect
      .poll(async () => (await recordOf(app, started)).keptTokens)
      .toMatchObject([{ answers: 60, invalid: 35, kept: 10 }]);
    await untilLeft(app, tokens.slice(25));
    expect((await recordOf(app, started)).errors).toContain('10 devices were not deleted');
  });

  test('are kept if the device was saved after the token ended', async () => {
    const { app, tokens } = await createAppOn(service, null, 3);
    const [gone = '', ...saved] = tokens;
    for (const token of saved) service.apns.deadTokens.set(token, Date.now() - 3_600_000);
    prove([gone]);
    expect(await push(app, { where: { deviceToken: saved[0] } })).toMatchObject({
      invalidTokens: 1,
    });
    expect(await push(app)).toMatchObject({ invalidTokens: 3 });
    await untilLeft(app, saved);
  });
});

/** Creates an app with Android devices that have these registration ids. */
async function fcmApp(ids: readonly string[], savedHoursBefore = 0): Promise<App> {
  const app = await service.api.createApp({ hybridPush: true });
  const credentials = {
    serviceAccount: account,
    endpoint: fcm.url,
    authEndpoint: fcm.url,
    ca: fcm.ca,
  };
  const vault = new Vault(testConfig(service.databaseUrl).secrets);
  await putProfile(service.db, vault, {
    appId: app.appId,
    connector: 'fcm',
    name: '_default',
    credentials: { ...credentials, ratePerSecond: 1_000_000 },
  });
  await insertDevices(
    service.db,
    app,
    ids.map((registrationId) => ({
      deviceType: 'android',
      installationId: randomUUID(),
      registrationId,
      vendor: 'vendor_g',
      vendorName: 'fcm',
      updatedAt: daysAgo(savedHoursBefore / 24),
    })),
  );
  return app;
}

let serial = 0;
const some = (make: (n: number) => string, count: number) =>
  Array.from({ length: count }, () => make(++serial));
const fid = (n: number): string => `${'cdef'[n % 4]}${n.toString(36).padStart(21, '_')}`;
const token = (n: number): string => `instance-${n}:APA91b${n.toString(36).padStart(120, 'x')}`;
const end = (ids: readonly string[]) => {
  for (const id of ids) fcm.deadTokens.add(id);
};

describe('devices of FCM', () => {
  test('with the reply UNREGISTERED are deleted in a push to one device', async () => {
    const [dead = '', alive = ''] = some(token, 2);
    const app = await fcmApp([dead, alive]);
    end([dead]);
    const { objectId } = await findDevice(service.db, app, { registrationId: dead });
    expect(await push(app, { where: { objectId } })).toMatchObject({ invalidTokens: 1 });
    await untilLeft(app, [alive]);
  });

  test('with installation ids are deleted if another installation id had a success', async () => {
    const fids = some(fid, 6);
    const app = await fcmApp(fids, 25);
    end(fids.slice(0, 2));
    expect(await push(app)).toMatchObject({ successes: 4, invalidTokens: 2 });
    await untilLeft(app, fids.slice(2));
  });

  test('with installation ids stay within a day of their last save', async () => {
    const fids = some(fid, 6);
    const [gone = ''] = some(token, 1);
    const app = await fcmApp([...fids, gone], 23);
    end([...fids.slice(0, 2), gone]);
    expect(await push(app)).toMatchObject({ successes: 4, invalidTokens: 3 });
    await untilLeft(app, fids);
  });

  test('stay if all installation ids are refused and only tokens had successes', async () => {
    const fids = some(fid, 5);
    const tokens = some(token, 30);
    const app = await fcmApp([...fids, ...tokens], 25);
    end([...fids, ...tokens.slice(0, 2)]);
    expect(await push(app)).toMatchObject({ successes: 28, invalidTokens: 7 });
    await untilLeft(app, [...fids, ...tokens.slice(2)]);
  });
});

describe('the call that deletes kept devices', () => {
  test('is refused while the push is open, and unknown for another app', async () => {
    const { app } = await createAppOn(service, null, 1);
    const other = await service.api.createApp();
    const later = new Date(Date.now() + 3_600_000).toISOString();
    const objectId = await beginPush(service, app, { push_time: later });
    expect(await deleteInvalid(app, { objectId })).toMatchObject({ status: 409 });
    expect(await deleteInvalid(other, { objectId })).toMatchObject({ status: 404 });
    expect(await deleteInvalid(app, { objectId: 'x'.repeat(16) })).toMatchObject({ status: 404 });
  });

  test('also deletes devices that were kept in a push without successes', async () => {
    const { app, tokens } = await createAppOn(service, null, 3);
    callBad(tokens);
    const started = await push(app);
    expect(await deleteInvalid(app, started)).toMatchObject({ status: 200, body: { deleted: 3 } });
    await untilLeft(app, []);
  });
});
