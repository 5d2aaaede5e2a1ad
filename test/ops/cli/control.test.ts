import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { futureTime } from '../../../ops/cli/report.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../../support/api.ts';
import { type CliResult, carillon } from '../../support/cli.ts';
import { useTestService } from '../../support/service.ts';
import { changeFailures, endWithFailures, readDevices } from '../../support/tables.ts';

let folder: string;
let app: App;

const service = useTestService();
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'carillon-cli-'));
  app = await service.api.createApp();
  await service.addApnsProfile(app);
});

afterAll(async () => {
  await rm(folder, { recursive: true });
});

const run = (args: string[], stdin = '', token?: string): Promise<CliResult> => {
  const { adminToken } = testConfig(service.databaseUrl);
  const env = { PUBLIC_URL: service.api.url, CARILLON_ADMIN_TOKEN: token ?? adminToken };
  return carillon(args, { cwd: folder, stdin, env });
};

const now = Date.parse('2027-01-01T00:00:00Z');

describe('times', () => {
  test.each([
    ['+10m', '2027-01-01T00:10:00.000Z'],
    ['+30s', '2027-01-01T00:00:30.000Z'],
    ['+2d', '2027-01-03T00:00:00.000Z'],
    ['2027-01-01T12:00Z', '2027-01-01T12:00:00.000Z'],
    ['2027-01-01 12:00:30+08:00', '2027-01-01T04:00:30.000Z'],
  ])('%s is %s', (text, time) => {
    expect(futureTime('--at', text, now)).toBe(time);
  });

  test.each([
    'tomorrow',
    '2027-01-02',
    '12:00',
    '2027-01-01T12:00',
    '+10',
    '+m',
    '2027-13-01T00:00Z',
    '1800000000',
  ])('%s is not a time', (text) => {
    expect(() => futureTime('--at', text, now)).toThrow(/^--at expects a time such as/);
  });

  test.each(['2026-12-31T23:59Z', '2027-01-01T00:00Z', '+0s'])('%s is in the past', (text) => {
    expect(() => futureTime('--expire', text, now)).toThrow('--expire names a time that is past');
  });

  test.each([
    ['--at', '2020-01-01T00:00Z'],
    ['--expire', '2020-01-01T00:00Z'],
  ])('%s in the past is wrong usage and sends nothing', async (option, time) => {
    const { code, stderr } = await run(['push', '--app', app.appId, '--alert', 'x', option, time]);
    expect(code).toBe(2);
    expect(stderr).toContain(`${option} names a time that is past`);
  });
});

test('--version prints the version of the package', async () => {
  const { version } = JSON.parse(
    await readFile(new URL('../../../package.json', import.meta.url), 'utf8'),
  );
  expect(await run(['--version'])).toMatchObject({ code: 0, stdout: `${version}\n` });
});

test.each([
  [['app', 'create', 'x', '--plan', 'gold'], '--plan'],
  [['outbox', '--kind', 'fax'], '--kind'],
  [['resume', 'x', '--flow-control', 'fast'], '--flow-control'],
  [['user', 'list', '--limit', 'all'], '--limit'],
])('%j is wrong usage and names the option', async (args, option) => {
  const { code, stderr } = await run(args);
  expect(code).toBe(2);
  expect(stderr).toContain(option);
});

