import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';

/** Time after which a client should call again. */
const retryAfterSeconds = 5;

/**
 * Handler of an api that starts: it listens at once, so that `/readyz` tells what it waits for
 * (protocol/operation.md#health). Calls are refused with 503 until `become` gives it the handler of the started api.
 */
export class StartingHandler {
  #handler: RequestListener;
  /** Reason why the api is not ready. */
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
    if (path !== '/readyz') return write(response, 503, { code: 503, error: 'The service is starting.' });
    const reason = await this.reason().catch(() => 'database unreachable');
    write(response, 503, { status: reason ?? 'starting' });
  }
}

function write(response: ServerResponse, status: number, body: object): void {
  if (status === 503) response.setHeader('retry-after', retryAfterSeconds);
  // The body of a call is not read.
  response.setHeader('connection', 'close');
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' }).end(JSON.stringify(body));
}
