import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Clock, systemClock } from '../shared/clock.ts';
import type { Config } from '../shared/config/config.ts';
import { Vault } from '../shared/crypto.ts';
import { AppCache } from '../shared/db/cache/app-cache.ts';
import { Listener } from '../shared/db/listener.ts';
import { DatabaseReadiness, isNotMigrated } from '../shared/db/readiness.ts';
import { createMetrics } from '../shared/metrics.ts';
import { ClosingStack } from '../shared/process/lifecycle.ts';
import type { Logger } from '../shared/process/logging.ts';
import { JobQueue } from '../shared/queue/queue.ts';
import { createApp, remoteAddressOf } from './app.ts';
import { type ChannelLimits, channelLimits } from './channel/limits.ts';
import { Channel } from './channel/server.ts';
import { closeServer, listen, type ServerLimits, serverLimits } from './http-server.ts';
import type { Exchange } from './middleware/exchange.ts';
import { OperatorAuthenticator } from './middleware/operator-authentication.ts';
import { PushBacklog } from './middleware/push-backlog.ts';
import { PushCallLimit } from './middleware/push-call-limit.ts';
import { type BodyLimits, BodyMemory } from './middleware/request-body.ts';
import { openPools } from './pools.ts';
import { loadRoutes } from './route-loader.ts';
import { createServices, type Services } from './services/services.ts';

export interface RunningApi {
  port: number;
  services: Services;
  stack: ClosingStack;
}

/** What a test may choose. */
export interface ApiOptions {
  stack?: ClosingStack;
  clock?: Clock;
  maxWaitingPushes?: number;
  channelLimits?: Partial<ChannelLimits>;
  bodyLimits?: Partial<BodyLimits>;
  serverLimits?: Partial<ServerLimits>;
  onExchange?: (exchange: Exchange) => void;
}

/**
 * Opens all that an api process needs and listens. What opens is put on the closing stack in the same
 * breath; `stack` may hold more of the caller's. Used by `main.ts` and by tests, which hand in a clock.
 */
export async function startApi(config: Config, log: Logger, options: ApiOptions = {}): Promise<RunningApi> {
  const stack = options.stack ?? new ClosingStack(log);
  const clock = options.clock ?? systemClock;
  const { db, admissionDb, queries } = await openPools(config, log, stack);
  const vault = new Vault(config.secrets);
  const readiness = new DatabaseReadiness(admissionDb, { vault, clock, log });
  await untilMigrated(readiness, stack);
  const listener = new Listener(config.databaseUrl, log);
  stack.add('notifications', () => listener.close());
  await listener.start();
  const queue = new JobQueue(db, log, { supervise: false });
  stack.add('queue', () => queue.stop());
  await queue.start();
  const metrics = createMetrics();
  const appCache = new AppCache(admissionDb, vault, clock);
  const services = createServices({
    config,
    db,
    admissionDb,
    queries,
    queue,
    vault,
    clock,
    metrics,
    appCache,
    readiness,
  });
  stack.add('functions', () => services.functionHosts.close());
  stack.add('hooks', () => services.hooks.close());
  stack.add('accounts', () => services.accounts.close());
  const routes = await loadRoutes();
  const { maxWaitingPushes: maxWaiting, onExchange } = options;
  const backlog = new PushBacklog({
    queue,
    db: admissionDb,
    clock,
    ...(maxWaiting === undefined ? {} : { maxWaiting }),
  });
  const pushCallLimit = new PushCallLimit(admissionDb, backlog);
  const operator = new OperatorAuthenticator({ adminToken: config.adminToken, clock });
  const bodies = new BodyMemory(options.bodyLimits, (bytes) => metrics.bodyBytes.inc(bytes));
  const shared = { routes, services, config, operator, log, metrics, pushCallLimit, bodies };
  const app = createApp({ ...shared, onExchange });
  const server = await listen(app.callback(), config, { ...serverLimits, ...options.serverLimits });
  stack.add('http', () => closeServer(server));
  const ipAddressOf = (request: IncomingMessage) => remoteAddressOf(app, request);
  const limits = { ...channelLimits, ...options.channelLimits };
  const channel = new Channel(server, { db, appCache, listener, metrics, clock, log, ipAddressOf }, limits);
  stack.add('channel', () => channel.close());
  await channel.start();
  stack.add('readiness', () => services.health.markStopping());
  const port = portOf(server.address());
  log.info({ port }, 'api is ready');
  return { port, services, stack };
}

/** Nothing can be answered before the tables are there. A wrong CARILLON_SECRET is told, and refused call by call. */
async function untilMigrated(readiness: DatabaseReadiness, stack: ClosingStack): Promise<void> {
  const stop = new AbortController();
  stack.add('wait for migrations', () => stop.abort());
  await readiness.whenReady(stop.signal, isNotMigrated);
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  return address.port;
}
