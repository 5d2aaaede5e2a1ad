import { type BreakerTiming, defaultBreakerTiming } from '../shared/breaker.ts';
import { type Clock, systemClock } from '../shared/clock.ts';
import type { Config } from '../shared/config/config.ts';
import { Vault } from '../shared/crypto.ts';
import { Listener } from '../shared/db/listener.ts';
import { waitForDatabase } from '../shared/db/outage.ts';
import { Database } from '../shared/db/pool.ts';
import { DatabaseReadiness } from '../shared/db/schema/readiness.ts';
import { freezeTopic } from '../shared/db/tables/apps.ts';
import { breakerTopic } from '../shared/db/tables/gateways.ts';
import { ProcessRegister, reportProcess } from '../shared/db/tables/processes.ts';
import { pushTopic } from '../shared/db/tables/push-control.ts';
import { setPushHosts } from '../shared/domain/installations/push-services.ts';
import { setPrivateHosts } from '../shared/http/outbound-addresses.ts';
import { ClosingStack } from '../shared/process/lifecycle.ts';
import type { Logger } from '../shared/process/logging.ts';
import { queueNeeds } from '../shared/queue/migrate.ts';
import { DuePoll } from '../shared/queue/waking.ts';
import { openBackgroundJobs, runBackgroundJob } from './background/jobs.ts';
import type { DispatcherDeps } from './deps.ts';
import { type HealthState, serveHealth } from './health.ts';
import { startMessenger } from './messages/messenger.ts';
import { startConsumers } from './startup/consumers.ts';
import { openDeps } from './startup/open-deps.ts';
import { warmUp } from './startup/warm-up.ts';
import { type SenderLimits, WebhookSender } from './webhooks/sender.ts';

/** Database connections of the main thread that stay open while there is nothing to send. */
const idleConnections = 4;

export interface RunningDispatcher {
  metricsPort: number;
  stack: ClosingStack;
  deps: DispatcherDeps;
}

export interface DispatcherOptions {
  stack?: ClosingStack;
  /** For tests. */
  clock?: Clock;
  breakers?: Partial<BreakerTiming>;
  webhooks?: Partial<SenderLimits>;
}

/**
 * Opens everything that a dispatcher needs and starts to take jobs. The consumers open last, so
 * that they close first.
 */
export async function startDispatcher(
  config: Config,
  log: Logger,
  options: DispatcherOptions = {},
): Promise<RunningDispatcher> {
  const stack = options.stack ?? new ClosingStack(log);
  const { clock = systemClock } = options;
  const timing = { ...defaultBreakerTiming, ...options.breakers };
  setPrivateHosts(config.privateHosts);
  setPushHosts(config.pushHosts);
  const db = await openDatabase(config, log, stack);
  const vault = new Vault(config.secrets);
  const readiness = new DatabaseReadiness(db, { vault, clock, log, queue: queueNeeds });
  const health: HealthState = { log, db, readiness, stack, deps: undefined };
  const metricsPort = await serveHealth(health, config);
  // Waits until the database is migrated and matches CARILLON_SECRET. Before that, pushes would
  // fail permanently.
  await readiness.whenReady(abortedBy(stack, 'wait for the database'));
  const deps = await openDeps(config, { db, vault, clock, log, stack, timing });
  // Runs in parallel with the first jobs. After a crash they must not wait for gateways that do not
  // answer.
  const warmedUp = warmUp(deps, abortedBy(stack, 'warm-up'));
  startBackgroundJobs(deps, stack);
  await startRegister(deps, config, stack);
  const listener = await openListener(config, deps, stack);
  const duePoll = new DuePoll(deps.db, log);
  stack.add('poll for due jobs', () => duePoll.stop());
  await startConsumers(deps, { stack, listener, duePoll, threads: config.dispatcherThreads });
  await startMessenger(deps, config, { stack, listener, duePoll });
  const webhookSender = new WebhookSender(deps, options.webhooks);
  stack.add('webhooks', () => webhookSender.stop());
  await webhookSender.start(listener);
  await warmedUp;
  health.deps = deps;
  log.info({ metricsPort, threads: config.dispatcherThreads }, 'dispatcher is ready');
  return { metricsPort, stack, deps };
}

/** Opens the database pool of the main thread, and waits until the database answers. */
async function openDatabase(config: Config, log: Logger, stack: ClosingStack): Promise<Database> {
  const db = new Database({
    url: config.databaseUrl,
    applicationName: 'carillon dispatcher',
    maxConnections: config.connections.dispatcher,
    pooler: config.pooler,
    minConnections: idleConnections,
    onError: (error) => log.warn({ err: error }, 'database connection lost'),
  });
  stack.add('database', () => db.close());
  await waitForDatabase(db, log);
  return db;
}

/** Returns a signal that aborts when the process closes. */
function abortedBy(stack: ClosingStack, name: string): AbortSignal {
  const stop = new AbortController();
  stack.add(name, () => stop.abort());
  return stop.signal;
}

/** Registers this process, so that operators see which processes run. */
async function startRegister(
  { db, log, pool, metrics, clock, vault }: DispatcherDeps,
  config: Config,
  stack: ClosingStack,
): Promise<void> {
  const facts = async () => ({
    threads: config.dispatcherThreads,
    connections: await pool.connections(),
    report: await reportProcess({ metrics, clock, vault, config }),
  });
  const register = new ProcessRegister(db, { kind: 'dispatcher', log, facts });
  stack.add('register', () => register.close());
  await register.start();
}

function startBackgroundJobs(deps: DispatcherDeps, stack: ClosingStack): void {
  const stop = new AbortController();
  const running = openBackgroundJobs().map((job) => runBackgroundJob(deps, job, stop.signal));
  stack.add('background jobs', () => {
    stop.abort();
    return Promise.all(running);
  });
}

/** Listens for paused and cancelled pushes, for freezes and for changed overrides. */
async function openListener(
  config: Config,
  deps: DispatcherDeps,
  stack: ClosingStack,
): Promise<Listener> {
  const { pool, breakers, freezes, log } = deps;
  const listener = new Listener(config.databaseDirectUrl, log, 'dispatcher');
  stack.add('notifications', () => listener.close());
  await listener.start();
  // No id means that the LISTEN connection was lost. Any push may have changed.
  await listener.listen(pushTopic, (id) => pool.interrupt(id === '' ? undefined : Number(id)));
  await listener.listen(freezeTopic, () => {
    freezes.refresh();
    pool.interrupt();
  });
  await listener.listen(breakerTopic, () => {
    // If this fails, the expiry of the cache (400 ms) and the batches' own jobs still apply the
    // change.
    breakers
      .refreshOverrides()
      .catch((error: unknown) => log.warn({ err: error }, 'could not read the breaker overrides'));
  });
  return listener;
}
