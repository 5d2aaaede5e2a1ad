import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { beforeAll, expect, test } from 'vitest';
import { testConfig } from '../../support/api.ts';
import { bareEnvironment, carillon, launcher } from '../../support/cli.ts';
import { addDevicesIn, awakeZone, hoursOfNow } from '../../support/gateways/quiet-hours.ts';
import { useTestService } from '../../support/service.ts';
import { changeDevices } from '../../support/tables.ts';

const service = useTestService();
const hours = hoursOfNow();
let asleep: string;
let awake: string;

beforeAll(async () => {
  const app = await service.api.createApp();
  await service.addApnsProfile(app);
  [asleep = ''] = await addDevicesIn(service, app, 'Etc/UTC');
  [awake = ''] = await addDevicesIn(service, app, awakeZone);
  await changeDevices(service.db, app, { fields: { name: 'Ann' } }, [awake]);
  await service.dispatch();
});

const run = (...args: string[]) =>
  carillon(args, {
    env: {
      PUBLIC_URL: service.api.url,
      CARILLON_ADMIN_TOKEN: testConfig(service.databaseUrl).adminToken,
    },
  });

test('the commands show quiet hours, variables and caps of a push', async () => {
  const push = [
    'push',
    '--alert',
    'Hello {{name}}',
    '--variable',
    'name=name:friend',
    '--quiet-hours',
    hours,
  ];
  const limited = [...push, '--device-cap', '1'];
  const [dryRun, sent, wrong] = await Promise.all([
    run(...limited, '--dry-run'),
    run(...limited, '--no-wait', '--json'),
    run(...push, '--quiet-hours', 'night'),
  ]);
  expect(dryRun.stdout).toMatch(/Quiet hours end:\n {2}\d{4}-\S+Z {2}1\n/);
  expect(dryRun.stdout).toContain('name  1 of the field, 1 of the default');
  expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining('quiet_hours') });
  const { objectId } = sent.json();
  await expect.poll(() => service.apns.seen(awake), { timeout: 30_000 }).toBe(1);
  const [list, ofAsleep, ofAwake, record] = await Promise.all([
    run('pushes'),
    run('why', objectId, asleep),
    run('why', objectId, awake),
    run('record', objectId, '--json'),
  ]);
  expect(list.stdout).toMatch(/accepted +waited in quiet hours/);
  expect(list.stdout).toMatch(new RegExp(`${objectId} +sending +2 +\\S+ +1$`, 'm'));
  expect(ofAsleep.stdout).toContain(hours);
  expect(ofAwake.stdout).toContain('its field name');
  expect(record.json()).toMatchObject({
    quietWaits: 1,
    request: { quietHours: hours, deviceCap: 1 },
  });
  const again = await run(...limited, '--no-wait', '--json');
  const capped = again.json().objectId;
  await expect
    .poll(async () => (await run('record', capped, '--json')).json().outcomes, { timeout: 60_000 })
    .toEqual({ capped: 2 });
  const cancelled = await run('cancel', objectId);
  expect(cancelled.code, cancelled.stderr).toBe(0);
  await expect
    .poll(async () => (await run('record', objectId, '--json')).json(), { timeout: 60_000 })
    .toMatchObject({ state: 'cancelled', outcomes: { sent: 1, dropped: 1 } });
  expect(service.apns.seen(asleep)).toBe(0);
});

test('the command that follows a push reports that only quiet hours delay it', async () => {
  const env = {
    ...bareEnvironment(),
    PUBLIC_URL: service.api.url,
    CARILLON_ADMIN_TOKEN: testConfig(service.databaseUrl).adminToken,
  };
  const args = [launcher, 'push', '--alert', 'Later', '--quiet-hours', hours];
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'exit');
  child.stderr.setEncoding('utf8');
  let text = '';
  await new Promise<void>((resolve) =>
    child.stderr.on('data', (chunk: string) => {
      text += chunk;
      if (text.includes('wait for the end')) resolve();
    }),
  );
  expect(text).toContain('1 of 2 done; 1 wait for the end of quiet hours');
  const [{ objectId }] = (
    await run('pushes', '--status', 'sending', '--text', 'Later', '--json')
  ).json().results;
  expect((await run('cancel', objectId)).code).toBe(0);
  expect(await ended).toEqual([1, null]);
});

test('values that others chose change nothing in a terminal', async () => {
  const app = await service.api.createApp();
  const username = 'eve\u202eadmin';
  const body = { username, password: 'secret' };
  expect((await service.api.request('POST', '/1.1/users', { app, body })).status).toBe(201);
  const device = { deviceType: 'android', installationId: 'd1', nick: 'a\u009b2J' };
  expect(
    (await service.api.request('POST', '/1.1/installations', { app, body: device })).status,
  ).toBe(201);
  const inApp = ['--app', app.appId];
  const [users, devices, asJson] = await Promise.all([
    run('user', 'list', ...inApp),
    run('audience', '--sample', '1', ...inApp),
    run('user', 'list', ...inApp, '--json'),
  ]);
  expect(users.stdout).toContain('eve\\u202eadmin');
  expect(devices.stdout).toContain('a\\u009b2J');
  expect(asJson.stdout).toContain('eve\\u202eadmin');
  expect(asJson.json().results[0].username).toBe(username);
});
