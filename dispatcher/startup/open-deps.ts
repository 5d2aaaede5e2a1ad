import type { BreakerTiming } from '../../shared/breaker.ts';
import type { Clock } from '../../shared/clock.ts';
import { type Config, packageVersion } from '../../shared/config/config.ts';
import type { Vault } from '../../shared/crypto.ts';
import { AppCache } from '../../shared/db/app-cache.ts';
import { Database } from '../../shared/db/pool.ts';
import { onePlanSettings } from '../../shared/db/sharding.ts';
import { findWaitingForGateway } from '../../shared/db/tables/batches.ts';
import { addGatewayUse, type ProfileKey } from '../../shared/db/tables/gateway-limits.ts';
import { WebhookEvents } from '../../shared/db/webhook-events.ts';
import { createMetrics } from '../../shared/metrics.ts';
import { PendingCounts } from '../../shared/pending-counts.ts';
import type { ClosingStack } from '../../shared/process/lifecycle.ts';
import type { Logger } from '../../shared/process/logging.ts';
import { WaitingJobs } from '../../shared/queue/consumer.ts';
import { startBatchesNow } from '../../shared/queue/push-jobs.ts';
import { JobQueue } from '../../shared/queue/queue.ts';
import { idleBatchedConnections, openBatchedQueries } from '../batched-queries.ts';
import { Breakers } from '../breakers/breakers.ts';
import { Freezes } from '../delivery/freezes.ts';
import type { DispatcherDeps } from '../deps.ts';
import { batchesPerThread, maxScanMs, scansPerApp, singlesAtOnce, warmScans } from '../limits.ts';
import { AudienceSizes } from '../planning/batches.ts';
import { ScanShare } from '../planning/scan-share.ts';
import { SenderPool } from '../sending/pool.ts';

interface Opened {
  db: Database;
  vault: Vault;
  clock: Clock;
  log: Logger;
  stack: ClosingStack;
  timing: BreakerTiming;
}

/** Opens the dependencies of a dispatcher. `stack` closes them. */
export async function openDeps(
  config: Config,
  { db, vault, clock, log, stack, timing }: Opened,
): Promise<DispatcherDeps> {
  const threads = config.dispatcherThreads;
  const readDb = openReadDatabase(config, log, stack);
  const queue = new JobQueue(db, log, { supervise: true });
  stack.add('queue', () => queue.stop());
  await queue.start();
  const pool = openPool(config, log, stack);
  const appCache = new AppCache(db, vault, clock);
  const webhooks = new WebhookEvents(db, appCache);
  stack.add('webhook events', () => webhooks.close());
  const breakers = new Breakers({
    db,
    webhooks,
    clock,
    log,
    timing,
    maxSlow: threads * batchesPerThread,
    wakeWaiting: async (key) =>
      startBatchesNow(db, key.appId, await findWaitingForGateway(db, key)),
  });
  stack.add('breakers', () => breakers.close());
  const gatewayUsage = new PendingCounts((key: ProfileKey, [requests = 0, recipients = 0]) =>
    addGatewayUse(db, key, { requests, recipients }),
  );
  stack.add('gateway usage', () => gatewayUsage.flush());
  const scans = new ScanShare({ atOnce: config.connections.scans, perApp: scansPerApp }, clock);
  const metrics = createMetrics({ process: 'dispatcher', version: packageVersion() });
  return {
    db,
    readDb,
    queue,
    vault,
    appCache,
    webhooks,
    pool,
    breakers,
    freezes: new Freezes(db, clock),
    gatewayUsage,
    audienceSizes: new AudienceSizes(),
    scans,
    queries: openBatchedQueries({
      db: await openBatchedDatabase(db, { config, log, stack }),
      queue,
      webhooks,
      log,
    }),
    singles: new WaitingJobs(singlesAtOnce),
    clock,
    log,
    metrics,
    operatorMail: config.operatorMail,
  };
}

/**
 * Settings of scans. PostgreSQL expects one group per device and would sort, although there are
 * only a few groups. With more memory for hash tables it hashes, which is faster.
 */
export const scanSettings = { hash_mem_multiplier: 16 };

/** Opens a separate pool for scans, because each scan occupies a connection while it reads. */
function openReadDatabase(config: Config, log: Logger, stack: ClosingStack): Database {
  const readDb = new Database({
    url: config.databaseReadUrl,
    applicationName: 'carillon dispatcher (scan)',
    maxConnections: config.connections.scans,
    statementTimeoutMs: maxScanMs,
    pooler: config.pooler,
    minConnections: warmScans,
    settings: scanSettings,
    onError: (error) => log.warn({ err: error }, 'database connection lost'),
  });
  stack.add('scans', () => readDb.close());
  return readDb;
}

/**
 * Opens a separate pool for batched queries, because its connections have settings for their plans.
 */
async function openBatchedDatabase(
  db: Database,
  { config, log, stack }: { config: Config; log: Logger; stack: ClosingStack },
): Promise<Database> {
  const settings = await onePlanSettings(db);
  const batchedDb = new Database({
    url: config.databaseUrl,
    applicationName: 'carillon dispatcher (batched)',
    maxConnections: config.connections.small,
    minConnections: idleBatchedConnections,
    pooler: config.pooler,
    isPipelined: true,
    settings,
    onError: (error) => log.warn({ err: error }, 'database connection lost'),
  });
  stack.add('batched queries', () => batchedDb.close());
  return batchedDb;
}

function openPool(config: Config, log: Logger, stack: ClosingStack): SenderPool {
  const pool = new SenderPool({
    threads: config.dispatcherThreads,
    data: {
      databaseUrl: config.databaseUrl,
      pooler: config.pooler,
      connections: config.connections.thread,
      secrets: config.secrets.map((key) => key.toString('base64')),
      publicUrl: config.publicUrl,
      privateHosts: config.privateHosts,
      pushHosts: config.pushHosts,
      logLevel: config.logLevel,
    },
    log,
  });
  stack.add('threads', () => pool.close());
  return pool;
}
