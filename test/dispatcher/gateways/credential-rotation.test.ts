import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkRotations } from '../../../api/services/operator/doctor/credential-checks.ts';
import type { Sender } from '../../../connectors/contract/connector.ts';
import { stopping } from '../../../connectors/kit/response-rules.ts';
import { AccountReader } from '../../../dispatcher/background/account-reader.ts';
import { reviewCanaries } from '../../../dispatcher/background/profiles.ts';
import { CanarySender } from '../../../dispatcher/sending/canary.ts';
import {
  type ApnsGateway,
  createApnsCredentials,
  startApnsGateway,
} from '../../../ops/sandbox/apns/server.ts';
import { sleep, systemClock } from '../../../shared/clock.ts';
import { Vault } from '../../../shared/crypto.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { judgeCanary } from '../../../shared/domain/apps/canary.ts';
import { silentLog, testConfig } from '../../support/api.ts';
import { recipients, sendAll, startApnsFixture } from '../../support/gateways/apns.ts';
import { loopbackIdentity } from '../../support/gateways/identity.ts';
import { keyIdOf } from '../../support/gateways/key-id.ts';
import { useTestService } from '../../support/service.ts';
import {
  insertDevices,
  readBatches,
  readDevices,
  requestAccountRead,
} from '../../support/tables.ts';

const [first, second, unknown] = [
  createApnsCredentials(),
  createApnsCredentials(),
  createApnsCredentials(),
];
const service = useTestService({ gateway: { keys: [first, second] } });
let app: App;
let other: ApnsGateway;

const path = () => `/console/api/apps/${app.appId}/profiles/apns/_default`;
const admin = (method: string, rest: string, body?: object) =>
  service.api.request(method, path() + rest, { admin: true, ...(body ? { body } : {}) });

/** Returns the credentials of a profile that uses this key at a gateway. */
function using({ publicKey: _, ...key }: typeof first, { url, ca } = { url: '', ca: '' }) {
  const gateway = url === '' ? service.apns : { url, ca };
  return { auth: 'token', ...key, endpoint: gateway.url, ca: gateway.ca };
}

const state = async () => (await admin('GET', '/candidate')).body;

/**
 * Pushes to `devices` new devices. Returns the record and how often the gateway accepted each
 * device.
 */
async function push(devices: number) {
  const tag = `p${Math.random()}`;
  await service.addIosInstallations(app, devices, { tag });
  const accepted = service.apns.accepted;
  const body = { where: { tag }, data: { alert: 'x' } };
  const reply = await service.api.request('POST', '/1.1/push', { app, master: true, body });
  const record = await service.untilDone(app, reply.body.objectId);
  return { record, accepted: service.apns.accepted - accepted };
}

/**
 * Repeats pushes until the dispatcher has noticed a change, which takes half a second. Returns the
 * last push.
 */
async function pushUntil(devices: number, isNoticed: () => Promise<boolean> | boolean) {
  for (;;) {
    const pushed = await push(devices);
    expect([pushed.record.status, pushed.record.successes, pushed.accepted]).toEqual([
      ...['done', devices, devices],
    ]);
    if (await isNoticed()) return pushed;
    await sleep(50);
  }
}

const isTried = async () => (await state()).asked > 0;
const usesKey = ({ keyId }: typeof first) => pushUntil(1, () => keyOf(service.apns) === keyId);

beforeAll(async () => {
  app = await service.api.createApp();
  other = await startApnsGateway({ keys: [first, second], ...(await loopbackIdentity()) });
  expect((await admin('PUT', '', using(first))).status).toBe(200);
  await service.dispatch();
});
afterAll(() => other?.close());

