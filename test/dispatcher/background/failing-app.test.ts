import { describe, expect, test } from 'vitest';
import {
  cleanVerification,
  deleteIdle,
  mergeDevices,
} from '../../../dispatcher/background/cleaner.ts';
import { openBackgroundJobs, runBackgroundJob } from '../../../dispatcher/background/jobs.ts';
import { computeReports } from '../../../dispatcher/background/reports.ts';
import type { DispatcherDeps } from '../../../dispatcher/deps.ts';
import { systemClock } from '../../../shared/clock.ts';
import { Vault } from '../../../shared/crypto.ts';
import { AppCache } from '../../../shared/db/app-cache.ts';
import { createMetrics } from '../../../shared/metrics.ts';
import { silentLog, testConfig } from '../../support/api.ts';
import { areDatabasesSharded } from '../../support/database.ts';
import { countRows } from '../../support/tables.ts';
import { useTestApi } from '../../support/test-api.ts';

const api = useTestApi();

/** Runs `work` while a trigger refuses a change. */
async function refusing(trigger: string, work: () => Promise<unknown>): Promise<void> {
  await api.db.query(`CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'the change is refused'; END $$`);
  await api.db.query(`CREATE TRIGGER refused ${trigger} EXECUTE FUNCTION refuse_change()`);
  await work().finally(() => api.db.query('DROP FUNCTION refuse_change CASCADE'));
}

/** Runs a background job while a trigger refuses a change. Expects that the job reports it. */
const runRefused = (trigger: string, run: () => Promise<unknown>): Promise<void> =>
  refusing(trigger, () => expect(run()).rejects.toThrow('the change is refused'));

describe.skipIf(areDatabasesSharded())('a failure does not stop a background job:', () => {
  const jobs: [name: string, table: string, run: (deps: DispatcherDeps) => Promise<unknown>][] = [
    ['the deletion of idle installations', 'idle_walk', (deps) => deleteIdle(deps, 10)],
    ['the device merger', 'registration_walk', (deps) => mergeDevices(deps, 10)],
    ['reports', 'report_walk', computeReports],
  ];

  test.each(jobs)('%s continues with newer apps', async (_name, table, run) => {
    const [failing, other] = [await api.createApp(), await api.createApp()];
    const vault = new Vault(testConfig(api.databaseUrl).secrets);
    const appCache = new AppCache(api.db, vault, systemClock);
    const deps = { db: api.db, appCache, clock: systemClock } as DispatcherDeps;
    const ofApp = `BEFORE INSERT ON ${table} FOR EACH ROW WHEN (NEW.app_id = '${failing.appId}')`;
    await runRefused(ofApp, () => run(deps));
    const both = [failing.appId, other.appId];
    const text = `SELECT app_id AS "appId" FROM ${table} WHERE app_id = ANY ($1)`;
    expect((await api.db.query(text, [both])).rows).toEqual([{ appId: other.appId }]);
  });

  test('the deletion of idle installations of a large app does not wait for its pauses', async () => {
    const [failing, large] = [await api.createApp(), await api.createApp()];
    await api.db.query(
      `INSERT INTO installation (app_id, object_id, device_type, device_token, updated_at)
       SELECT $1, 'idle' || i, 'ios', 'token' || i, now() - interval '5 years'
         FROM generate_series(1, 1200) AS i`,
      [large.appId],
    );
    const job = openBackgroundJobs().find(({ name }) => name === 'idle installations');
    if (!job) throw new Error('there is no such job');
    const vault = new Vault(testConfig(api.databaseUrl).secrets);
    const appCache = new AppCache(api.db, vault, systemClock);
    const metrics = createMetrics();
    const deps = { db: api.db, appCache, clock: systemClock, log: silentLog, metrics };
    const ofApp = `BEFORE INSERT ON idle_walk FOR EACH ROW WHEN (NEW.app_id = '${failing.appId}')`;
    await refusing(ofApp, async () => {
      const stop = new AbortController();
      const running = runBackgroundJob(deps as unknown as DispatcherDeps, job, stop.signal);
      const left = () => countRows(api.db, 'installation', large);
      await expect
        .poll(left, { timeout: 10_000 })
        .toBe(0)
        .finally(() => stop.abort());
      await running;
    });
  });

  test('the verification cleaner continues with other tables', async () => {
    const { appId } = await api.createApp();
    await api.db.query(
      `INSERT INTO outbox (app_id, kind, recipient, type, body, expires_at, created_at)
       VALUES ($1, 'sms', '+1', 'general', '', now(), now() - interval '8 days')`,
      [appId],
    );
    const everyStatement = 'BEFORE DELETE ON sms_conversion FOR EACH STATEMENT';
    await runRefused(everyStatement, () => cleanVerification(api.db, systemClock.now(), 10));
    const { rows } = await api.db.query('SELECT FROM outbox WHERE app_id = $1', [appId]);
    expect(rows).toEqual([]);
  });
});
