/**
 * HTML pages of a sandbox, without scripts. They show the requests that each gateway received,
 * escaped.
 */

import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { GatewayInstance, ShownRequest } from './definition.ts';

/** Number of requests that a gateway's page shows, and number of characters of each body. */
const maxListedRequests = 50;
const shownChars = 4000;
const refreshSeconds = 5;

const escapes: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => escapes[character] ?? '');

const style = `body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3rem .8rem .3rem 0;border-bottom:1px solid #ddd}
td.n,th.n{text-align:right}pre{white-space:pre-wrap;word-break:break-all;background:#f5f5f5;padding:.6rem}.bad{color:#b00}`;

function frame(title: string, content: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="${refreshSeconds}">
<meta name="viewport" content="width=device-width"><title>${escapeHtml(title)}</title><style>${style}</style></head>
<body>${content}</body></html>`;
}

/** Renders the overview with one row per gateway. */
function overviewPage(instances: readonly GatewayInstance[]): string {
  const rows = instances.map((instance) => {
    const { accepted, devices, requests, violations } = instance.summary();
    const count = (n: number, cssClass = '') => `<td class="n${cssClass}">${n}</td>`;
    return `<tr><td><a href="/${instance.connector}">${escapeHtml(instance.title)}</a></td><td>${instance.connector}</td>
<td>${escapeHtml(instance.vendor ?? '')}</td><td><code>${escapeHtml(instance.url)}</code></td>
${count(requests)}${count(devices)}${count(accepted)}${count(violations, violations > 0 ? ' bad' : '')}
<td><a href="/${instance.connector}/profile.json">profile</a></td></tr>`;
  });
  return frame(
    'Carillon sandbox',
    `<h1>Sandbox gateways</h1><table><tr><th>gateway</th><th>profile</th><th>vendor</th><th>address</th>
<th class="n">requests</th><th class="n">devices</th><th class="n">accepted</th><th class="n">violations</th><th></th></tr>
${rows.join('\n')}</table>
<p>Requests include refused ones, but not calls for access tokens. Violations are requests that a client must never send.</p>`,
  );
}

/** Renders the page of one gateway: its last requests, newest first. */
function gatewayPage(instance: GatewayInstance): string {
  const { accepted, devices, requests, violations } = instance.summary();
  const lastViolations = instance.violations().slice(-maxListedRequests);
  const lastRequests = instance.requests().slice(-maxListedRequests).reverse();
  return frame(
    `${instance.title} – Carillon sandbox`,
    `<p><a href="/">all gateways</a></p><h1>${escapeHtml(instance.title)}</h1>
<p>${requests} requests, ${devices} devices, ${accepted} accepted, ${violations} violations.</p>
${lastViolations.length === 0 ? '' : `<h2>Violations</h2><ul class="bad">${lastViolations.map((one) => `<li>${escapeHtml(one)}</li>`).join('')}</ul>`}
<h2>The last requests</h2>${lastRequests.length === 0 ? '<p>None so far.</p>' : lastRequests.map(requestHtml).join('\n')}`,
  );
}

function requestHtml({ body, devices, path, status }: ShownRequest): string {
  const text = readableText(body);
  const cut = text.length > shownChars ? `${text.slice(0, shownChars)} …` : text;
  return `<p><code>${escapeHtml(path.slice(0, 300))}</code> → ${status}, ${devices} ${devices === 1 ? 'device' : 'devices'}</p>
<pre>${escapeHtml(cut)}</pre>`;
}

/**
 * Formats a body: JSON is indented, a form is unescaped with one field per line, and other text
 * stays unchanged.
 */
function readableText(body: Buffer): string {
  const text = body.toString('utf8');
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    if (!/^[\w.%+-]+=/.test(text)) return text;
    return [...new URLSearchParams(text)].map(([name, value]) => `${name} = ${value}`).join('\n');
  }
}

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
 * Serves the pages of a sandbox on loopback: `/` for the overview, `/<connector>` for one gateway,
 * `/<connector>/profile.json` for the credentials of a profile. Programs read `/summary.json`, and
 * `/<connector>/requests.json` for the last requests of one gateway.
 */
export async function startPage(
  instances: readonly GatewayInstance[],
  { host = '127.0.0.1', port = 0 }: { host?: string; port?: number } = {},
): Promise<SandboxPage> {
  const server = createServer((request, response) => {
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    write(
      response,
      isRead ? pageOf(request.url ?? '/', instances) : text(405, 'This page is read-only.\n'),
    );
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
    if (path === `/${instance.connector}/requests.json`) return json(requestsOf(instance));
  }
  return text(404, 'There is no such page.\n');
}

/** Returns the last requests of a gateway with their readable bodies, oldest first. */
const requestsOf = (instance: GatewayInstance) =>
  instance
    .requests()
    .slice(-maxListedRequests)
    .map(({ body, ...request }) => ({ ...request, body: body.toString('utf8') }));

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
