import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';

/**
 * Language of a page. Pages are plain HTML without scripts, readable on a phone, in English or
 * Chinese. Styles are inline and nothing is loaded.
 */
export type Language = 'en' | 'zh';

export interface Page {
  status: number;
  html: string;
}

/**
 * Headers of every page. They forbid scripts and loading, and keep an address with a token out of
 * `Referer` headers.
 */
export const pageHeaders: Readonly<Record<string, string>> = {
  'Cache-Control': 'no-store',
  'Referrer-Policy': 'no-referrer',
  'Content-Security-Policy':
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
};

const style = `
body{font:17px/1.5 system-ui,sans-serif;max-width:26em;margin:10vh auto;padding:0 1.2em;color:#222;background:#fff}
h1{font-size:1.4em}label{display:block;margin:1em 0}[role=alert]{color:#a00}a{color:#05c}
input,button{box-sizing:border-box;width:100%;font:inherit;padding:.6em;margin-top:.3em}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}[role=alert]{color:#f77}a{color:#7bf}}`;

/**
 * Returns a whole page. `title` and `body` are HTML, so the caller must escape texts from
 * elsewhere.
 */
export function htmlPage(
  status: number,
  { language, title, body }: { language: Language; title: string; body: string[] },
): Page {
  const html = [
    `<!doctype html><html lang="${language}"><head><meta charset="utf-8">`,
    '<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="robots" ' +
      'content="noindex">',
    `<title>${title}</title><style>${style}</style></head><body><h1>${title}</h1>`,
    ...body,
    '</body></html>',
  ];
  return { status, html: html.join('\n') };
}

/** Escapes a text for HTML, including attributes. */
export function escapeHtml(text: string): string {
  const entities: Record<string, string> = {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    '"': '&quot;',
    "'": '&#39;',
  };
  return text.replace(/[&<>"']/g, (char) => entities[char] ?? char);
}

/** Time after which a client should call again. */
const retryAfterSeconds = 5;

/**
 * Handler of an api that is starting. The api listens at once, so that `/readyz` reports what the
 * api waits for (protocol/operation.md#health). Calls are refused with 503 until `become` sets the
 * handler of the started api.
 */
export class StartingHandler {
  #handler: RequestListener;
  /** Returns the reason why the api is not ready. */
  reason: () => Promise<string | undefined> = async () => 'database unreachable';

  constructor() {
    this.#handler = (request, response) => void this.#answer(request, response);
  }

  readonly listener: RequestListener = (request, response) => this.#handler(request, response);

  become(handler: RequestListener): void {
    this.#handler = handler;
  }

  async #answer({ url = '' }: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = url.split('?')[0];
    if (path === '/healthz') return write(response, 200, { status: 'ok' });
    if (path !== '/readyz')
      return write(response, 503, { code: 503, error: 'The service is starting.' });
    const reason = await this.reason().catch(() => 'database unreachable');
    write(response, 503, { status: reason ?? 'starting' });
  }
}

function write(response: ServerResponse, status: number, body: object): void {
  if (status === 503) response.setHeader('retry-after', retryAfterSeconds);
  // The body of the call is not read, so the connection must close.
  response.setHeader('connection', 'close');
  response
    .writeHead(status, { 'content-type': 'application/json; charset=utf-8' })
    .end(JSON.stringify(body));
}