describe('a rotation of credentials', () => {
  test('with the right key is tried by the first batch and promoted', async () => {
    const staged = await admin('PUT', '/candidate', using(second));
    expect([staged.status, staged.body]).toMatchObject([
      200,
      { state: 'canary', asked: 0, reason: null },
    ]);
    await pushUntil(1000, isTried);
    const promoted = { accepted: 1000, refused: 0, worse: 0, batches: 1, mayRollBack: true };
    expect(await state()).toMatchObject({ ...promoted, state: 'promoted' });
    await usesKey(second);
  });

  test('is rolled back after a promotion by a call, and cannot be rolled back twice', async () => {
    expect((await admin('POST', '/candidate/rollback')).body).toMatchObject({
      state: 'rolled_back',
    });
    await usesKey(first);
    expect((await admin('POST', '/candidate/rollback')).status).toBe(409);
    expect((await admin('POST', '/candidate/promote')).status).toBe(409);
  });

  test('with a wrong key is rolled back, and its batch uses the current key', async () => {
    await admin('PUT', '/candidate', using(unknown));
    await pushUntil(300, isTried);
    expect(service.apns.refusals('InvalidProviderToken')).toBeGreaterThan(0);
    const rotation = await state();
    const refused = {
      state: 'rolled_back',
      reason: 'refused',
      detail: expect.stringMatching(/^403 /),
    };
    expect(rotation).toMatchObject(refused);
    expect(rotation.refused).toBeGreaterThan(0);
    expect((await readBatches(service.db, app)).filter(({ attempt }) => attempt > 0)).toEqual([]);
    expect(await checkRotations({ db: service.db, nowMs: Date.now() })).toMatchObject([
      { code: 'candidateRolledBack', status: 'warn' },
    ]);
    const audit = await service.api.request(
      'GET',
      '/console/api/audit?action=profile.rollback&limit=1',
      {
        admin: true,
      },
    );
    expect(audit.body.results[0]).toMatchObject({
      actor: { name: 'carillon (canary)' },
      after: { state: 'rolled_back', reason: 'refused' },
    });
  });

  test('with worse replies is rolled back, and deletes no token', async () => {
    await admin('PUT', '/candidate', using(second, other));
    other.misbehave({ kind: 'answer', status: 400, reason: 'BadDeviceToken' });
    await pushUntil(200, isTried);
    expect(await state()).toMatchObject({
      state: 'rolled_back',
      reason: 'worse',
      asked: 200,
      worse: 200,
    });
    expect(other.total).toBe(200);
    expect((await readDevices(service.db, app)).filter(({ valid }) => !valid)).toEqual([]);
  });

  test('uses the candidate for one of a hundred batches', async () => {
    await admin('PUT', '/candidate', using(second));
    await pushUntil(1, isTried);
    for (let i = 0; i < 10; i += 1) await push(1);
    expect(await state()).toMatchObject({
      state: 'canary',
      batches: 1,
      batchesSeen: 20,
      accepted: 1,
    });
    await requestAccountRead(service.db);
    const vault = new Vault(testConfig(service.databaseUrl).secrets);
    await new AccountReader().run({ db: service.db, clock: systemClock, vault });
    expect((await service.api.request('GET', '/metrics')).body).toContain(
      `carillon_profile_rotation{connector="apns",app="${app.appId}",profile="_default",state="canary"} 1`,
    );
  });

  test('is promoted by age after one success, and deletes the old credentials', async () => {
    const hours = (count: number) => ({
      ...systemClock,
      now: () => Date.now() + count * 3_600_000,
    });
    const deps = { db: service.db, log: silentLog };
    expect(await reviewCanaries({ ...deps, clock: hours(0) })).toBe(0);
    expect(await reviewCanaries({ ...deps, clock: hours(2) })).toBe(1);
    expect(await state()).toMatchObject({ state: 'promoted', mayRollBack: true });
    expect(await reviewCanaries({ ...deps, clock: hours(8 * 24) })).toBe(1);
    expect(await state()).toMatchObject({ state: 'promoted', mayRollBack: false });
  });

  test('stays staged if the gateway is unreachable, and ends by an upload', async () => {
    const away = { ...using(first), endpoint: 'https://127.0.0.1:9' };
    const staged = (await admin('PUT', '/candidate', away)).body;
    expect(staged).toMatchObject({
      state: 'staged',
      reason: expect.any(String),
      detail: expect.any(String),
    });
    expect((await admin('POST', '/candidate/promote')).status).toBe(409);
    expect((await admin('PUT', '/candidate?hold=1', using(first))).body.state).toBe('checked');
    await push(1);
    expect(await state()).toMatchObject({ state: 'checked', batchesSeen: 0 });
    expect((await admin('PUT', '', using(first))).status).toBe(200);
    expect(await state()).toMatchObject({
      state: 'rolled_back',
      reason: 'replaced',
      mayRollBack: false,
    });
    expect((await admin('PUT', '/candidate', { auth: 'token' })).status).toBe(400);
  });
});

