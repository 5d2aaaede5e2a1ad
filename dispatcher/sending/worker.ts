import { getHeapStatistics } from 'node:v8';
import { threadId, workerData } from 'node:worker_threads';
import { connectors } from '../../connectors/registry.ts';
import { systemClock } from '../../shared/clock.ts';
import { Vault } from '../../shared/crypto.ts';
import { AppCache } from '../../shared/db/app-cache.ts';
import { Database, type Handle } from '../../shared/db/pool.ts';
import { checkpointBatch } from '../../shared/db/tables/batches.ts';
import { findPush } from '../../shared/db/tables/pushes.ts';
import { loadBatches, type RecentProfile } from '../../shared/db/tables/recipients.ts';
import { setPushHosts } from '../../shared/domain/installations/push-services.ts';
import { RecipientStates } from '../../shared/domain/outcome.ts';
import { setPrivateHosts } from '../../shared/http/outbound-addresses.ts';
import { secureContextTrusting } from '../../shared/http/trust.ts';
import { createThreadMetrics } from '../../shared/metrics.ts';
import { createLogger } from '../../shared/process/logging.ts';
import { returnMemoryWhenIdle } from '../../shared/process/memory.ts';
import { BatchLoader, BatchSender } from './batch-sender.ts';
import { LatenessBudget } from './pace.ts';
import { SenderCache } from './sender-cache.ts';
import { type DeliverTask, type ThreadReport, type ThreadResult, threadData } from './task.ts';

/**
 * Connections that stay open while the thread is idle, so that a single push need not connect
 * first.
 */
const idleConnectionsPerThread = 2;

const data = threadData.parse(workerData);
setPrivateHosts(data.privateHosts);
setPushHosts(data.pushHosts);
const log = createLogger({ level: data.logLevel, name: 'dispatcher thread' });
const db = new Database({
  url: data.databaseUrl,
  applicationName: 'carillon dispatcher thread',
  maxConnections: data.connections,
  pooler: data.pooler,
  minConnections: idleConnectionsPerThread,
  onError: (error) => log.warn({ err: error }, 'database connection lost'),
});
const vault = new Vault(data.secrets.map((key) => Buffer.from(key, 'base64')));
const appCache = new AppCache(db, vault, systemClock);
const { publicUrl } = data;
const metrics = createThreadMetrics();
const senders = new SenderCache({ db, appCache, clock: systemClock, vault, publicUrl, metrics });
const latenessBudget = new LatenessBudget();
returnMemoryWhenIdle();
const stopFlag = new Int32Array(data.stopFlag);
const interrupts = new Int32Array(data.interrupts);

const loader = new BatchLoader(db, data.connections);
const senderDeps = {
  db,
  loader,
  senders,
  appCache,
  clock: systemClock,
  latenessBudget,
  log,
  stopFlag,
  interrupts,
};

/** Prepares this thread for its first batch. piscina calls this function. */
export async function warmUp({ profiles }: { profiles: RecentProfile[] }): Promise<void> {
  runOpeningCode();
  try {
    const connected = profiles.map((profile) => senders.warmUp(profile));
    await Promise.all([db.warmUp(runBatchStatements), ...connected]);
  } catch (error) {
    log.warn({ err: error }, 'could not warm up');
  }
}

/** Returns the metrics and the heap of this thread for a scrape. piscina calls this function. */
export async function report(): Promise<ThreadReport> {
  senders.reportTo(metrics);
  metrics.poolWaitSeconds.add('dispatcher thread', db.takeWaits());
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
  const values = await metrics.registry.getMetricsAsJSON();
  return { thread: threadId, values, heap: { used, limit } };
}

/**
 * Decrypts, checks credentials and creates a secure context once. The first run of this code in a
 * thread is slow, and the first request of a push would wait for it.
 */
function runOpeningCode(): void {
  vault.open(vault.seal({}, ''), '');
  for (const { credentials } of connectors.values()) credentials.safeParse({});
  secureContextTrusting(undefined);
}

/**
 * Runs the statements of a batch for a push that does not exist, so that each connection has
 * prepared them and cached the catalogue of their tables.
 */
async function runBatchStatements(connection: Handle): Promise<void> {
  const batch = { appId: '', id: 0, pushId: 0, connector: '', profile: '', unanswered: 0 };
  const apps = new AppCache(connection, vault, systemClock);
  await apps.app(batch.appId);
  await apps.profiles(batch.appId);
  await findPush(connection, batch.appId, batch.pushId);
  await loadBatches(connection, [{ appId: '', batchId: 0 }], 'deviceToken');
  const states = new RecipientStates(new Uint8Array(1));
  await checkpointBatch(connection, batch, { states, sentBy: null, failures: [] });
}

/** Sends one batch. piscina calls this function. */
export default async function deliver(task: DeliverTask): Promise<ThreadResult> {
  const { states, ...result } = await new BatchSender(senderDeps, task).run();
  return { ...result, stateBytes: states.bytes };
}
