import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Config } from '../shared/config/config.ts';
import type { Database } from '../shared/db/pool.ts';
import type { DatabaseReadiness } from '../shared/db/schema/readiness.ts';
import { mayReadMetrics, metricsRefusal } from '../shared/metrics.ts';
import type { ClosingStack } from '../shared/process/lifecycle.ts';
import type { Logger } from '../shared/process/logging.ts';
import {
  reportDatabases,
  reportQueues,
  reportStandby,
  waitForPart,
} from '../shared/queue/report.ts';
import type { DispatcherDeps } from './deps.ts';

/** Limits against slow or many connections. Probes and scrapes are short and few. */
const limits = {
  headersTimeout: 10_000,
  requestTimeout: 20_000,
  connectionsCheckingInterval: 2_000,
};
const maxConnections = 256;

/** State that the answers show. `deps` is set once the database is ready. */
export interface HealthState {
  log: Logger;
  db: Database;
  readiness: DatabaseReadiness;
  stack: ClosingStack;
  deps: DispatcherDeps | undefined;
}

/**
 * Serves `/metrics`, `/healthz` and `/readyz` (protocol/operation.md#health), until `state.stack`
 * closes. Returns the port that it has bound. Without METRICS_TOKEN, `/metrics` answers only callers
 * on this machine.
 */
export async function serveHealth(
  state: HealthState,
  {
    metricsPort,
    metricsHost,
    metricsToken,
  }: Pick<Config, 'metricsPort' | 'metricsHost' | 'metricsToken'>,
): Promise<number> {
  const server = createServer(limits, (request, response) => {
    answer(state, { request, token: metricsToken }, response).catch((error: unknown) => {
      state.log.error({ err: error }, 'health request failed');
      response.writeHead(500).end();
    });
  });
  server.maxConnections = maxConnections;
  server.listen(metricsPort, metricsHost);
  await once(server, 'listening');
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  state.stack.add('metrics', close);
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  return address.port;
}

async function answer(
  state: HealthState,
  { request, token }: { request: IncomingMessage; token: string | undefined },
  response: ServerResponse,
): Promise<void> {
  switch (request.url?.split('?')[0]) {
    case '/healthz':
      return writeJson(response, 200, { status: 'ok' });
    case '/readyz':
      return writeReadiness(response, await readinessOf(state));
    case '/metrics':
      if (
        !mayReadMetrics(
          { headers: request.headers, socketAddress: request.socket.remoteAddress },
          token,
        )
      )
        return writeJson(response, 401, { code: 401, error: metricsRefusal(token) });
      if (!state.deps) return writeReadiness(response, await readinessOf(state));
      return writeMetrics(state.deps, state.readiness, response);
    default:
      return writeJson(response, 404, { code: 404, error: 'Not found.' });
  }
}

/**
 * Returns `ready`, or the reason why the dispatcher is not ready: `stopping`, `database
 * unreachable`, `starting`, or a hint for the operator.
 */
async function readinessOf({ db, readiness, stack, deps }: HealthState): Promise<string> {
  if (stack.isClosing) return 'stopping';
  if (!(await db.isReachable())) return 'database unreachable';
  const problem = await readiness.hint().catch(() => 'database unreachable');
  return problem ?? (deps ? 'ready' : 'starting');
}

function writeReadiness(response: ServerResponse, status: string): void {
  writeJson(response, status === 'ready' ? 200 : 503, { status });
}

function writeJson(response: ServerResponse, status: number, body: object): void {
  response
    .writeHead(status, { 'content-type': 'application/json; charset=utf-8' })
    .end(JSON.stringify(body));
}

async function writeMetrics(
  { metrics, clock, queue, pool, breakers, freezes, db, readDb, queries }: DispatcherDeps,
  readiness: DatabaseReadiness,
  response: ServerResponse,
): Promise<void> {
  await reportQueues(db, queue, metrics);
  await reportDatabases({ databases: [db, readDb, queries.database], readiness }, metrics);
  await waitForPart(reportStandby(db, readDb, metrics));
  await waitForPart(breakers.reportTo(metrics));
  await waitForPart(freezes.reportTo(metrics));
  metrics.lastScrape.scrapedAtMs = clock.now();
  const text = await pool.metricsText(metrics);
  response.writeHead(200, { 'content-type': metrics.registry.contentType }).end(text);
}