describe('two rotations under load', () => {
  /** Number of recipients of a push. Pushes follow each other until both rotations have ended. */
  const devices = 1000;

  test('delay no push, fail no recipient, and send no message twice', async () => {
    await usesKey(first);
    const before = {
      total: service.apns.total,
      wrong: service.apns.refusals('InvalidProviderToken'),
    };
    let sent = 0;
    for (const key of [second, first]) {
      expect((await admin('PUT', '/candidate', using(key))).body.state).toBe('canary');
      do {
        const { record, accepted } = await push(devices);
        expect([record.status, record.successes, accepted]).toEqual(['done', devices, devices]);
        sent += devices;
      } while ((await state()).state === 'canary');
      expect(await state()).toMatchObject({ state: 'promoted', refused: 0, worse: 0 });
    }
    // The gateway got each message once and no request that it refused.
    expect(service.apns.total - before.total).toBe(sent);
    expect(service.apns.refusals('InvalidProviderToken')).toBe(before.wrong);
    expect((await readBatches(service.db, app)).filter(({ attempt }) => attempt > 0)).toEqual([]);
  });

  test('keys of two teams send at once, each to the devices of its team', async () => {
    const ofTeam = ({ teamId }: typeof first, digit: string) => ({
      deviceType: 'ios',
      deviceToken: digit.repeat(64),
      topic: 'com.example.app',
      teamId,
      fields: { tag: 'teams' },
    });
    await insertDevices(service.db, app, [ofTeam(first, '1'), ofTeam(second, '2')]);
    const put = { admin: true, body: using(second) };
    const other = await service.api.request('PUT', path().replace('_default', 'other_team'), put);
    expect(other.status).toBe(200);
    const body = { where: { tag: 'teams' }, data: { alert: 'x' } };
    for (;;) {
      const reply = await service.api.request('POST', '/1.1/push', { app, master: true, body });
      const record = await service.untilDone(app, reply.body.objectId);
      // Until the dispatcher has loaded the second profile, the second team has none.
      if (record.successes === 2) break;
      await sleep(50);
    }
    const keys = service.apns.requests
      .slice(-2)
      .map((request) => [request.token[0], keyIdOf(request.headers)]);
    expect(keys.toSorted()).toEqual([
      ['1', first.keyId],
      ['2', second.keyId],
    ]);
  });
});

/** Returns the id of the key that signed the last request. */
const keyOf = (gateway: ApnsGateway): string => keyIdOf(gateway.requests.at(-1)?.headers ?? {});

test('a pause requested of a candidate also applies to the current version', async () => {
  const { gateway, open, close } = await startApnsFixture();
  const [candidate, current] = [open(), open()];
  const answer = { kind: 'answer', status: 429, reason: 'TooManyRequests', count: 1 } as const;
  gateway.misbehave({ ...answer, retryAfter: '30' });
  gateway.misbehave({ ...answer, retryAfter: '2' });
  const { attempts } = await sendAll(new CanarySender(candidate, current), recipients(1));
  expect(attempts).toEqual([
    { kind: 'retry', status: 429, reason: 'TooManyRequests', afterMs: 30_000 },
  ]);
  expect(gateway.total).toBe(2);
  await close();
});

test.each([
  ['before the first answer', 0],
  ['after three answers', 3],
])('a stop %s counts no recipient that the candidate was not sent for', async (_when, sent) => {
  const stopped: Sender = {
    async send({ recipients: all, report }) {
      for (const [i, { index }] of all.entries())
        report(index, i < sent ? { kind: 'sent' } : stopping);
    },
    close: () => Promise.resolve(),
  };
  const sender = new CanarySender(stopped, stopped);
  await sendAll(sender, recipients(10));
  expect(sender.answers).toMatchObject({ asked: sent, accepted: sent, detail: null });
});

describe('the decision', () => {
  const none = { batches: 1, asked: 0, accepted: 0, refused: 0, worse: 0 };
  const day = 86_400_000;

  test.each([
    [{}, 0, undefined],
    [{ asked: 1, refused: 1 }, 0, { to: 'rolled_back', reason: 'refused' }],
    [{ asked: 99, accepted: 1, worse: 98 }, 0, undefined],
    [{ asked: 200, accepted: 197, worse: 3 }, 0, { to: 'rolled_back', reason: 'worse' }],
    [{ asked: 1010, accepted: 1000, worse: 10 }, 0, { to: 'promoted' }],
    [{ asked: 999, accepted: 999 }, 0, undefined],
    [{ asked: 1, accepted: 1 }, day, { to: 'promoted' }],
    [{ asked: 50, accepted: 40, worse: 10 }, day, undefined],
    [{ asked: 50, accepted: 40, worse: 10 }, 7 * day, { to: 'rolled_back', reason: 'worse' }],
    [{}, 7 * day, { to: 'rolled_back', reason: 'noTraffic' }],
  ])('for %j after %d ms is %j', (counts, ageMs, verdict) => {
    expect(judgeCanary({ ...none, ...counts }, ageMs)).toEqual(verdict);
  });
});
