import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../../support/api.ts';
import { type CliResult, carillon } from '../../support/cli.ts';
import { useTestApi } from '../../support/test-api.ts';

const api = useTestApi();
let app: App;
let objectId: string;

beforeAll(async () => {
  app = await api.createApp();
  const send = (path: string, body: object) =>
    api.request('POST', path, { app, master: true, body });
  await send('/1.1/installations', { deviceType: 'android', installationId: 'device-1' });
  objectId = (await send('/1.1/push', { data: { alert: 'Hello' } })).body.objectId;
});

const run = (args: string[], token?: string): Promise<CliResult> => {
  const { adminToken } = testConfig(api.databaseUrl);
  return carillon(args, {
    env: { PUBLIC_URL: api.url, CARILLON_ADMIN_TOKEN: token ?? adminToken },
  });
};

describe('carillon token, session and login-link', () => {
  test('create, list and delete tokens, and a token replaces the admin token', async () => {
    const created = await run([
      'token',
      'create',
      'Anna',
      '--role',
      'viewer',
      '--expires',
      '+1d',
      '--json',
    ]);
    const { id, token } = created.json();
    expect((await run(['token', 'list'])).stdout).toMatch(new RegExp(`${id} +Anna +viewer +all`));
    const listed = await run(['pushes'], token);
    expect(listed.stdout).toContain(objectId);
    expect((await run(['audit'], token)).stderr).toContain('needs the role owner');
    expect((await run(['token', 'delete', id])).code).toBe(0);
    expect((await run(['pushes'], token)).code).toBe(1);
  });

  test('with a token below owner list the apps without their keys', async () => {
    const { token } = (await run(['token', 'create', 'Ben', '--role', 'viewer', '--json'])).json();
    expect((await run(['app', 'list'], token)).stdout).toContain(app.appId);
    const appDetails = await run(['app', 'show', app.appId], token);
    expect(appDetails.stdout).toMatch(/^master key +-$/m);
    expect(appDetails.stdout).toMatch(/^pushCallsPerMinute +600$/m);
  });

  test('print a link that logs in, list the session and end it', async () => {
    const { stdout } = await run(['login-link']);
    const code = /#code=([\w-]{43})\n$/.exec(stdout)?.[1];
    expect((await api.request('POST', '/console/api/session', { body: { code } })).status).toBe(
      200,
    );
    const [session] = (await run(['session', 'list', '--json'])).json().results;
    expect((await run(['session', 'delete', session.id])).stdout).toContain('is ended');
    expect((await run(['session', 'list'])).stdout).toContain('Nobody is logged in.');
  });

  test('refuse an unknown role', async () => {
    expect((await run(['token', 'create', 'x', '--role', 'root'])).code).toBe(2);
  });
});

test('the audit log is exported completely, a JSON object per line', async () => {
  await api.db.query(
    `INSERT INTO audit (actor_name, actor_role, address, request_id, action, target)
     SELECT 'many', 'owner', '127.0.0.1', '', 'test.many', i::text
       FROM generate_series(1, 401) AS i`,
  );
  const { stdout } = await run(['audit', '--lines', '--actor', 'many']);
  const targets = stdout
    .trim()
    .split('\n')
    .map((line) => Number(JSON.parse(line).target));
  expect(targets).toEqual(Array.from({ length: 401 }, (_, i) => 401 - i));
});

test('the commands show the same as the console', async () => {
  const [
    pushes,
    failures,
    list,
    messageIds,
    devices,
    device,
    search,
    queues,
    audit,
    overview,
    meta,
    apps,
  ] = await Promise.all(
    [
      ['pushes', '--text', 'hello', '--limit', '1', '--to', '2990-01-31T00:00:00Z'],
      ['failures', objectId],
      ['failures', objectId, '--list', '--outcome', 'failed'],
      ['message-ids', objectId],
      ['devices', '--where', '{"deviceType":"android"}'],
      ['devices', 'device-1'],
      ['search', objectId],
      ['queues'],
      ['audit', '--action', 'token', '--to', '2999-01-01T00:00:00Z'],
      ['overview'],
      ['meta'],
      ['app', 'list', '--sizes', '--q', app.appId],
    ].map((args) => run(args)),
  );
  expect(pushes?.stdout).toContain(objectId);
  expect(failures?.stdout).toContain('Every device was reached.');
  expect(messageIds?.stdout).toContain('Nothing was found.');
  expect(list?.stdout).toContain('Nothing was found.');
  expect(devices?.stdout).toContain('android');
  expect(device?.stdout).toContain('"connector": "channel"');
  expect(search?.stdout).toMatch(new RegExp(`push +${app.appId} +${objectId}`));
  expect(queues?.stdout).toContain('plan');
  expect(audit?.stdout).toContain('token.create');
  expect(overview?.stdout).toMatch(
    new RegExp(`${objectId}.*\\n(.*\\n)*today \\(UTC\\) +0 recipients, 1 calls`),
  );
  expect(meta?.stdout).toMatch(/vendor_d +OPPO/);
  expect(apps?.stdout).toMatch(new RegExp(`${app.appId} +Test app +commercial +1 +1`));
  expect((await run(['devices', '--limit', '0'])).code).toBe(2);
  expect((await run(['devices', '--limit', '500'])).code).toBe(1);
});
