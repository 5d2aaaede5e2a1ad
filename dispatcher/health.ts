import { createServer, type Server, type ServerResponse } from 'node:http';
import { reportQueues } from '../shared/queue/report.ts';
import type { Means } from './means.ts';

/** `/metrics`, `/healthz` and `/readyz` of a dispatcher (contract.md METRICS_PORT). Resolves once bound. */
export function serveHealth(means: Means, port: number, host: string): Promise<Server> {
  const server = createServer((request, response) => {
    answer(means, request.url ?? '', response).catch((error: unknown) => {
      means.log.error({ err: error }, 'health request failed');
      response.writeHead(500).end();
    });
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => resolve(server));
  });
}

async function answer(means: Means, url: string, response: ServerResponse): Promise<void> {
  switch (url.split('?')[0]) {
    case '/healthz':
      return writeJson(response, 200, { status: 'ok' });
    case '/readyz':
      return (await means.db.isReachable())
        ? writeJson(response, 200, { status: 'ready' })
        : writeJson(response, 503, { status: 'database unreachable' });
    case '/metrics':
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
