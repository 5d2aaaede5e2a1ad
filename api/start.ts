import type { IncomingMessage, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { type Clock, systemClock } from '../shared/clock.ts';
import { type Config, packageVersion, readLocalConfig } from '../shared/config/config.ts';
import { Vault } from '../shared/crypto.ts';
import { AppCache } from '../shared/db/app-cache.ts';
import { QueryLimiter, queryLimitsFor } from '../shared/db/limits/query-limits.ts';
import { Listener } from '../shared/db/listener.ts';
import { waitForDatabase } from '../shared/db/outage.ts';
import { Database, type DatabaseOptions } from '../shared/db/pool.ts';
import { DatabaseReadiness, isAboutSchema } from '../shared/db/schema/readiness.ts';
import { saveSettingsOf } from '../shared/db/tables/installation-saves.ts';
import { ProcessRegister, reportProcess } from '../shared/db/tables/processes.ts';
import { WebhookEvents } from '../shared/db/webhook-events.ts';
import { setPushHosts } from '../shared/domain/installations/push-services.ts';
import { setPrivateHosts } from '../shared/http/outbound-addresses.ts';
import { createMetrics } from '../shared/metrics.ts';
import { ClosingStack } from '../shared/process/lifecycle.ts';
import type { Logger } from '../shared/process/logging.ts';
import { queueNeeds } from '../shared/queue/migrate.ts';
import { JobQueue } from '../shared/queue/queue.ts';
import { Semaphore, type SemaphoreLimits } from '../shared/semaphore.ts';
import { createApp, remoteAddressOf } from './app.ts';
import { type ChannelLimits, channelLimits } from './channel/limits.ts';
import { Channel } from './channel/server.ts';
import { closeServer, listen, type ServerLimits, serverLimits } from './http-server.ts';
import { OperatorAuthenticator } from './middleware/operator-authentication.ts';
import { PushBacklog, PushCallLimit } from './middleware/push-limits.ts';
import { type BodyLimits, BodyMemory } from './middleware/request-body.ts';
import type { Exchange } from './middleware/request-log.ts';
import { loadRoutes } from './route-loader.ts';
import type { ApiDeps } from './services/deps.ts';
import { AbsentKinds } from './services/push/absent-kinds.ts';
import {
  ConsoleFiles,
  consoleFolder,
  fallbackConsoleFolder,
} from './services/server/console-files.ts';
import { StartingHandler } from './services/server/html-page.ts';
import { createServices, type Services } from './services/services.ts';

/** Started api process. */
export interface RunningApi {
  port: number;
  services: Services;
  stack: ClosingStack;
}

/** Options for tests. `main.ts` uses the defaults. */
export interface ApiOptions {
  stack?: ClosingStack;
  clock?: Clock;
  maxWaitingPushes?: number;
  channelLimits?: Partial<ChannelLimits>;
  bodyLimits?: Partial<BodyLimits>;
  serverLimits?: Partial<ServerLimits>;
  onExchange?: (exchange: Exchange) => void;
  /** Folders that may contain the built console. */
  consoleFolders?: readonly string[];
}

/** Values that all steps of a start share. */
interface Startup {
  config: Config;
  log: Logger;
  stack: ClosingStack;
  clock: Clock;
  options: ApiOptions;
}

/**
 * Listens and opens the dependencies of an api process. Each step registers its close function on
 * the stack.
 */
export async function startApi(
  config: Config,
  log: Logger,
  options: ApiOptions = {},
): Promise<RunningApi> {
  const { stack = new ClosingStack(log), clock = systemClock } = options;
  const startup: Startup = { config, log, stack, clock, options };
  setPrivateHosts(config.privateHosts);
  setPushHosts(config.pushHosts);
  const starting = new StartingHandler();
  const server = await listen(starting.listener, config, {
    ...serverLimits,
    ...options.serverLimits,
  });
  // Closes the server if the start is interrupted. After the start, `http` closes it earlier,
  // before the services of its calls.
  stack.add('listening', () => closeServer(server));
  const { deps, listener } = await openDeps(startup, starting);
  await startRegister(deps, server, { log, stack });
  const services = openServices(deps, stack);
  const app = await openHttpApp(startup, deps, services);
  stack.add('http', () => closeServer(server));
  stack.add('live updates', () => services.events.hub.close());
  const ipAddressOf = (request: IncomingMessage) => remoteAddressOf(app, request);
  const limits = { ...channelLimits, ...options.channelLimits };
  const channel = new Channel(server, { ...deps, listener, log, ipAddressOf }, limits);
  stack.add('channel', () => channel.close());
  await channel.start();
  starting.become(app.callback());
  stack.add('readiness', () => services.health.markStopping());
  const port = portOf(server.address());
  log.info({ port }, 'api is ready');
  return { port, services, stack };
}

async function openDeps(
  { config, log, stack, clock }: Startup,
  starting: StartingHandler,
): Promise<{ deps: ApiDeps; listener: Listener }> {
  const pools = await openPools(config, log, stack);
  const vault = new Vault(config.secrets);
  const readiness = new DatabaseReadiness(pools.admissionDb, {
    vault,
    clock,
    log,
    queue: queueNeeds,
  });
  starting.reason = () => readiness.hint();
  await untilMigrated(readiness, stack);
  const listener = new Listener(config.databaseDirectUrl, log, 'api');
  stack.add('notifications', () => listener.close());
  await listener.start();
  const queue = new JobQueue(pools.db, log, { supervise: false });
  stack.add('queue', () => queue.stop());
  await queue.start();
  const appCache = new AppCache(pools.admissionDb, vault, clock);
  const webhooks = new WebhookEvents(pools.admissionDb, appCache);
  stack.add('webhooks', () => webhooks.close());
  const deps = {
    config,
    ...pools,
    queue,
    vault,
    clock,
    log,
    metrics: createMetrics({ process: 'api', version: packageVersion() }),
    appCache,
    absentKinds: new AbsentKinds(clock),
    webhooks,
    readiness,
  };
  return { deps, listener };
}

/** Registers this process, so that operators see all running processes. */
async function startRegister(
  { admissionDb, metrics, clock, vault, config }: ApiDeps,
  server: Server,
  { log, stack }: Pick<Startup, 'log' | 'stack'>,
): Promise<void> {
  const facts = async () => ({
    threads: 1,
    connections: await connectionsOf(server),
    report: await reportProcess({ metrics, clock, vault, config }),
  });
  const register = new ProcessRegister(admissionDb, { kind: 'api', log, facts });
  stack.add('register', () => register.close());
  await register.start();
}

/** Returns the number of open connections of a server, including the device channel. */
const connectionsOf = (server: Server): Promise<number> =>
  new Promise((resolved) => server.getConnections((error, count) => resolved(error ? 0 : count)));

function openServices(deps: ApiDeps, stack: ClosingStack): Services {
  const services = createServices(deps);
  stack.add('functions', () => services.functionHosts.close());
  stack.add('hooks', () => services.hooks.close());
  stack.add('accounts', () => services.accounts.close());
  return services;
}

async function openHttpApp(
  { config, log, clock, options }: Startup,
  deps: ApiDeps,
  services: Services,
) {
  const { admissionDb: db, metrics } = deps;
  const { maxWaitingPushes: maxWaiting, onExchange } = options;
  const consoleFiles = new ConsoleFiles(options.consoleFolders ?? consoleFolders(), clock);
  services.meta.buildDigest = () => consoleFiles.digest;
  const limits = maxWaiting === undefined ? {} : { maxWaiting };
  const backlog = new PushBacklog({ db, clock, ...limits });
  return createApp({
    routes: await loadRoutes(),
    services,
    config,
    operator: new OperatorAuthenticator(services, config),
    log,
    metrics,
    pushCallLimit: new PushCallLimit({ db, backlog, clock }),
    bodies: new BodyMemory(options.bodyLimits, (bytes) => metrics.bodyBytes.inc(bytes)),
    consoleFiles,
    onExchange,
  });
}

/** Returns the folders that may contain the built console. */
const consoleFolders = (): string[] => [
  consoleFolder,
  fallbackConsoleFolder(resolve(readLocalConfig().dataDir)),
];

/**
 * Waits until the tables exist, because no call works before. If CARILLON_SECRET is wrong, the api
 * starts and refuses calls.
 */
async function untilMigrated(readiness: DatabaseReadiness, stack: ClosingStack): Promise<void> {
  const stop = new AbortController();
  stack.add('wait for migrations', () => stop.abort());
  await readiness.whenReady(stop.signal, isAboutSchema);
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  return address.port;
}

/**
 * Limits of waiting calls. The number of connections, and how many of them one app may use at a
 * time, follow from environment variables (README.md "Connections").
 */
const waiting = {
  calls: { maxWaiting: 2000, maxWaitMs: 5000 },
  admission: { maxWaiting: 1000, maxWaitMs: 5000 },
};

/** Returns the limits of a pool. One app uses at most three fifths of it. */
const limitsOf = (pool: keyof typeof waiting, concurrency: number): Required<SemaphoreLimits> => ({
  ...waiting[pool],
  concurrency,
  perKey: Math.ceil((concurrency * 3) / 5),
});

/** Pools of an api process. */
export interface Pools {
  db: Database;
  /** Connections for groups of saves. */
  savesDb: Database;
  admissionDb: Database;
  queries: QueryLimiter;
}

/**
 * Opens the pools of an api process and waits until the database is reachable. Further connections
 * open when they are needed.
 */
async function openPools(config: Config, log: Logger, stack: ClosingStack): Promise<Pools> {
  const { databaseUrl, databaseReadUrl, pooler, connections } = config;
  const onError = (error: Error) => log.warn({ err: error }, 'database connection lost');
  const open = (name: string, url: string, size: Partial<DatabaseOptions>): Database => {
    const pool = new Database({
      url,
      applicationName: `carillon ${name}`,
      pooler,
      onError,
      ...size,
    });
    stack.add(name, () => pool.close());
    return pool;
  };
  const shared = (limits: Required<SemaphoreLimits>): Partial<DatabaseOptions> => ({
    maxConnections: limits.concurrency,
    fairShare: new Semaphore(limits),
    isPipelined: true,
  });
  const db = open('api', databaseUrl, shared(limitsOf('calls', connections.calls)));
  await waitForDatabase(db, log);
  const admissionDb = open(
    'api (admission)',
    databaseUrl,
    shared(limitsOf('admission', connections.admission)),
  );
  const savesDb = open('api (saves)', databaseUrl, {
    maxConnections: connections.saves,
    settings: await saveSettingsOf(db),
  });
  const queried = { maxConnections: connections.queries };
  const primary = open('api (queries)', databaseUrl, queried);
  const standby =
    databaseReadUrl === databaseUrl ? primary : open('api (read)', databaseReadUrl, queried);
  const limits = queryLimitsFor(connections.queries);
  return { db, savesDb, admissionDb, queries: new QueryLimiter({ primary, standby, limits }) };
}
