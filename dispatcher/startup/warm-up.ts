import { randomUUID } from 'node:crypto';
import { hourMs, sleep } from '../../shared/clock.ts';
import { AppCache } from '../../shared/db/app-cache.ts';
import type { Handle } from '../../shared/db/pool.ts';
import { listFreezes } from '../../shared/db/tables/apps.ts';
import { findBatchesWithoutJob, lockBatch } from '../../shared/db/tables/batches.ts';
import { readBreakerOverrides } from '../../shared/db/tables/gateways.ts';
import { advancePlanning, countOpenPushes } from '../../shared/db/tables/push-progress.ts';
import { findRecentProfiles } from '../../shared/db/tables/recipients.ts';
import { targetPageQuery } from '../../shared/query/targets/targets.ts';
import { deliverJob } from '../../shared/queue/jobs.ts';
import { highestPriority } from '../../shared/queue/queue-sql.ts';
import type { DispatcherDeps } from '../deps.ts';
import { warmScans } from '../limits.ts';
import { pageSize } from '../planning/pages.ts';
import type { SenderPool } from '../sending/pool.ts';

/**
 * Limits of the warm-up: the number of profiles whose gateways are connected to, how recently they
 * must have been used, and the maximum delay of the start.
 */
export const warmUpLimits = { profiles: 50, usedWithinMs: hourMs, totalMs: 5000 };

/**
 * Prepares a new process for its first push, which would otherwise be two to three times slower.
 * Starts the threads, opens the connections to the database and to recently used gateways, and runs
 * the statements of a batch. Changes nothing and sends no request to a gateway. Never rejects:
 * failures are logged.
 */
export async function warmUp(
  deps: Pick<DispatcherDeps, 'db' | 'readDb' | 'queue' | 'queries' | 'clock' | 'log' | 'vault'> & {
    pool: Pick<SenderPool, 'warmUp'>;
  },
  stopped: AbortSignal,
  limits = warmUpLimits,
): Promise<void> {
  const { db, readDb, queries, pool, clock, log, vault } = deps;
  const startedAtMs = clock.monotonicMs();
  const end = new AbortController();
  // The first decryption is slow, and planning a push decrypts the profiles of its app.
  vault.open(vault.seal({}, ''), '');
  const warn = (error: unknown) => void log.warn({ err: error }, 'could not warm up');
  const warmUpThreads = async () => {
    const sinceMs = clock.now() - limits.usedWithinMs;
    const profiles = await findRecentProfiles(db, { sinceMs, limit: limits.profiles });
    await pool.warmUp(profiles);
  };
  const parts = [
    warmUpThreads(),
    db.warmUp((connection) => runPushStatements(connection, deps)),
    readDb.warmUp(runScanStatements, warmScans),
    queries.warmUp(),
  ];
  const work = Promise.all(parts.map((part) => part.catch(warn)));
  await Promise.race([work, sleep(limits.totalMs, AbortSignal.any([stopped, end.signal]))]);
  end.abort();
  log.debug({ tookMs: clock.monotonicMs() - startedAtMs }, 'warmed up');
}

/** Keys of a push and a batch that do not exist. */
const none = { appId: '', id: 0, batchId: 0 };

/**
 * Runs the statements of planning and of a batch for a push that does not exist, so that the
 * connection has prepared them and cached the catalogue of their tables.
 */
async function runPushStatements(
  connection: Handle,
  { queue, vault, clock }: Pick<DispatcherDeps, 'queue' | 'vault' | 'clock'>,
): Promise<void> {
  const { appId, id, batchId } = none;
  const apps = new AppCache(connection, vault, clock);
  const kind = deliverJob('apns');
  const job = { id: randomUUID(), retryCount: 0, data: { appId, pushId: id, batchId } };
  await listFreezes(connection);
  await readBreakerOverrides(connection);
  await apps.app(appId);
  await apps.profiles(appId);
  await findBatchesWithoutJob(connection, appId, id);
  await withinTransaction(connection, async () => {
    await advancePlanning(connection, none, { from: 0, through: 0, devices: 0, isLast: false });
    await highestPriority(connection, kind);
    await countOpenPushes(connection, appId);
  });
  await withinTransaction(connection, async () => {
    await lockBatch(connection, appId, batchId);
    await queue.end(kind, job, connection);
  });
}

/**
 * Runs statements that change nothing. Rolls back, so that a failed statement leaves no open
 * transaction in its connection.
 */
async function withinTransaction(connection: Handle, work: () => Promise<unknown>): Promise<void> {
  await connection.query('BEGIN');
  await work().finally(() => connection.query('ROLLBACK'));
}

/** Reads the targets of a push that does not exist. */
async function runScanStatements(connection: Handle): Promise<void> {
  const app = { appId: none.appId, options: { installationValidityDays: 1 } };
  const target = { kind: 'query', where: {}, channels: null } as const;
  const order = { ...noContent, target };
  const { text, values } = targetPageQuery(app, order, { afterId: 0, nowMs: 0, size: pageSize });
  await connection.query(text, values);
}

const noContent = {
  data: {},
  prod: 'prod',
  topic: null,
  teamId: null,
  flowControl: null,
  notificationChannel: null,
} as const;
