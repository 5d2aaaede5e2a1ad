import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../../shared/clock.ts';
import { testConfig } from '../../support/api.ts';
import { carillon } from '../../support/cli.ts';
import { useTestApi } from '../../support/test-api.ts';

const api = useTestApi();

beforeAll(async () => {
  const app = await api.createApp();
  const send = (path: string, body: object) =>
    api.request('POST', path, { app, master: true, body });
  await send('/1.1/installations', {
    deviceType: 'android',
    installationId: 'device-1',
    channels: ['news'],
  });
  const push_time = new Date(systemClock.now() + 3_600_000).toISOString();
  await send('/1.1/push', { data: { alert: 'x' }, push_time });
});

const run = (...args: string[]) =>
  carillon(args, {
    env: { PUBLIC_URL: api.url, CARILLON_ADMIN_TOKEN: testConfig(api.databaseUrl).adminToken },
  });

test('the commands prepare pushes like the console', async () => {
  const [audience, template, fields, scheduled] = await Promise.all([
    run('audience', '--where', '{"channels":"news"}', '--clauses', '--sample', '1'),
    run('template', 'put', 'Sale', '{"data":{"alert":"Hello"}}'),
    run('fields', 'device'),
    run('scheduled', 'list', '--json'),
  ]);
  for (const part of ['1 devices.', 'without valid: 1', '"installationId":"device-1"'])
    expect(audience.stdout).toContain(part);
  expect(template.stdout).toContain('Sale is saved.');
  expect(fields.stdout).toContain('"deviceType"');
  const [{ id }] = scheduled.json().results;
  const [savedTemplate, moved] = await Promise.all([
    run('template', 'show', 'Sale'),
    run('scheduled', 'move', String(id), '--at', '+2h'),
  ]);
  expect(savedTemplate.stdout).toContain('"alert": "Hello"');
  expect(moved.stdout).toContain(`Scheduled push ${id} is sent at`);
});

test('a device is found by a token that cannot be in a path', async () => {
  const [{ appId }] = (await api.request('GET', '/console/api/apps', { admin: true })).body.results;
  const app = (await api.request('GET', `/console/api/apps/${appId}`, { admin: true })).body;
  const body = {
    deviceType: 'android',
    vendor: 'mi',
    registrationId: 'd//ig+w=/..',
    installationId: 'mi-1',
  };
  const saved = await api.request('POST', '/1.1/installations', { app, body });
  const [device, pushes, unknown] = await Promise.all([
    run('devices', body.registrationId, '--json'),
    run('devices', body.registrationId, '--pushes', '--json'),
    run('devices', 'a/b'),
  ]);
  expect(device.json().installation).toMatchObject({ installationId: 'mi-1' });
  expect(saved.status).toBe(201);
  expect(pushes.json().results).toHaveLength(1);
  expect(unknown.code).not.toBe(0);
  expect((await run('device', 'delete', body.registrationId, '--yes')).code).toBe(0);
});

test('a push needs a sender token, and is not sent if its audience has changed', async () => {
  const body = { name: 'CI', role: 'sender' };
  const { body: made } = await api.request('POST', '/console/api/tokens', { admin: true, body });
  const send = (...args: string[]) =>
    carillon(['push', '--alert', 'Moved', '--no-wait', '--json', ...args], {
      env: { PUBLIC_URL: api.url, CARILLON_ADMIN_TOKEN: made.token },
    });
  const { digest, devices } = (await send('--dry-run')).json();
  const installation = { deviceType: 'android', installationId: 'device-2' };
  const [{ appId }] = (await api.request('GET', '/console/api/apps', { admin: true })).body.results;
  const app = (await api.request('GET', `/console/api/apps/${appId}`, { admin: true })).body;
  await api.request('POST', '/1.1/installations', { app, master: true, body: installation });
  const moved = await send('--explained', digest);
  expect(moved.code).toBe(1);
  expect(moved.json()).toEqual({
    code: 409,
    error: `The audience has moved: ${devices + 1} devices now, ${devices} in the dry run. Nothing was sent: run it with --dry-run again.`,
  });
  const again = (await send('--dry-run')).json();
  const sent = await send('--explained', again.digest, '--undo', '30', '--req-id', 'once');
  expect(sent.json()).toEqual({ objectId: expect.any(String), createdAt: expect.any(String) });
  const record = await run('record', sent.json().objectId, '--json');
  expect(record.json()).toMatchObject({ createdBy: 'CI', state: 'scheduled' });
});

