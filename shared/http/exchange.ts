import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { Clock } from '../clock.ts';
import { failureCodeOf } from './connect-failure.ts';
import { type HttpFailureReason, type HttpResult, retryAfterMs } from './result.ts';

/** Limit of a response body. A multicast response names each target: 1000 with their ids are some 150 KB. */
const maxReplyBytes = 1_048_576;

/** One request from the call to its response. Before `onRequestStart` no byte was written. */
export class HttpExchange implements Dispatcher.DispatchHandler {
  readonly #resolve: (result: HttpResult) => void;
  readonly #clock: Clock;
  readonly #startedAtMs: number;
  readonly #deadline: NodeJS.Timeout;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = () => {
    if (!this.#isWritten) this.fail('aborted');
  };
  #controller: Dispatcher.DispatchController | null = null;
  #isWritten = false;
  #isOver = false;
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(
    resolve: (result: HttpResult) => void,
    clock: Clock,
    requestMs: number,
    signal: AbortSignal | undefined,
  ) {
    this.#resolve = resolve;
    this.#clock = clock;
    this.#startedAtMs = clock.monotonicMs();
    this.#signal = signal;
    signal?.addEventListener('abort', this.#onAbort, { once: true });
    this.#deadline = setTimeout(() => this.fail(this.#isWritten ? 'timeout' : 'queue_timeout'), requestMs);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#isOver) {
      controller.abort(new Error('given up'));
      return;
    }
    this.#controller = controller;
    this.#isWritten = true;
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes > maxReplyBytes) this.fail('reply_too_large');
    else this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    if (this.#isOver) return;
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(this.#headers)) {
      const first = Array.isArray(value) ? value[0] : value;
      if (first !== undefined) headers[name.toLowerCase()] = first;
    }
    const retryAfter = headers['retry-after'];
    this.#end({
      kind: 'response',
      status: this.#status,
      headers,
      body: Buffer.concat(this.#chunks).toString('utf8'),
      retryAfterMs: retryAfter === undefined ? null : retryAfterMs(retryAfter, this.#clock.now()),
      seconds: this.#seconds(),
    });
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.fail(this.#isWritten ? 'connection_lost' : reasonOf(error), failureCodeOf(error));
  }

  /** Ends it without a response; the server may have processed it if it was written. */
  fail(reason: HttpFailureReason, cause?: string): void {
    if (this.#isOver) return;
    this.#end({
      kind: this.#isWritten ? 'unknown' : 'not_sent',
      reason,
      seconds: this.#seconds(),
      ...(cause === undefined ? {} : { cause }),
    });
    this.#controller?.abort(new Error(reason));
  }

  #end(result: HttpResult): void {
    this.#isOver = true;
    clearTimeout(this.#deadline);
    this.#signal?.removeEventListener('abort', this.#onAbort);
    this.#resolve(result);
  }

  #seconds(): number {
    return (this.#clock.monotonicMs() - this.#startedAtMs) / 1000;
  }
}

/** Classifies a connection failure by the codes of undici, OpenSSL and the system. */
function reasonOf(error: Error): HttpFailureReason {
  const code = 'code' in error ? String(error.code) : '';
  if (code === 'ADDRESS_REFUSED') return 'address_refused';
  if (code === 'UND_ERR_CONNECT_TIMEOUT') return 'connect_timeout';
  if (code === 'UND_ERR_CLOSED' || code === 'UND_ERR_DESTROYED') return 'closed';
  if (code === 'UND_ERR_INVALID_ARG') return 'bad_request';
  return /CERT|SELF_SIGNED|ALTNAME|VERIFY/.test(code) ? 'certificate_refused' : 'connect_failed';
}
