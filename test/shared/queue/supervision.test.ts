import { PgBoss } from 'pg-boss';
import { expect, test } from 'vitest';
import { messageJob } from '../../../shared/queue/jobs.ts';
import { JobQueue, QueueSupervision } from '../../../shared/queue/queue.ts';
import { silentLog } from '../../support/api.ts';
import { useTestService } from '../../support/service.ts';

const service = useTestService();

test('a job without a heartbeat is handed out again, except after an outage', async () => {
  const { db } = service;
  const queue = new JobQueue(db, silentLog, { supervise: false });
  await queue.start();
  await db.transaction((tx) => queue.send(messageJob, [{ appId: 'app', messageId: 1 }], { tx }));
  const [job] = await queue.fetch(messageJob, 1);
  await db.query(
    "UPDATE pgboss.job SET heartbeat_on = now() - interval '20 seconds' WHERE id = $1",
    [job?.id],
  );
  const boss = new PgBoss({
    db: { executeSql: (text, values) => db.query(text, values) },
    schema: 'pgboss',
    migrate: false,
    schedule: false,
    supervise: false,
    monitorIntervalSeconds: 1,
  });
  await boss.start();
  let nowMs = 100_000;
  let isAway = true;
  let passes = 0;
  const supervision = new QueueSupervision({
    probe: () =>
      isAway ? Promise.reject(new Error('the database is away')) : db.query('SELECT 1'),
    pass: async () => {
      passes += 1;
      await boss.supervise();
    },
    log: silentLog,
    clock: { now: () => nowMs, monotonicMs: () => nowMs },
  });
  const stateAfterTick = async () => {
    await supervision.tick();
    const { rows } = await db.query<{ state: string }>(
      'SELECT state FROM pgboss.job WHERE id = $1',
      [job?.id],
    );
    return rows[0]?.state;
  };
  expect(await stateAfterTick()).toBe('active');
  isAway = false;
  expect(await stateAfterTick()).toBe('active');
  nowMs += 9_999;
  expect(await stateAfterTick()).toBe('active');
  expect(passes).toBe(0);
  nowMs += 1;
  await expect.poll(stateAfterTick).toBe('retry');
  await boss.stop({ graceful: false, close: false });
  await queue.stop();
});
