import type { AddressInfo, Server } from 'node:net';
import { connectors } from '../connectors/registry.ts';
import { type BreakerTiming, defaultBreakerTiming } from '../shared/breaker.ts';
import { type Clock, systemClock } from '../shared/clock.ts';
import type { Config } from '../shared/config/config.ts';
import { Vault } from '../shared/crypto.ts';
import { AppCache } from '../shared/db/cache/app-cache.ts';
import { Listener } from '../shared/db/listener.ts';
import { waitForDatabase } from '../shared/db/outage.ts';
import { Database } from '../shared/db/pool.ts';
import { DatabaseReadiness } from '../shared/db/readiness.ts';
import { breakerTopic } from '../shared/db/tables/gateways/breakers.ts';
import { pushTopic } from '../shared/db/tables/pushes/control.ts';
import { createMetrics } from '../shared/metrics.ts';
import { ClosingStack } from '../shared/process/lifecycle.ts';
import type { Logger } from '../shared/process/logging.ts';
import { Consumer, ParkedJobs } from '../shared/queue/consumer.ts';
import { deliverJob, planJob, planPriorities } from '../shared/queue/jobs.ts';
import { JobQueue } from '../shared/queue/queue.ts';
import { Breakers } from './breakers/breakers.ts';
import { deliverBatch } from './delivery/deliver.ts';
import type { DispatcherDeps } from './deps.ts';
import { openDuties, runDuty } from './duties/duties.ts';
import { type HealthState, serveHealth } from './health.ts';
import { startMessenger } from './messages/messenger.ts';
import { planPush } from './planning/planner.ts';
import { ScanShare } from './planning/scan-share.ts';
import { GatewayUsage } from './recording/gateway-usage.ts';
import { SenderPool } from './sending/pool.ts';

/** Pushes planned at a time by one dispatcher; small ones are delivered by the same job. */
const freshPlansAtOnce = 16;
/** Those that are being continued have places of their own, so that they never keep a new one waiting. */
const continuedPlansAtOnce = 2;
/** Of one app: as many leave the cores of a small database to others. */
const scansPerApp = 3;

/** Batches of one connector in work per thread: a bulkhead, since each connector has its own count. */
const batchesPerThread = 4;

/** Batches per thread, of all connectors, that wait for a slow gateway or their slot and hold no place. */
const waitingPerThread = 32;

/** Finds jobs whose time has come; NOTIFY tells of the others. */
const planPollMs = 500;
const deliverPollMs = 1000;

export interface RunningDispatcher {
  metricsPort: number;
  stack: ClosingStack;
  deps: DispatcherDeps;
}

/** What a test may choose. */
export interface DispatcherOptions {
  stack?: ClosingStack;
  clock?: Clock;
  breakers?: Partial<BreakerTiming>;
}

/**
 * Opens all that a dispatcher needs and takes jobs. What opens is put on the closing stack in the same
 * breath: the consumers last, so that they stop first.
 */
export async function startDispatcher(
  config: Config,
  log: Logger,
  options: DispatcherOptions = {},
): Promise<RunningDispatcher> {
  const stack = options.stack ?? new ClosingStack(log);
  const { clock = systemClock } = options;
  const timing = { ...defaultBreakerTiming, ...options.breakers };
  const db = await openDatabase(config, log, stack);
  const readiness = new DatabaseReadiness(db, { vault: new Vault(config.secrets), clock, log });
  const state: HealthState = { log, db, readiness, deps: undefined };
  const server = await serveHealth(state, {
    port: config.metricsPort,
    host: config.metricsHost,
    token: config.metricsToken,
  });
  stack.add('metrics', () => closeHealth(server));
  await untilReady(readiness, stack);
  const deps = await openMeans(config, log, { db, stack, clock, timing });
  state.deps = deps;
  startDuties(deps, stack);
  const listener = new Listener(config.databaseUrl, log);
  stack.add('notifications', () => listener.close());
  await listener.start();
  // Without an id notifications were interrupted: any push may have been stopped.
  await listener.listen(pushTopic, (id) => deps.pool.interrupt(id === '' ? undefined : Number(id)));
  await listener.listen(breakerTopic, () => {
    // What is not heeded now is known in 400 ms, and who waits comes back in seconds.
    deps.breakers
      .refreshOverrides()
      .catch((error: unknown) => log.warn({ err: error }, 'could not read the breakers'));
  });
  await startConsumers(deps, { stack, listener, threads: config.dispatcherThreads });
  await startMessenger(deps, config, { stack, listener });
  const metricsPort = portOf(server.address());
  log.info({ metricsPort, threads: config.dispatcherThreads }, 'dispatcher is ready');
  return { metricsPort, stack, deps };
}

