import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { isBearer } from '../shared/crypto.ts';
import { reportQueues } from '../shared/queue/report.ts';
import type { Means } from './means.ts';

/** Probes and scrapes are short and few: whoever is slow, or comes in numbers, is not one of them. */
const limits = { headersTimeout: 10_000, requestTimeout: 20_000, connectionsCheckingInterval: 2_000 };
const maxConnections = 256;

export interface HealthAddress {
  port: number;
  host: string;
  /** What `/metrics` asks for as a bearer token; undefined: nothing. */
  token: string | undefined;
}

/**
 * `/metrics`, `/healthz` and `/readyz` of a dispatcher (contract.md METRICS_PORT, METRICS_HOST, METRICS_TOKEN). Resolves
 * once bound.
 */
export function serveHealth(means: Means, { port, host, token }: HealthAddress): Promise<Server> {
  const server = createServer(limits, (request, response) => {
    answer(means, { request, token }, response).catch((error: unknown) => {
      means.log.error({ err: error }, 'health request failed');
      response.writeHead(500).end();
    });
  });
  server.maxConnections = maxConnections;
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => resolve(server));
  });
}

async function answer(
  means: Means,
  { request, token }: { request: IncomingMessage; token: string | undefined },
  response: ServerResponse,
): Promise<void> {
  switch (request.url?.split('?')[0]) {
    case '/healthz':
      return writeJson(response, 200, { status: 'ok' });
    case '/readyz':
      return (await means.db.isReachable())
        ? writeJson(response, 200, { status: 'ready' })
        : writeJson(response, 503, { status: 'database unreachable' });
    case '/metrics':
      if (token !== undefined && !isBearer(request.headers.authorization, token))
        return writeJson(response, 401, { code: 401, error: 'Unauthorized.' });
      return writeMetrics(means, response);
    default:
      return writeJson(response, 404, { code: 404, error: 'Not found.' });
  }
}

function writeJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' }).end(JSON.stringify(body));
}

async function writeMetrics(
  { metrics, queue, pool, breakers }: Means,
  response: ServerResponse,
): Promise<void> {
  await reportQueues(queue, metrics);
  pool.reportTo(metrics);
  await breakers.reportTo(metrics).catch(() => undefined);
  const text = await metrics.registry.metrics();
  response.writeHead(200, { 'content-type': metrics.registry.contentType }).end(text);
}
