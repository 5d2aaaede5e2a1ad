import { type OutgoingHttpHeaders, sensitiveHeaders } from 'node:http2';
import { retryAfterMs } from '../../../shared/http/client.ts';
import type {
  OnResult,
  RequestBatch,
  RequestResult,
  TransportReason,
  TransportRequest,
} from '../transport.ts';

/** A batch on its way: how many replies are still owed. */
export interface BatchState {
  batch: RequestBatch;
  onResult: OnResult;
  /** Headers shared by all requests, the pseudo ones included. */
  sharedHeaders: Readonly<OutgoingHttpHeaders>;
  /** The base URL's path and the template's. */
  pathPrefix: string;
  unsettled: number;
  /** Set once the rest of it must not leave any more. */
  stopped: TransportReason | null;
  /** What `onReply` threw, if it did: a defect of the caller. */
  callbackError: unknown;
  done(callbackError: unknown): void;
}

/** The bookkeeping of a batch; `done` is called after the last reply, with what `onReply` threw. */
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
      // Never indexed: values that never repeat would push the lasting ones out of the peer's small table
      // (protocol/apns.md#connections). `:path` is left out of it anyway.
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

/** One request from the queue to its reply. */
export interface Exchange {
  state: BatchState;
  index: number;
  request: TransportRequest;
  /** How often it was handed back unprocessed and queued again. */
  repeats: number;
  queuedAtMs: number;
  writtenAtMs: number;
  /** How much its connection had read when it was written. */
  readsBefore: number;
  status: number;
  retryAfter: string | undefined;
  chunks: Buffer[] | null;
  bytes: number;
}

/** Reply bodies are read up to this many bytes: the gateways' are far smaller, a hostile peer's are not. */
const maxReplyBytes = 65_536;

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

/** The headers of this request, in the form a session takes them. */
export function headersOf({ state, request }: Exchange): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = { ...state.sharedHeaders };
  headers[':path'] = `${state.pathPrefix}${request.path}`;
  const { requestHeaderName } = state.batch.template;
  if (requestHeaderName !== undefined && request.headerValue !== undefined)
    headers[requestHeaderName] = request.headerValue;
  return headers;
}

/** The body of this request: the shared bytes, with its own splice in their midst where there is one. */
export function bodyOf(exchange: Exchange): Buffer {
  const { body, spliceAt } = exchange.state.batch.template;
  if (spliceAt === undefined || exchange.request.splice === undefined) return body;
  return Buffer.concat([
    body.subarray(0, spliceAt),
    Buffer.from(exchange.request.splice),
    body.subarray(spliceAt),
  ]);
}

/** Keeps a piece of the reply's body, up to the bound; what is beyond is read and forgotten. */
export function keepChunk(exchange: Exchange, chunk: Buffer): void {
  const room = maxReplyBytes - exchange.bytes;
  if (room <= 0) return;
  const kept = chunk.length > room ? chunk.subarray(0, room) : chunk;
  exchange.bytes += kept.length;
  if (exchange.chunks === null) exchange.chunks = [kept];
  else exchange.chunks.push(kept);
}

/** The reply an exchange with a status has become. */
export function responseOf(exchange: Exchange, nowMs: number, epochMs: number): RequestResult {
  return {
    kind: 'response',
    status: exchange.status,
    body: exchange.chunks === null ? '' : Buffer.concat(exchange.chunks).toString('utf8'),
    retryAfterMs: exchange.retryAfter === undefined ? null : retryAfterMs(exchange.retryAfter, epochMs),
    seconds: (nowMs - exchange.writtenAtMs) / 1000,
  };
}
