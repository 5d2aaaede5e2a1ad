/**
 * Decides whether a request without a response was processed or may be sent again.
 *
 * RFC 9113 8.7 names two proofs that it was not processed: a GOAWAY with a lower last stream id, and REFUSED_STREAM.
 * Any other request that was written may have been delivered (protocol/apns.md#connections, protocol/apns.md#repeats).
 */
import { constants } from 'node:http2';
import type { TransportReason } from './transport.ts';

export interface Goaway {
  code: number;
  lastId: number;
}

export interface StreamEnd {
  /** Undefined when the request was never written. */
  id: number | undefined;
  rstCode: number | undefined;
  /** Code of the error of the stream or its session; empty without an error. */
  errorCode: string;
  goaway: Goaway | null;
}

export interface StreamOutcome {
  /** True when the request may have been processed; false is a proof that it was not. */
  isProcessed: boolean;
  reason: TransportReason;
}

export function streamOutcome(end: StreamEnd): StreamOutcome {
  const { goaway } = end;
  if (end.id === undefined) return { isProcessed: false, reason: 'connection_lost' };
  if (goaway !== null && end.id > goaway.lastId) return { isProcessed: false, reason: 'goaway' };
  // node:http2 sets the code of a GOAWAY on every stream of the session; then the code is not about this stream.
  const isOwnCode = goaway?.code !== constants.NGHTTP2_REFUSED_STREAM;
  if (end.rstCode === constants.NGHTTP2_REFUSED_STREAM && isOwnCode)
    return { isProcessed: false, reason: 'refused_stream' };
  const isReset = end.errorCode === 'ERR_HTTP2_STREAM_ERROR' && goaway?.code !== end.rstCode;
  return { isProcessed: true, reason: isReset ? 'stream_reset' : 'connection_lost' };
}

/** Returns the `reason` that APNs puts as JSON into the debug data of a GOAWAY (protocol/apns.md#answers). */
export function goawayReason(data: ArrayBufferView | undefined): string | undefined {
  if (data === undefined || data.byteLength > 1024) return undefined;
  const text = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('utf8');
  return /"reason"\s*:\s*"([A-Za-z]{1,40})"/.exec(text)?.[1];
}
