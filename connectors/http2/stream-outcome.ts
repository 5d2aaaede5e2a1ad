/**
 * What a stream without an answer means: was the request processed or may it be sent again?
 *
 * RFC 9113 8.7 names two proofs that it was not: a GOAWAY whose last id is below the stream's, and
 * REFUSED_STREAM. Everything else that was written may have been delivered (protocol/apns.md#connections, protocol/apns.md#repeats).
 */
import { constants } from 'node:http2';
import type { TransportReason } from './transport.ts';

export interface Goaway {
  code: number;
  lastId: number;
}

export interface StreamEnd {
  /** Undefined while the request never got as far as the wire. */
  id: number | undefined;
  rstCode: number | undefined;
  /** Code of the error the stream or its session ended with; empty when there was none. */
  errorCode: string;
  goaway: Goaway | null;
}

export interface StreamOutcome {
  /** It may have been processed; false is proof that it was not. */
  isProcessed: boolean;
  reason: TransportReason;
}

export function streamOutcome(end: StreamEnd): StreamOutcome {
  const { goaway } = end;
  if (end.id === undefined) return { isProcessed: false, reason: 'connection_lost' };
  if (goaway !== null && end.id > goaway.lastId) return { isProcessed: false, reason: 'goaway' };
  // node:http2 gives every stream of a session the code of its GOAWAY: then it says nothing of this stream.
  const isOwnCode = goaway?.code !== constants.NGHTTP2_REFUSED_STREAM;
  if (end.rstCode === constants.NGHTTP2_REFUSED_STREAM && isOwnCode)
    return { isProcessed: false, reason: 'refused_stream' };
  const isReset = end.errorCode === 'ERR_HTTP2_STREAM_ERROR' && goaway?.code !== end.rstCode;
  return { isProcessed: true, reason: isReset ? 'stream_reset' : 'connection_lost' };
}

/** APNs puts `{"reason":…}` into the debug data of a GOAWAY (protocol/apns.md#answers); short words only. */
export function goawayReason(data: ArrayBufferView | undefined): string | undefined {
  if (data === undefined || data.byteLength > 1024) return undefined;
  const text = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('utf8');
  return /"reason"\s*:\s*"([A-Za-z]{1,40})"/.exec(text)?.[1];
}
