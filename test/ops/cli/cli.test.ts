import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RunningDispatcher } from '../../../dispatcher/start.ts';
import { Vault } from '../../../shared/crypto.ts';
import { insertOutboxMessage } from '../../../shared/db/tables/outbox.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../../support/api.ts';
import { type CliOptions, type CliResult, carillon } from '../../support/cli.ts';
import { useTestService } from '../../support/service.ts';

let dispatcher: RunningDispatcher;
let folder: string;
let env: Record<string, string>;

const service = useTestService();
beforeAll(async () => {
  dispatcher = await service.dispatch();
  folder = await mkdtemp(join(tmpdir(), 'carillon-cli-'));
  const { adminToken, secrets } = testConfig(service.databaseUrl);
  env = {
    PUBLIC_URL: service.api.url,
    METRICS_PORT: String(dispatcher.metricsPort),
    DATABASE_URL: service.databaseUrl,
    CARILLON_ADMIN_TOKEN: adminToken,
    CARILLON_SECRET: secrets.map((key) => key.toString('base64')).join(','),
  };
});

afterAll(async () => {
  await rm(folder, { recursive: true });
});

const run = (args: string[], options: CliOptions = {}): Promise<CliResult> =>
  carillon(args, { cwd: folder, ...options, env: { ...env, ...options.env } });

describe('wrong usage', () => {
  test.each([
    [[]],
    [['nonsense']],
    [['app']],
    [['app', 'create']],
    [['app', 'list', '--colour']],
    [['app', 'set', 'x', 'hybridPush']],
    [['app', 'set', 'x', 'a=1', 'a=2']],
    [['push']],
    [['push', '--alert', 'x', '--at', 'tomorrow']],
    [['push', '--alert', 'x', '--flow-control', 'fast']],
    [['profile', 'put', 'x', 'apns']],
    [['why', 'x']],
    [['app', 'delete', '..', '--yes']],
    [['app', 'show', '']],
    [['saved-audience', 'delete', '..', '--app', 'x']],
    [['token', 'delete', '.']],
    [['template', 'show', 'a/b', '--app', 'x']],
    [['breakers', 'open', '../x']],
  ])('%j exits with 2 and an error on standard error', async (args) => {
    const { code, stdout, stderr } = await run(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/\w/);
  });

  test('with --json prints one document on standard output', async () => {
    const { code, json } = await run(['app', 'create', '--json']);
    expect(code).toBe(2);
    expect(json()).toEqual({ error: "missing required argument 'name'" });
  });

  test('help exits with 0 and goes to standard output', async () => {
    const { code, stdout } = await run(['push', '--help']);
    expect(code).toBe(0);
    expect(stdout).toContain('--flow-control');
  });
});

describe('a service that is unreachable', () => {
  test.each([
    [
      'no service',
      { PUBLIC_URL: 'http://127.0.0.1:9' },
      'No service answers at http://127.0.0.1:9',
    ],
    ['the wrong token', { CARILLON_ADMIN_TOKEN: 'x'.repeat(20) }, 'The admin token is not the one'],
    ['no token', { CARILLON_ADMIN_TOKEN: '' }, 'There is no admin token'],
    ['an invalid environment', { PUBLIC_URL: 'nowhere' }, 'PUBLIC_URL is wrong'],
  ])('%s exits with 1 and a recommended action', async (_case, changed, message) => {
    const plain = await run(['app', 'list'], { env: changed });
    expect({ code: plain.code, stdout: plain.stdout }).toEqual({ code: 1, stdout: '' });
    expect(plain.stderr).toContain(message);
    const withJson = await run(['app', 'list', '--json'], { env: changed });
    expect(withJson.code).toBe(1);
    expect(withJson.json().error).toContain(message);
  });
});