/** Opens the pool of the main thread and waits until the database answers. */
async function openDatabase(config: Config, log: Logger, stack: ClosingStack): Promise<Database> {
  const db = new Database({
    url: config.databaseUrl,
    applicationName: 'carillon dispatcher',
    onError: (error) => log.warn({ err: error }, 'database connection lost'),
  });
  stack.add('database', () => db.close());
  await waitForDatabase(db, log);
  return db;
}

/** Waits, unready, until the tables are there and CARILLON_SECRET opens them: pushes would fail for good else. */
async function untilReady(readiness: DatabaseReadiness, stack: ClosingStack): Promise<void> {
  const stop = new AbortController();
  stack.add('wait for the database', () => stop.abort());
  await readiness.whenReady(stop.signal);
}

async function openMeans(
  config: Config,
  log: Logger,
  { db, stack, clock, timing }: { db: Database; stack: ClosingStack; clock: Clock; timing: BreakerTiming },
): Promise<DispatcherDeps> {
  const onError = (error: Error) => log.warn({ err: error }, 'database connection lost');
  // Scans hold a connection for as long as they read, so they have a pool of their own.
  const readDb = new Database({
    url: config.databaseReadUrl,
    applicationName: 'carillon dispatcher (scan)',
    maxConnections: freshPlansAtOnce + continuedPlansAtOnce,
    onError,
  });
  stack.add('scans', () => readDb.close());
  const queue = new JobQueue(db, log, { supervise: true });
  stack.add('queue', () => queue.stop());
  await queue.start();
  const pool = new SenderPool({
    threads: config.dispatcherThreads,
    data: {
      databaseUrl: config.databaseUrl,
      secrets: config.secrets.map((key) => key.toString('base64')),
      publicUrl: config.publicUrl,
      logLevel: config.logLevel,
    },
  });
  stack.add('threads', () => pool.close());
  const vault = new Vault(config.secrets);
  const appCache = new AppCache(db, vault, clock);
  const breakers = new Breakers({
    db,
    clock,
    log,
    timing,
    maxSlow: config.dispatcherThreads * batchesPerThread,
    wakeWaiting: (key) => queue.wakeWaiting(deliverJob(key.connector), key),
  });
  stack.add('breakers', () => breakers.close());
  const gatewayUsage = new GatewayUsage(db);
  stack.add('gateway usage', () => gatewayUsage.flush());
  const scans = new ScanShare(
    { atOnce: freshPlansAtOnce + continuedPlansAtOnce, perApp: scansPerApp },
    clock,
  );
  const opened = { db, readDb, queue, vault, appCache, pool, breakers, gatewayUsage, scans };
  return { ...opened, clock, log, metrics: createMetrics() };
}

function startDuties(deps: DispatcherDeps, stack: ClosingStack): void {
  const stop = new AbortController();
  const running = openDuties().map((duty) => runDuty(deps, duty, stop.signal));
  stack.add('duties', () => {
    stop.abort();
    return Promise.all(running);
  });
}

async function startConsumers(
  deps: DispatcherDeps,
  { stack, listener, threads }: { stack: ClosingStack; listener: Listener; threads: number },
): Promise<void> {
  const { queue, log, pool } = deps;
  const parkedJobs = new ParkedJobs(threads * waitingPerThread);
  const plans = [
    { capacity: freshPlansAtOnce, range: { minPriority: planPriorities.fresh } },
    { capacity: continuedPlansAtOnce, range: { maxPriority: planPriorities.continued } },
  ];
  const planning = plans.map(
    (places) =>
      new Consumer({
        queue,
        listener,
        log,
        kind: planJob,
        ...places,
        parkedJobs,
        pollMs: planPollMs,
        handle: (job, shift) => planPush(deps, job, shift),
      }),
  );
  const delivering = [...connectors.keys()].map((connector) => {
    const kind = deliverJob(connector);
    return new Consumer({
      queue,
      listener,
      log,
      kind,
      capacity: threads * batchesPerThread,
      parkedJobs,
      pollMs: deliverPollMs,
      handle: (job, { signal, permit }) =>
        deliverBatch(deps, job.data, { signal, permit, job: { kind, job } }),
    });
  });
  const consumers = [...planning, ...delivering];
  stack.add('consumers', () => {
    // Requests in flight are waited for; what has not left yet goes back to the queue.
    pool.stopSending();
    return Promise.all(consumers.map((consumer) => consumer.stop(0)));
  });
  await Promise.all(consumers.map((consumer) => consumer.start()));
}

function closeHealth(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    if ('closeAllConnections' in server && typeof server.closeAllConnections === 'function')
      server.closeAllConnections();
  });
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  return address.port;
}