test('the commands define recurring pushes, and show their runs', async () => {
  const times = ['--cron', '30 2 29 2 *', '--zone', 'UTC'];
  const created = await run(
    'recurring',
    'create',
    'Leap day',
    ...times,
    '--alert',
    'Hello',
    '--expire',
    '60',
    '--json',
  );
  expect(created.json(), created.stderr).toMatchObject({
    name: 'Leap day',
    expression: '30 2 29 2 *',
    body: { data: { alert: 'Hello' } },
    isEnabled: true,
  });
  const id = String(created.json().id);
  const [preview, listed, started, refused] = await Promise.all([
    run('recurring', 'preview', ...times, '--count', '2'),
    run('recurring', 'list'),
    run('recurring', 'start', id),
    run('recurring', 'create', 'Often', '--cron', '* * * * *', '--zone', 'UTC', '--alert', 'x'),
  ]);
  expect(preview.stdout).toMatch(/-02-29T02:30:00\+00:00 +\d{4}-02-29T02:30:00.000Z/);
  expect(listed.stdout).toMatch(/Leap day +30 2 29 2 \* +UTC +\d{4}-02-29T02:30:00.000Z/);
  expect(started.stdout).toMatch(/^Push \w{16} is accepted\.$/m);
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('every 5 minutes') });
  const changed = await run(
    'recurring',
    'change',
    id,
    '--name',
    'Leap',
    '--alert',
    'Hi',
    '--ends',
    '+2000d',
    '--json',
  );
  expect(changed.json()).toMatchObject({
    name: 'Leap',
    starts: 1,
    body: { data: { alert: 'Hi' } },
  });
  expect((await run('recurring', 'disable', id)).stdout).toContain('It makes no push by itself.');
  expect((await run('recurring', 'delete', id)).stdout).toBe(`Recurring push ${id} is deleted.\n`);
});

test('the commands manage SMS texts, and show a push', async () => {
  const put = await run(
    'sms-template',
    'put',
    'Code',
    'Your code is {{code}}',
    '--type',
    'verification',
  );
  expect(put.stdout).toContain('"name": "Code"');
  const [listed, approved, signature] = await Promise.all([
    run('sms-template', 'list'),
    run('sms-template', 'approve', 'Code', '--json'),
    run('sms-signature', 'list'),
  ]);
  expect(listed.stdout).toContain('Your code is {{code}}');
  expect(approved.json()).toMatchObject({ status: 'approved' });
  expect(signature.stdout).toMatch(/^Test app +approved/m);
  expect((await run('sms-template', 'delete', 'Code', '--yes')).stdout).toBe('It is deleted.\n');
});

test('a push shows a field of each device, or the default', async () => {
  const text = ['--alert', 'Hello {{name}}', '--channels', 'news'];
  const [wrong, dryRun] = await Promise.all([
    run('push', ...text, '--variable', 'name'),
    run('push', ...text, '--variable', 'name=profile.name:friend: you', '--dry-run', '--json'),
  ]);
  expect(wrong.stderr).toContain('--variable is name=field:default');
  expect(dryRun.json().variables).toEqual([{ name: 'name', devices: 1, fallback: 1 }]);
  expect(dryRun.json().connectors.channel.payload.alert).toBe('Hello friend: you');
});

test('a push has a class, a picture, a link and buttons', async () => {
  const app = await api.createApp({ hybridPush: true });
  const messageClasses = { order: { category: 'TODO' } };
  const folder = await mkdtemp(join(tmpdir(), 'carillon-classes-'));
  const file = join(folder, 'vivo.json');
  await writeFile(file, JSON.stringify({ appId: '10004', appKey: 'k', appSecret: 's' }));
  const stored = await run(
    ...['profile', 'put', app.appId, 'vendor_e', file, '--json'],
    ...['--classes', JSON.stringify(messageClasses)],
  );
  await rm(folder, { recursive: true });
  expect(stored.json()).toMatchObject({ connector: 'vendor_e', messageClasses });
  const profile = await run('profile', 'show', app.appId, 'vendor_e');
  expect(profile.stdout).toMatch(/class order\s+\{"category":"TODO"\}/);
  const body = {
    deviceType: 'android',
    vendor: 'vivo',
    registrationId: '12345678901234567890123',
    installationId: 'vivo-1',
  };
  await api.request('POST', '/1.1/installations', { app, body });
  const send = (...args: string[]) =>
    run('push', '--app', app.appId, '--alert', 'On its way', '--dry-run', ...args);
  const rich = [
    ...['--image', 'https://example.com/a.png', '--url', 'https://example.com/orders/1042'],
    ...['--button', 'track=Track=https://example.com/t?a=b', '--button', 'later:Later: today'],
  ];
  const [shown, document, unknown, wrong] = await Promise.all([
    send('--class', 'order', ...rich),
    send('--class', 'order', ...rich, '--json'),
    send('--class', 'chat'),
    send('--button', 'track'),
  ]);
  expect(shown.stdout).toContain('vivo: order\n');
  expect(shown.stdout).toContain('vivo: image, buttons');
  const [share] = Object.values(document.json().connectors);
  expect(share).toMatchObject({
    messageClass: { name: 'order', dailyLimit: null, missing: [] },
    notShown: ['image', 'buttons'],
    payload: { category: 'TODO', skipType: 2, skipContent: 'https://example.com/orders/1042' },
  });
  expect(share).toMatchObject({
    payload: {
      clientCustomMap: {
        buttons: JSON.stringify([
          { id: 'track', title: 'Track', url: 'https://example.com/t?a=b' },
          { id: 'later', title: 'Later: today' },
        ]),
      },
    },
  });
  expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('subscription') });
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('--button is id=title') });
});
