import { beforeAll, describe, expect, test } from 'vitest';
import { packageVersion } from '../../../../shared/config/config.ts';
import { ProcessRegister } from '../../../../shared/db/tables/processes.ts';
import { silentLog } from '../../../support/api.ts';
import { useTestService } from '../../../support/service.ts';
import { type ConsoleCall, callerOf } from '../callers.ts';

const service = useTestService();
let operator: ConsoleCall;

beforeAll(async () => {
  operator = await callerOf(service.api, 'operator');
});

const processes = async () => (await operator('GET', '/processes')).body.results;
const findings = async (subject: string) =>
  (await operator('GET', '/doctor')).body.results.filter(
    (one: { subject: string }) => one.subject === subject,
  );

describe('the register of processes', () => {
  test('contains running processes, but none that stopped or was not seen', async () => {
    expect(await processes()).toMatchObject([
      {
        kind: 'api',
        pid: process.pid,
        version: packageVersion(),
        threads: 1,
        connections: expect.any(Number),
      },
    ]);
    expect(await findings('processes')).toMatchObject([{ level: 'fail' }]);
    const facts = () => ({ threads: 4, connections: 2 });
    const register = new ProcessRegister(service.db, { kind: 'dispatcher', log: silentLog, facts });
    await register.start();
    expect(await processes()).toMatchObject([
      { kind: 'api' },
      { kind: 'dispatcher', threads: 4, connections: 2 },
    ]);
    expect(await findings('processes')).toMatchObject([{ level: 'ok' }]);
    await service.db.query("UPDATE process_seen SET version = '0.0.1' WHERE kind = 'dispatcher'");
    expect((await findings('versions'))[0]).toMatchObject({ level: 'warn' });
    await service.db.query(
      "UPDATE process_seen SET seen_at = now() - interval '1 minute' WHERE kind = 'dispatcher'",
    );
    expect(await processes()).toHaveLength(1);
    const other = new ProcessRegister(service.db, { kind: 'dispatcher', log: silentLog, facts });
    await other.start();
    const { rows } = await service.db.query('SELECT 1 FROM process_seen');
    expect(rows).toHaveLength(2);
    await Promise.all([register.close(), other.close()]);
    expect(await processes()).toHaveLength(1);
  });

  test('gets a row for a dispatcher that starts', async () => {
    const dispatcher = await service.dispatch();
    expect(await processes()).toMatchObject([{ kind: 'api' }, { kind: 'dispatcher' }]);
    await dispatcher.stack.close();
    expect(await processes()).toHaveLength(1);
  });
});

test('doctor checks credentials, gateways and platforms', async () => {
  const { body } = await operator('GET', '/doctor');
  const subjects = body.results.map(({ subject }: { subject: string }) => subject);
  expect(subjects).toEqual(
    expect.arrayContaining(['secrets', 'credentials', 'gateways', 'platforms']),
  );
  const sender = await callerOf(service.api, 'sender');
  for (const path of ['/doctor', '/processes', '/queues/plan/jobs'])
    expect((await sender('GET', path)).status).toBe(403);
});

test('the jobs of a queue are listed, oldest first', async () => {
  const app = await service.api.createApp();
  const body = { data: { alert: 'x' } };
  for (let i = 0; i < 3; i++)
    await service.api.request('POST', '/1.1/push', { app, master: true, body });
  const { body: page } = await operator('GET', '/queues/plan/jobs?limit=2');
  expect(page.results).toMatchObject([
    {
      state: 'created',
      tries: 0,
      appId: app.appId,
      pushId: expect.stringMatching(/^\d+$/),
      batchId: null,
    },
    { state: 'created' },
  ]);
  expect(page.results).toHaveLength(2);
  await service.db.query("UPDATE pgboss.job SET state = 'retry', retry_count = 7 WHERE id = $1", [
    page.results[0].id,
  ]);
  const { body: tried } = await operator('GET', '/queues/plan/jobs?state=retry&minTries=5');
  expect(tried.results).toMatchObject([{ id: page.results[0].id, tries: 7 }]);
  expect((await operator('GET', '/queues/nothing/jobs')).status).toBe(404);
  for (const query of ['limit=201', 'state=x', 'minTries=-1'])
    expect((await operator('GET', `/queues/plan/jobs?${query}`)).status, query).toBe(400);
});