describe('carillon app delete', () => {
  test('asks, and deletes only after a yes', async () => {
    const { appId } = await service.api.createApp();
    const refused = await run(['app', 'delete', appId]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('--yes');
    expect((await run(['app', 'delete', appId], 'no\n')).code).toBe(1);
    expect((await run(['app', 'show', appId])).code).toBe(0);
    expect((await run(['app', 'delete', appId], 'y\n')).code).toBe(0);
    expect((await run(['app', 'show', appId])).code).toBe(1);
  });

  test('does not ask with --yes', async () => {
    const { appId } = await service.api.createApp();
    expect((await run(['app', 'delete', appId, '--yes'])).code).toBe(0);
  });
});

describe('an unfinished push', () => {
  const send = async (at: string): Promise<string> =>
    (await run(['push', '--app', app.appId, '--alert', 'x', '--at', at, '--json'])).json().objectId;

  test('is paused, resumed with another rate and cancelled', async () => {
    // No dispatcher runs in this test, so a due push stays queued.
    const args = ['push', '--app', app.appId, '--alert', 'x', '--no-wait', '--json'];
    await service.addIosInstallations(app, 1);
    const { objectId } = (await run(args)).json();
    expect((await run(['pause', objectId, '--app', app.appId])).stdout).toBe(
      `Push ${objectId} is paused.\n`,
    );
    const resumed = await run([
      'resume',
      objectId,
      '--app',
      app.appId,
      '--flow-control',
      '2000',
      '--json',
    ]);
    expect(resumed.json()).toMatchObject({ objectId });
    const paced = await run(['pace', objectId, '3000', '--app', app.appId]);
    expect(paced.stdout).toBe(`Push ${objectId} goes at 3000 a second.\n`);
    expect((await run(['cancel', objectId, '--app', app.appId])).code).toBe(0);
    const again = await run(['cancel', objectId, '--app', app.appId]);
    expect(again.code).toBe(1);
  });

  test('is listed while it is scheduled, and cancelled by its number', async () => {
    const objectId = await send('+2h');
    const listed = await run(['scheduled', 'list', '--app', app.appId]);
    const row = listed.stdout.split('\n').find((line) => line.includes(objectId)) ?? '';
    const [id = ''] = row.trim().split(' ');
    expect((await run(['scheduled', 'cancel', id, '--app', app.appId])).code).toBe(0);
    expect((await run(['scheduled', 'list', '--app', app.appId])).stdout).toBe(
      'No push waits for its time.\n',
    );
  });
});

test('carillon breakers lists, opens and releases', async () => {
  const id = `apns:${app.appId}:_default`;
  expect((await run(['breakers'])).stdout).toMatch(/:_default +closed +- .*APNs/);
  expect((await run(['breakers', 'open', id])).stdout).toMatch(/:_default +open +open .*APNs/);
  expect((await run(['breakers', '--json'])).json().results).toMatchObject([
    { id, forced: 'open' },
  ]);
  expect((await run(['breakers', 'release', id])).code).toBe(0);
});

test('carillon usage shows the day of an app', async () => {
  const { code, stdout } = await run(['usage', '--app', app.appId]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/push calls +\d+/);
  const wrong = await run(['usage', '--app', app.appId, '--day', 'yesterday']);
  expect(wrong.code).toBe(1);
  expect(wrong.stderr).toContain('expected a day as YYYY-MM-DD');
});

test('carillon user lists, shows and deletes users', async () => {
  const created = await service.api.request('POST', '/1.1/users', {
    app,
    body: { username: 'ada', password: 'open sesame' },
  });
  const { objectId } = Object(created.body);
  const where = ['--where', '{"username":"ada"}'];
  expect((await run(['user', 'list', '--app', app.appId, ...where])).stdout).toContain(objectId);
  expect((await run(['user', 'show', objectId, '--app', app.appId])).stdout).toMatch(
    /username +ada/,
  );
  expect((await run(['user', 'delete', objectId, '--app', app.appId])).code).toBe(1);
  expect((await run(['user', 'delete', objectId, '--app', app.appId, '--yes'])).code).toBe(0);
  expect((await run(['user', 'list', '--app', app.appId, ...where])).stdout).toBe(
    'There are no such users.\n',
  );
});

test('a token of the role sender is sufficient for scheduled pushes and users', async () => {
  const { appId } = app;
  const body = { username: 'grace', password: 'open sesame' };
  const user = Object(
    (await service.api.request('POST', '/1.1/users', { app, body })).body,
  ).objectId;
  const made = { name: 'CI', role: 'sender', apps: [appId] };
  const { token } = Object(
    (await service.api.request('POST', '/console/api/tokens', { admin: true, body: made })).body,
  );
  const asSender = (...args: string[]) => run([...args, '--app', appId], '', token);
  const { objectId } = (await asSender('push', '--alert', 'x', '--at', '+2h', '--json')).json();
  const [waiting, listed, userDetails] = await Promise.all([
    asSender('scheduled', 'list', '--json'),
    asSender('user', 'list', '--limit', '1'),
    asSender('user', 'show', user),
  ]);
  const [entry] = waiting.json().results;
  expect(entry.objectId).toBe(objectId);
  expect(listed.stdout).toContain(user);
  expect(userDetails.stdout).toMatch(/hasPassword +true/);
  expect((await asSender('scheduled', 'cancel', String(entry.id))).code).toBe(0);
});

test('carillon recall shows what it would do, and then replaces the message', async () => {
  const own = await service.api.createApp();
  await service.addApnsProfile(own);
  await service.addIosInstallations(own, 2);
  const dispatcher = await service.dispatch();
  const push = ['push', '--app', own.appId, '--alert', 'Wrong price', '--json'];
  const { objectId } = (await run(push)).json();
  const recall = ['recall', objectId, '--app', own.appId];
  const replace = ['--replace', 'Right price'];
  const expected = { connectors: { apns: { replaced: 2 } } };
  const sent = service.apns.total;
  expect((await run([...recall, '--dry-run', ...replace, '--json'])).json()).toEqual(expected);
  const table = await run([...recall, '--dry-run']);
  expect(table.stdout).toMatch(/APNs +0 +0 +2/);
  expect(table.stdout).toContain('Nothing was recalled.');
  expect(service.apns.total).toBe(sent);
  expect((await run([...recall, ...replace, '--json'])).json()).toEqual(expected);
  expect(service.apns.total).toBe(sent + 2);
  expect(String(service.apns.requests.at(-1)?.body)).toContain('Right price');
  const json = ['--replace', '{"data":{"alert":"Best price"}}'];
  expect((await run([...recall, ...json])).stdout).toMatch(/APNs +0 +2 +0/);
  expect(String(service.apns.requests.at(-1)?.body)).toContain('Best price');
  await dispatcher.stack.close();
});

test('carillon redrive sends a push again to failed recipients, only once', async () => {
  const own = await service.api.createApp();
  await service.addApnsProfile(own);
  await service.addIosInstallations(own, 2);
  const push = ['push', '--app', own.appId, '--alert', 'Again', '--no-wait', '--json'];
  const { objectId } = (await run(push)).json();
  await endWithFailures(
    service.db,
    own,
    objectId,
    (await readDevices(service.db, own)).slice(0, 1).map((device) => ({
      device,
      outcome: 'failed',
      status: 500,
      reason: 'InternalServerError',
    })),
  );
  const redrive = ['redrive', objectId, '--app', own.appId, '--outcome', 'failed'];
  const { code, stdout, stderr } = await run([...redrive, '--json']);
  expect([code, stderr]).toEqual([0, '']);
  const sent = JSON.parse(stdout);
  const path = `/console/api/apps/${own.appId}/notifications/${sent.objectId}`;
  const { body } = await service.api.request('GET', path, { admin: true });
  expect(body).toMatchObject({ msg: { alert: 'Again' }, redriveOf: objectId });
  const again = await run(redrive);
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('sent again already')]);
});

