import { type OutgoingHttpHeaders, sensitiveHeaders } from 'node:http2';
import { retryAfterMs } from '../../../shared/http/result.ts';
import type {
  OnResult,
  RequestBatch,
  RequestResult,
  TransportReason,
  TransportRequest,
} from '../transport.ts';

/** Batch in progress, with the number of results to come. */
export interface BatchState {
  batch: RequestBatch;
  onResult: OnResult;
  /** Headers that all requests share, pseudo headers included. */
  sharedHeaders: Readonly<OutgoingHttpHeaders>;
  /** Path of the base URL and of the template. */
  pathPrefix: string;
  unsettled: number;
  /** Reason why waiting requests must not be sent; null: they may. */
  stopped: TransportReason | null;
  /** Error that `onResult` threw. */
  callbackError: unknown;
  done(callbackError: unknown): void;
}

/** Returns the state of a new batch. `done` is called after the last result, with the error of `onResult`. */
export function newBatchState(
  batch: RequestBatch,
  onResult: OnResult,
  baseUrl: string,
  done: BatchState['done'],
): BatchState {
  const url = new URL(baseUrl);
  return {
    batch,
    onResult,
    sharedHeaders: {
      ':method': 'POST',
      ':scheme': 'https',
      ':authority': url.host,
      ...batch.template.headers,
      // Never indexed: values that do not repeat would evict the shared ones from the peer's small table
      // (protocol/apns.md#connections). `:path` is never indexed anyway.
      [sensitiveHeaders]:
        batch.template.requestHeaderName === undefined ? [] : [batch.template.requestHeaderName],
    },
    pathPrefix: `${url.pathname.replace(/\/$/, '')}${batch.template.pathPrefix}`,
    unsettled: batch.requests.length,
    stopped: null,
    callbackError: undefined,
    done,
  };
}

/** One request, from the queue to its result. */
export interface Exchange {
  state: BatchState;
  index: number;
  request: TransportRequest;
  /** Number of times it was returned unprocessed and queued again. */
  repeats: number;
  queuedAtMs: number;
  writtenAtMs: number;
  /** Reads of the connection before the request was written. */
  readsBefore: number;
  status: number;
  retryAfter: string | undefined;
  chunks: Buffer[] | null;
  bytes: number;
}

/** Kept part of a response body; those of gateways are far smaller. */
const maxBodyBytes = 65_536;

export function newExchange(
  state: BatchState,
  index: number,
  request: TransportRequest,
  nowMs: number,
): Exchange {
  return {
    state,
    index,
    request,
    repeats: 0,
    queuedAtMs: nowMs,
    writtenAtMs: 0,
    readsBefore: 0,
    status: 0,
    retryAfter: undefined,
    chunks: null,
    bytes: 0,
  };
}

/** Returns the headers of a request for `session.request`. */
export function headersOf({ state, request }: Exchange): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = { ...state.sharedHeaders };
  headers[':path'] = `${state.pathPrefix}${request.path}`;
  const { requestHeaderName, requestHeaderPrefix = '' } = state.batch.template;
  if (requestHeaderName !== undefined && request.headerValue !== undefined)
    headers[requestHeaderName] = `${requestHeaderPrefix}${request.headerValue}`;
  return headers;
}

/** Returns the body of a request: the shared bytes, with its splice inserted. */
export function bodyOf(exchange: Exchange): Buffer {
  const { body, spliceAt } = exchange.state.batch.template;
  if (spliceAt === undefined || exchange.request.splice === undefined) return body;
  return Buffer.concat([
    body.subarray(0, spliceAt),
    Buffer.from(exchange.request.splice),
    body.subarray(spliceAt),
  ]);
}

/** Keeps a chunk of the response body, up to the limit; discards the rest. */
export function keepChunk(exchange: Exchange, chunk: Buffer): void {
  const room = maxBodyBytes - exchange.bytes;
  if (room <= 0) return;
  const kept = chunk.length > room ? chunk.subarray(0, room) : chunk;
  exchange.bytes += kept.length;
  if (exchange.chunks === null) exchange.chunks = [kept];
  else exchange.chunks.push(kept);
}

/** Returns the response of an exchange with a status. */
export function responseOf(exchange: Exchange, nowMs: number, epochMs: number): RequestResult {
  return {
    kind: 'response',
    status: exchange.status,
    body: exchange.chunks === null ? '' : Buffer.concat(exchange.chunks).toString('utf8'),
    retryAfterMs: exchange.retryAfter === undefined ? null : retryAfterMs(exchange.retryAfter, epochMs),
    seconds: (nowMs - exchange.writtenAtMs) / 1000,
  };
}
