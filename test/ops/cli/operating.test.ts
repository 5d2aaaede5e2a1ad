import { beforeAll, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../../support/api.ts';
import { type CliResult, carillon } from '../../support/cli.ts';
import { changeMessages } from '../../support/tables.ts';
import { useTestApi } from '../../support/test-api.ts';

const api = useTestApi();
let app: App;
let objectId: string;

beforeAll(async () => {
  app = await api.createApp();
  const send = (path: string, body: object) =>
    api.request('POST', path, { app, master: true, body });
  for (const installationId of ['one', 'two'])
    await send('/1.1/installations', { deviceType: 'android', installationId });
  const user = { username: 'ada', password: 'p', email: 'ada@example.com' };
  objectId = (await send('/1.1/users', user)).body.objectId;
  const credentials = { appKey: 'k', masterSecret: 'hush', endpoint: 'http://127.0.0.1:1' };
  const profile = `/console/api/apps/${app.appId}/profiles/vendor_d/_default`;
  await api.request('PUT', profile, { admin: true, body: credentials });
});

const run = (args: string[]): Promise<CliResult> => {
  const { adminToken } = testConfig(api.databaseUrl);
  return carillon(args, { env: { PUBLIC_URL: api.url, CARILLON_ADMIN_TOKEN: adminToken } });
};

test('the commands manage devices, users, profiles, messages and keys', async () => {
  const [
    updated,
    deleted,
    found,
    verified,
    mailed,
    profileDetails,
    checked,
    quotas,
    processes,
    jobs,
    state,
    rotated,
  ] = await Promise.all(
    [
      ['device', 'update', 'one', '{"channels":["news"]}'],
      ['device', 'delete-all', '--where', '{"installationId":"two"}', '--yes'],
      ['user', 'list', '--q', 'ada@example.com'],
      ['user', 'verify', objectId],
      ['user', 'send-reset', objectId],
      ['profile', 'show', app.appId, 'oppo'],
      ['profile', 'check', app.appId, 'oppo'],
      ['quotas'],
      ['processes'],
      ['jobs', 'message'],
      ['sms-state', '--json'],
      ['app', 'rotate-key', app.appId, 'hookKey', '--grace', '0'],
    ].map((args) => run(args)),
  );
  expect(updated?.stdout).toContain('"news"');
  expect(deleted?.stdout).toContain('1 devices are deleted.');
  expect(found?.stdout).toContain(objectId);
  expect(verified?.stdout).toContain('is verified');
  expect(mailed?.stdout).toContain('gets a mail');
  expect(profileDetails?.stdout).toMatch(/masterSecret +sha256 [0-9a-f]{64}/);
  const { stdout: shown = '' } = profileDetails ?? {};
  const [, receiptUrl = ''] = /receipt address +(\S+)/.exec(shown) ?? [];
  expect(receiptUrl).toContain(`/callbacks/vendor_d/${app.appId}/`);
  expect(await api.request('GET', new URL(receiptUrl).pathname)).toMatchObject({ status: 200 });
  expect(checked?.stdout).toContain('OPPO does not answer: ECONNREFUSED.');
  expect(checked?.code).toBe(1);
  expect(quotas?.stdout).toMatch(/\(Asia\/Shanghai\)\n(.*\n)*OPPO +_default +all +0/);
  expect(processes?.stdout).toMatch(/^api +/m);
  expect(jobs?.code).toBe(0);
  expect(state?.json()).toMatchObject({ balance: null, suspended: [] });
  expect(rotated?.stdout).toMatch(/^hookKey: \S{24}\nThe old one is refused\.\n$/);
});

test('a message without a provider is sent again', async () => {
  await changeMessages(api.db, app, { state: 'kept' });
  const listed = await run(['outbox', '--state', 'kept', '--json']);
  const [message] = listed.json().results;
  expect((await run(['outbox', 'retry', message.id, '--app', app.appId])).stdout).toContain(
    'waits',
  );
  expect((await run(['outbox', 'retry', message.id])).code).toBe(1);
});