describe('carillon app', () => {
  test('creates, shows, lists, changes and deletes an app', async () => {
    const created = await run([
      'app',
      'create',
      'Shop',
      'hybridPush=true',
      '--plan',
      'commercial',
      '--json',
    ]);
    expect(created).toMatchObject({ code: 0, stderr: '' });
    const app = created.json();
    expect(app).toMatchObject({ name: 'Shop', plan: 'commercial', options: { hybridPush: true } });

    expect((await run(['app', 'show', app.appId, '--json'])).json()).toEqual(app);
    expect((await run(['app', 'show', app.appId])).stdout).toContain(app.masterKey);
    expect((await run(['app', 'list', '--json'])).json().results).toContainEqual(app);
    expect((await run(['app', 'list'])).stdout).toContain(app.appId);

    const pairs = [
      'name=Store',
      'pushCallsPerMinute=1200',
      'functionsUrl=http://127.0.0.1:3000',
      'smsBalance=5',
    ];
    const changed = (await run(['app', 'set', app.appId, ...pairs, '--json'])).json();
    expect(changed).toMatchObject({
      name: 'Store',
      options: { pushCallsPerMinute: 1200, functionsUrl: 'http://127.0.0.1:3000', smsBalance: 5 },
    });

    expect((await run(['app', 'delete', app.appId, '--json'])).json()).toEqual({});
    const removed = await run(['app', 'show', app.appId, '--json']);
    expect(removed.code).toBe(1);
    expect(removed.json()).toEqual({ code: 404, error: 'There is no such app.' });
  });

  test('a refusal of the service exits with 1 and its message', async () => {
    const app = await service.api.createApp();
    const { code, stderr } = await run(['app', 'set', app.appId, 'hybridPush=ture']);
    expect(code).toBe(1);
    expect(stderr).toContain('hybridPush');
  });
});

describe('carillon profile', () => {
  test('reads credentials from a file or standard input, and never prints them', async () => {
    const { appId } = await service.api.createApp();
    const file = join(folder, 'vendor.json');
    const credentials = JSON.stringify({ appKey: '1', masterSecret: 'SESAME' });
    await writeFile(file, credentials);
    const outputs = [
      await run(['profile', 'put', appId, 'vendor_d', file]),
      await run(['profile', 'put', appId, 'vendor_d', '-', '--name', 'Beta', '--json'], {
        stdin: credentials,
      }),
      await run(['profile', 'list', appId]),
    ];
    expect(outputs.map(({ code }) => code)).toEqual([0, 0, 0]);
    expect(JSON.stringify(outputs)).not.toContain('SESAME');
    const { results } = (await run(['profile', 'list', appId, '--json'])).json();
    expect(results.map((one: { name: string }) => one.name)).toEqual(['Beta', '_default']);
    expect((await run(['profile', 'delete', appId, 'vendor_d', '--json'])).json()).toEqual({});
    expect((await run(['profile', 'delete', appId, 'vendor_d'])).code).toBe(1);
  });

  test.each([
    ['a file that is not there', 'missing.json', 'cannot be read (ENOENT)'],
    ['a file that is not JSON', 'broken.json', 'holds no JSON dictionary'],
    ['credentials that are refused', 'wrong.json', 'there is no member password'],
  ])('%s exits with 1 and quotes no value', async (_case, name, message) => {
    await writeFile(join(folder, 'broken.json'), '{"masterSecret":"SESAME"');
    await writeFile(
      join(folder, 'wrong.json'),
      '{"appKey":"1","masterSecret":"s","password":"SESAME"}',
    );
    const { appId } = await service.api.createApp();
    const { code, stderr } = await run(['profile', 'put', appId, 'vendor_d', name]);
    expect(code).toBe(1);
    expect(stderr.toLowerCase()).toContain(message.toLowerCase());
    expect(stderr).not.toContain('SESAME');
  });
});

