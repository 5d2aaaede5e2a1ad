import { expect, onTestFinished, test } from 'vitest';
import {
  checkProcesses,
  checkUpkeep,
} from '../../../../api/services/operator/doctor/service-checks.ts';
import { ProcessRegister, type ProcessReport } from '../../../../shared/db/tables/processes.ts';
import { subjectIn, writeFinding } from '../../../../shared/domain/texts/texts.ts';
import { silentLog } from '../../../support/api.ts';
import { useTestService } from '../../../support/service.ts';
import { callerOf } from '../callers.ts';

const service = useTestService();

/** Registers a dispatcher with this report until the end of the test. */
async function register(report: Partial<ProcessReport>): Promise<void> {
  const whole = { nowMs: Date.now(), maxFiles: 65_536, duties: { cleaner: 5 }, ...report };
  const facts = () => ({ threads: 1, connections: 1, report: whole });
  const one = new ProcessRegister(service.db, { kind: 'dispatcher', log: silentLog, facts });
  await one.start();
  onTestFinished(() => one.close());
}

const processProblems = async () =>
  (await checkProcesses(service.db)).flatMap(({ status, code, params }) =>
    status === 'ok' ? [] : [{ status, code, ...params }],
  );
const upkeepProblems = async (limits: Parameters<typeof checkUpkeep>[1] = {}) =>
  (await checkUpkeep(service.db, limits)).flatMap(({ status, code }) =>
    status === 'ok' ? [] : code,
  );

test('a wrong clock and a low limit of open files are reported with their process', async () => {
  await register({ nowMs: Date.now() + 90_000, maxFiles: 1024 });
  expect(await processProblems()).toMatchObject([
    { code: 'processClock', kind: 'dispatcher', pid: process.pid },
    { code: 'filesScarce', max: 1024, used: 1 },
  ]);
});

test('a row that was written late does not count as a wrong clock', async () => {
  await register({ nowMs: Date.now() - 8000 });
  expect(await processProblems()).toEqual([]);
  await register({ nowMs: Date.now() - 90_000 });
  expect(await processProblems()).toMatchObject([{ code: 'processClock' }]);
});

test('a background job is stuck if it succeeds on no dispatcher', async () => {
  await register({ duties: { cleaner: 7200, scheduler: 120 } });
  expect(await processProblems()).toMatchObject([
    { status: 'warn', code: 'dutyStands', duty: 'cleaner', minutes: 120 },
    { status: 'fail', code: 'dutyStands', duty: 'scheduler', minutes: 2 },
  ]);
  await register({ duties: { cleaner: 20, scheduler: 0 } });
  expect(await processProblems()).toEqual([]);
});

test('a table without autovacuum and a table full of dead rows are reported', async () => {
  expect(await upkeepProblems()).toEqual([]);
  await service.db.query('ALTER TABLE login_lock SET (autovacuum_enabled = false)');
  await service.db.query(
    'CREATE TABLE full_of_dead AS SELECT i FROM generate_series(1, 2000) AS i',
  );
  await service.db.query('ALTER TABLE full_of_dead SET (autovacuum_enabled = false)');
  await service.db.query('UPDATE full_of_dead SET i = i + 1');
  // The connections of the pool publish their statistics when they are idle.
  await expect
    .poll(() => upkeepProblems({ deadRows: 1000 }))
    .toEqual(['deadRows', 'autovacuumOffFor']);
  const operator = await callerOf(service.api, 'operator');
  const { body } = await operator('GET', '/doctor');
  const finding = body.results.find(({ code }: { code: string }) => code === 'autovacuumOffFor');
  expect(finding).toEqual({
    level: 'warn',
    subject: expect.any(String),
    code: 'autovacuumOffFor',
    params: expect.any(Object),
  });
  expect(subjectIn('zh', finding.subject)).toBe('自动清理');
  expect(writeFinding(finding, 'en').detail).toContain('login_lock');
});

test('an old transaction and exhausted transaction ids are reported', async () => {
  await service.db.withConnection(async (connection) => {
    await connection.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await connection.query('SELECT count(*) FROM app');
    expect(await upkeepProblems({ transactionSeconds: 0 })).toContain('oldSnapshot');
    await connection.query('ROLLBACK');
  });
  expect(await upkeepProblems({ warnTransactions: -1 })).toContain('wraparoundNear');
  const findings = await checkUpkeep(service.db, { warnTransactions: -1, failTransactions: -1 });
  expect(findings.at(-1)).toMatchObject({ name: 'wraparound', status: 'fail' });
});
