import { beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../../shared/clock.ts';
import { testConfig } from '../../support/api.ts';
import { carillon } from '../../support/cli.ts';
import { useTestApi } from '../../support/test-api.ts';

const api = useTestApi();

beforeAll(async () => {
  const app = await api.createApp();
  const send = (path: string, body: object) => api.request('POST', path, { app, master: true, body });
  await send('/1.1/installations', { deviceType: 'android', installationId: 'device-1', channels: ['news'] });
  const push_time = new Date(systemClock.now() + 3_600_000).toISOString();
  await send('/1.1/push', { data: { alert: 'x' }, push_time });
});

const run = (...args: string[]) =>
  carillon(args, {
    env: { PUBLIC_URL: api.url, CARILLON_ADMIN_TOKEN: testConfig(api.databaseUrl).adminToken },
  });

test('the commands prepare pushes as the console does', async () => {
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
  const [shown, moved] = await Promise.all([
    run('template', 'show', 'Sale'),
    run('scheduled', 'move', String(id), '--at', '+2h'),
  ]);
  expect(shown.stdout).toContain('"alert": "Hello"');
  expect(moved.stdout).toContain(`Scheduled push ${id} is sent at`);
});