describe('carillon push', () => {
  let app: App;
  beforeAll(async () => {
    app = await service.api.createApp();
    await service.addApnsProfile(app);
    await service.addIosInstallations(app, 30);
  });

  test('exits when the push is done, with the result by connector', async () => {
    const { code, stdout } = await run([
      'push',
      '--app',
      app.appId,
      '--alert',
      'Hello',
      '--title',
      'Hi',
    ]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Push \w{16}: done$/m);
    expect(stdout).toMatch(/^APNs\s+30$/m);
    expect(stdout).toMatch(/^all\s+30$/m);
  });

  test('with --json prints the record', async () => {
    const data = join(folder, 'data.json');
    await writeFile(data, '{"badge":1}');
    const args = [
      'push',
      '--app',
      app.appId,
      '--alert',
      'Hello',
      '--data',
      data,
      '--expire',
      '600',
    ];
    // The rate keeps the push open until the command looks at it.
    const rate = ['--flow-control', '50'];
    const more = ['--where', '{"deviceType":"ios"}', '--prod', 'prod', ...rate, '--json'];
    const { code, json, stderr } = await run([...args, ...more]);
    expect(code).toBe(0);
    expect(stderr).toMatch(
      /^Push \w+ is accepted\. Waiting for its end; --no-wait does not wait\.\n$/,
    );
    expect(json()).toMatchObject({
      status: 'done',
      devices: 30,
      successes: 30,
      iosSuccesses: 30,
      msg: { alert: 'Hello', badge: 1 },
    });
  });

  test('does not wait for a scheduled push', async () => {
    const at = new Date(Date.now() + 3_600_000).toISOString();
    const { code, json } = await run([
      'push',
      '--app',
      app.appId,
      '--alert',
      'Later',
      '--at',
      at,
      '--json',
    ]);
    expect(code).toBe(0);
    expect(json()).toMatchObject({ status: 'scheduled', 'push-time': at });
  });

  test('with --no-wait prints the reply', async () => {
    const { json } = await run(['push', '--app', app.appId, '--alert', 'x', '--no-wait', '--json']);
    expect(Object.keys(json()).sort()).toEqual(['createdAt', 'objectId']);
  });

  test('exits with 1 if the push is refused', async () => {
    const { code, stderr } = await run([
      'push',
      '--app',
      app.appId,
      '--alert',
      'x',
      '--prod',
      'moon',
    ]);
    expect(code).toBe(1);
    expect(stderr).toContain('prod');
  });

  test('with --dry-run shows the explanation and sends nothing', async () => {
    const args = [
      'push',
      '--app',
      app.appId,
      '--alert',
      'Dry',
      '--flow-control',
      '1000',
      '--dry-run',
    ];
    const { code, stdout } = await run(args);
    expect(code).toBe(0);
    expect(stdout).toContain('would go to 30 devices. Nothing was sent.');
    expect(stdout).toMatch(/^APNs\s+30\s+23\s+_default 30$/m);
    expect(stdout).toContain('It takes about 1 s');
    const { json } = await run([...args, '--json']);
    expect(json()).toMatchObject({ devices: 30, estimatedSeconds: 1, limits: [] });
    const { rows } = await service.db.query<{ n: number }>(
      `SELECT count(*) AS n FROM notification WHERE app_id = $1
        AND request -> 'data' ->> 'alert' = 'Dry'`,
      [app.appId],
    );
    expect(rows[0]?.n).toBe(0);
  });

  test('carillon why shows the outcome of one device', async () => {
    const [token = ''] = await service.addIosInstallations(app, 1, { only: 'me' });
    const where = '{"only":"me"}';
    const sent = await run([
      'push',
      '--app',
      app.appId,
      '--alert',
      'x',
      '--where',
      where,
      '--json',
    ]);
    const args = ['why', sent.json().objectId, token, '--app', app.appId];
    const { code, stdout } = await run(args);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^It was accepted by APNs \(profile _default\) at .*\.\n$/);
    expect((await run([...args, '--json'])).json()).toMatchObject({
      isMatched: true,
      outcome: 'sent',
    });
    const unknown = await run([
      'why',
      sent.json().objectId,
      'unknown',
      '--app',
      app.appId,
      '--json',
    ]);
    expect(unknown.code).toBe(1);
    expect(unknown.json()).toEqual({ code: 404, error: 'There is no such installation.' });
  });

  test('several apps require the option --app', async () => {
    const { code, stderr } = await run(['push', '--alert', 'x']);
    expect(code).toBe(2);
    expect(stderr).toContain('--app');
  });
});

test('carillon outbox shows messages newest first', async () => {
  const { appId } = await service.api.createApp();
  const vault = new Vault(testConfig(service.databaseUrl).secrets);
  const sms = {
    kind: 'sms',
    to: '+8613800000000',
    type: 'verification',
    text: 'Code 123456',
  } as const;
  await insertOutboxMessage(service.db, vault, appId, { ...sms, code: '123456' });
  await insertOutboxMessage(service.db, vault, appId, { ...sms, to: '+1' });
  const outbox = (await run(['outbox', '--app', appId])).stdout;
  expect(outbox.indexOf('+1 ')).toBeLessThan(outbox.indexOf('+8613800000000'));
  const { results } = (
    await run(['outbox', '--app', appId, '--to', sms.to, '--kind', 'sms', '--json'])
  ).json();
  expect(results).toMatchObject([{ ...sms, code: '123456' }]);
});

test('carillon migrate migrates a database, and reports if it is up to date', async () => {
  expect((await run(['migrate', '--json'])).json()).toEqual({ ran: [] });
  const { code, json } = await run(['migrate', '--json'], { env: { DATABASE_URL: '' } });
  expect(code).toBe(1);
  expect(json().error).toContain('set DATABASE_URL');
});