test('carillon redrive first reports its recipients, then sends to all of them', async () => {
  const own = await service.api.createApp();
  await service.addApnsProfile(own);
  await service.addIosInstallations(own, 3);
  const push = ['push', '--app', own.appId, '--alert', 'Again', '--no-wait', '--json'];
  const { objectId } = (await run(push)).json();
  await endWithFailures(
    service.db,
    own,
    objectId,
    (await readDevices(service.db, own)).slice(0, 2).map((device) => ({
      device,
      outcome: 'expired',
      status: 0,
      reason: 'expired before it was sent',
    })),
  );
  const of = ['--app', own.appId];
  expect((await run(['undelivered', ...of])).stdout).toMatch(new RegExp(`${objectId} +0 +2 +0 +0`));
  const dryRun = await run(['redrive', objectId, ...of, '--dry-run']);
  expect(dryRun.stdout).toContain('would go to 2 devices');
  expect(dryRun.stdout).toContain('2 APNs expired: expired before it was sent');
  const none = await run(['redrive', objectId, ...of, '--outcome', 'failed', '--dry-run']);
  expect(none.stdout).toContain('would go to 0 devices');
  const [{ deviceToken } = { deviceToken: null }] = await readDevices(service.db, own);
  await changeFailures(service.db, own, { isUnsure: true }, [deviceToken ?? '']);
  const unsure = await run(['redrive', objectId, ...of, '--include-unsure', '--dry-run']);
  expect(unsure.stdout).toContain('would go to 2 devices');
  expect(unsure.stdout).toContain('Warning: 1 of them may get it twice');
  expect((await run(['redrive', ...of])).code).toBe(2);
  const all = (
    await run(['redrive', '--all', ...of, '--connector', 'apns', '--expire', '60', '--json'])
  ).json();
  expect(all).toEqual({
    results: [{ push: objectId, reply: expect.objectContaining({ status: 'in-queue' }) }],
  });
});
