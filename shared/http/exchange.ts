import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Clock } from '../clock.ts';
import { isUntrustedCertificate } from '../domain/reasons.ts';
import {
  type ForwardResult,
  failureCodeOf,
  type HttpFailureReason,
  type HttpResult,
  retryAfterMs,
} from './result.ts';

/**
 * Maximum size of a response body. The response to a multicast lists each target: 1000 targets with
 * ids need about 150 KB.
 */
const maxReplyBytes = 1_048_576;

/** A request without a usable response. `cause` is the error code of a failed connection. */
interface ExchangeFailure {
  /** False if no byte of the request was written. */
  isWritten: boolean;
  reason: HttpFailureReason;
  cause?: string;
}

/** One request with its timeout. Before `onRequestStart`, no byte was written. */
export abstract class Exchange implements Dispatcher.DispatchHandler {
  readonly #deadline: NodeJS.Timeout;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = () => {
    if (!this.#isWritten) this.fail('aborted');
  };
  #controller: Dispatcher.DispatchController | null = null;
  #isWritten = false;
  #isOver = false;

  constructor(requestMs: number, signal?: AbortSignal) {
    this.#signal = signal;
    signal?.addEventListener('abort', this.#onAbort, { once: true });
    this.#deadline = setTimeout(
      () => this.fail(this.#isWritten ? 'timeout' : 'queue_timeout'),
      requestMs,
    );
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#isOver) {
      controller.abort(new Error('given up'));
      return;
    }
    this.#controller = controller;
    this.#isWritten = true;
  }

  abstract onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void;
  abstract onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void;
  abstract onResponseEnd(): void;

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.fail(this.#isWritten ? 'connection_lost' : reasonOf(error), failureCodeOf(error));
  }

  /** Ends the request without a response. If it was written, the server may have processed it. */
  fail(reason: HttpFailureReason, cause?: string): void {
    if (!this.end()) return;
    this.onFailure({
      isWritten: this.#isWritten,
      reason,
      ...(cause === undefined ? {} : { cause }),
    });
    this.#controller?.abort(new Error(reason));
  }

  /**
   * Receives the failure of the request, at most once. A response that is too long is also a
   * failure.
   */
  protected abstract onFailure(failure: ExchangeFailure): void;

  /** Stops the timeout. Returns false if the request had already ended. */
  protected end(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    clearTimeout(this.#deadline);
    this.#signal?.removeEventListener('abort', this.#onAbort);
    return true;
  }
}

/** A request whose response is read as text. */
export class HttpExchange extends Exchange {
  readonly #resolve: (result: HttpResult) => void;
  readonly #clock: Clock;
  readonly #startedAtMs: number;
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
    super(requestMs, signal);
    this.#resolve = resolve;
    this.#clock = clock;
    this.#startedAtMs = clock.monotonicMs();
  }

  onResponseStart(
    _: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes > maxReplyBytes) this.fail('reply_too_large');
    else this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    if (!this.end()) return;
    const headers = firstValues(this.#headers);
    const retryAfter = headers['retry-after'];
    this.#resolve({
      kind: 'response',
      status: this.#status,
      headers,
      body: Buffer.concat(this.#chunks).toString('utf8'),
      retryAfterMs: retryAfter === undefined ? null : retryAfterMs(retryAfter, this.#clock.now()),
      seconds: this.#seconds(),
    });
  }

  protected onFailure({ isWritten, ...failure }: ExchangeFailure): void {
    this.#resolve({
      kind: isWritten ? 'unknown' : 'not_sent',
      ...failure,
      seconds: this.#seconds(),
    });
  }

  #seconds(): number {
    return (this.#clock.monotonicMs() - this.#startedAtMs) / 1000;
  }
}

export interface StreamedExchangeOptions {
  resolve: (result: ForwardResult) => void;
  /** Called once when the body has ended or the request has failed. */
  onEnd: () => void;
  /** Maximum size of the response body in bytes. */
  replyBytes: number;
  /** Timeout until the head of the response. */
  waitMs: number;
}

/**
 * A request whose response is streamed with backpressure. A body that is too long or stalls ends
 * with an error.
 */
export class StreamedExchange extends Exchange {
  readonly #options: StreamedExchangeOptions;
  #body: Readable | undefined;
  #bytes = 0;

  constructor(options: StreamedExchangeOptions) {
    super(options.waitMs);
    this.#options = options;
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    head: IncomingHttpHeaders,
  ): void {
    const isInformation = status < 200;
    if (isInformation) return;
    const { resolve, onEnd, replyBytes } = this.#options;
    const headers = firstValues(head);
    if (Number(headers['content-length']) > replyBytes) this.fail('reply_too_large');
    if (!this.end()) return;
    const body = new Readable({
      read: () => controller.resume(),
      destroy: (error, callback) => {
        if (!body.readableEnded) controller.abort(error ?? new Error('given up'));
        callback(error);
      },
    });
    // The body may fail before anyone reads it.
    body.on('error', () => undefined).once('close', onEnd);
    this.#body = body;
    resolve({ kind: 'response', status, headers, body });
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#options.replyBytes) this.#body?.destroy(new Error('too long'));
    else if (this.#body?.push(chunk) === false) controller.pause();
  }

  onResponseEnd(): void {
    this.#body?.push(null);
  }

  override onResponseError(controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#body) this.#body.destroy(error);
    else super.onResponseError(controller, error);
  }

  protected onFailure({ isWritten: _, ...failure }: ExchangeFailure): void {
    this.#options.onEnd();
    // No request waits for a connection, because each request has its own connection. So the
    // connection attempt was too slow.
    const reason = failure.reason === 'queue_timeout' ? 'timeout' : failure.reason;
    this.#options.resolve({ kind: 'failed', ...failure, reason });
  }
}

/** Returns the headers with lower-case names. For a repeated header, returns the first value. */
function firstValues(headers: IncomingHttpHeaders): Record<string, string> {
  const first: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    const one = Array.isArray(value) ? value[0] : value;
    if (one !== undefined) first[name.toLowerCase()] = one;
  }
  return first;
}

/**
 * Returns the reason of a connection failure from the error codes of undici, OpenSSL and the
 * system.
 */
function reasonOf(error: Error): HttpFailureReason {
  const code = 'code' in error ? String(error.code) : '';
  if (code === 'ADDRESS_REFUSED') return 'address_refused';
  if (code === 'UND_ERR_CONNECT_TIMEOUT') return 'connect_timeout';
  if (code === 'UND_ERR_CLOSED' || code === 'UND_ERR_DESTROYED') return 'closed';
  if (code === 'UND_ERR_INVALID_ARG') return 'bad_request';
  return isUntrustedCertificate(code) ? 'certificate_refused' : 'connect_failed';
}
