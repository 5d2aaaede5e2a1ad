import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { GatewayInstance } from './instance.ts';
import { gatewayPage, overviewPage } from './page.ts';

export interface SandboxPage {
  url: string;
  close(): Promise<void>;
}

const headers = {
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
};

/**
 * Serves the pages of a sandbox on loopback: `/`, `/<connector>` for one gateway, `/<connector>/profile.json` for the
 * credentials of a profile, `/summary.json` for programs.
 */
export async function startPage(
  instances: readonly GatewayInstance[],
  { host = '127.0.0.1', port = 0 }: { host?: string; port?: number } = {},
): Promise<SandboxPage> {
  const server = createServer((request, response) => {
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    write(response, isRead ? pageOf(request.url ?? '/', instances) : text(405, 'This page is read-only.\n'));
  });
  server.listen(port, host);
  await once(server, 'listening');
  const address = server.address();
  const bound = typeof address === 'object' && address !== null ? address.port : port;
  return {
    url: `http://${host}:${bound}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

interface Page {
  status: number;
  type: string;
  body: string;
}

const html = (body: string): Page => ({ status: 200, type: 'text/html; charset=utf-8', body });
const json = (value: unknown): Page => ({
  status: 200,
  type: 'application/json',
  body: JSON.stringify(value),
});
const text = (status: number, body: string): Page => ({ status, type: 'text/plain', body });

function pageOf(target: string, instances: readonly GatewayInstance[]): Page {
  const [path = ''] = target.split('?');
  if (path === '/') return html(overviewPage(instances));
  if (path === '/summary.json') return json(summaryOf(instances));
  for (const instance of instances) {
    if (path === `/${instance.connector}`) return html(gatewayPage(instance));
    if (path === `/${instance.connector}/profile.json`) return json(instance.credentials);
  }
  return text(404, 'There is no such page.\n');
}

const summaryOf = (instances: readonly GatewayInstance[]) =>
  Object.fromEntries(
    instances.map((instance) => [
      instance.connector,
      { ...instance.summary(), lastViolations: instance.violations().slice(-20) },
    ]),
  );

function write(response: ServerResponse, { body, status, type }: Page): void {
  response.writeHead(status, { ...headers, 'content-type': type });
  response.end(body);
}
