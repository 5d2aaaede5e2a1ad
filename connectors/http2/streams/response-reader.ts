/** Converts the frames of streams to results of requests (RFC 9113 5.1, 8.1). */
import type { Clock } from '../../../shared/clock.ts';
import { retryAfterMs } from '../../../shared/http/result.ts';
import type { ByteRange, FloodGuard } from '../frames/frame-reader.ts';
import { errorCode, throwConnectionError } from '../frames/wire-format.ts';
import { HeaderDecoder } from '../hpack/decoder.ts';
import { defaultTableSize } from '../hpack/static-table.ts';
import type { ActiveBatch } from '../requests/active-batch.ts';
import type { Http2Response, TransportReason } from '../transport.ts';
import type { PartialResponse, StreamTable } from './stream-table.ts';

/** Callbacks of a session to the transport. */
export interface SessionListener {
  onRoundTrip(seconds: number): void;
  onUnprocessed(batch: ActiveBatch, index: number, reason: TransportReason): void;
  onUnknown(batch: ActiveBatch, index: number, reason: TransportReason, seconds: number): void;
}

/** Callbacks of a session to its connection. */
export interface Http2SessionHost {
  readonly clock: Clock;
  /** See `TransportOptions`. */
  readonly responseHeader: string | undefined;
  readonly owner: SessionListener;
  /** Called for each SETTINGS frame. */
  onSettings(): void;
  /** Called when bytes arrive. */
  onRead(): void;
  /** Called if frames may have freed capacity, or the socket has drained. */
  onCapacity(): void;
  onResponse(status: number, seconds: number): void;
  drain(): void;
  onGoaway(detail: string, code: number): void;
  /** Called for RST_STREAM with ENHANCE_YOUR_CALM. */
  onCalm(): void;
  /** The peer violated the protocol. GOAWAY was sent and the socket closes. */
  onConnectionError(code: number): void;
}

/** Maximum length of a response body. A longer body is cut off and its stream cancelled. */
export const maxBodyBytes = 65_536;
/** Maximum length of all incomplete response bodies of a connection. */
const maxKeptBytes = 4_194_304;
/** Our SETTINGS_MAX_HEADER_LIST_SIZE. */
export const maxHeaderListBytes = 16_384;
/**
 * Our SETTINGS_INITIAL_WINDOW_SIZE. Stream windows are never increased, because `maxBodyBytes` is
 * smaller.
 */
export const streamWindowBytes = 131_072;

/** The part of a session that the response reader uses. */
export interface ResponseReaderHost {
  /** Id of the next stream. This stream and all higher streams are idle. */
  readonly nextId: number;
  /** Time of the current read (monotonic). */
  readonly readAtMs: number;
  /** Sends RST_STREAM and drops the rest of the request's body. */
  reset(id: number, code: number): void;
  /** Called when a response is complete, `seconds` after the request was written. */
  onResponse(status: number, seconds: number): void;
  /** The stream has ended. The rest of the request's body is not needed. */
  onStreamClosed(id: number): void;
}

export class ResponseReader {
  readonly #session: ResponseReaderHost;
  readonly #connection: Http2SessionHost;
  readonly #table: StreamTable;
  readonly #guard: FloodGuard;
  readonly #decoder: HeaderDecoder;
  #keptBytes = 0;
  /** Reused for nearly all responses: status 200 without a body. */
  readonly #ok: Http2Response = {
    kind: 'response',
    status: 200,
    body: '',
    header: undefined,
    retryAfterMs: null,
    seconds: 0,
  };

  constructor(
    session: ResponseReaderHost,
    connection: Http2SessionHost,
    table: StreamTable,
    guard: FloodGuard,
  ) {
    this.#session = session;
    this.#connection = connection;
    this.#table = table;
    this.#guard = guard;
    this.#decoder = new HeaderDecoder({
      tableSize: defaultTableSize,
      listSize: maxHeaderListBytes,
      wanted: connection.responseHeader,
    });
  }

  onHeaders(id: number, isEnd: boolean, bytes: Buffer, start: number, end: number): void {
    const slot = this.#table.find(id);
    // The header block contains only `:status: 200`, entry 8 of the static table. Nothing needs to
    // be decoded.
    if (
      isEnd &&
      end - start === 1 &&
      bytes[start] === 0x88 &&
      slot >= 0 &&
      this.#table.statuses[slot] === 0
    ) {
      this.#settleOk(slot);
      return;
    }
    const decoder = this.#decoder;
    const error = decoder.decode(bytes, start, end);
    if (error === 'broken') throwConnectionError(errorCode.compression, 'an invalid header block');
    if (error === 'too_large')
      throwConnectionError(errorCode.enhanceYourCalm, 'a header list above the limit');
    if (slot < 0) this.#onUnknownStream(id);
    else if ((this.#table.statuses[slot] ?? 0) > 0) this.#onTrailers(slot, id, isEnd);
    else this.#onStatus(slot, id, isEnd);
  }

  onData(id: number, isEnd: boolean, flowBytes: number, piece: ByteRange): void {
    const table = this.#table;
    const slot = table.find(id);
    if (slot < 0) {
      this.#onUnknownStream(id);
      return;
    }
    if (table.statuses[slot] === 0) {
      this.#resetStream(slot, id, errorCode.protocol);
      return;
    }
    const partial = table.partials[slot] ?? null;
    if (isEnd && (partial === null || partial.flowBytes === 0)) {
      const { bytes, start, end } = piece;
      this.#settleResponse(
        slot,
        bytes.toString('utf8', start, Math.min(end, start + maxBodyBytes)),
      );
      return;
    }
    if (flowBytes === 0 && !isEnd) this.#guard.count();
    this.#keep(slot, id, flowBytes, piece);
    if (isEnd && table.ids[slot] === id) this.#settleResponse(slot);
  }

  onReset(id: number, code: number): void {
    const slot = this.#table.find(id);
    if (slot < 0) {
      this.#onUnknownStream(id);
      return;
    }
    this.#guard.count();
    if (code === errorCode.enhanceYourCalm) this.#connection.onCalm();
    if (code === errorCode.refusedStream) this.settleUnprocessed(slot, 'refused_stream');
    else this.settleLost(slot, 'stream_reset');
  }

  /**
   * Settles a stream of which no further frame is read. If a status was received, this is a
   * response, even if its body is incomplete.
   */
  settleLost(slot: number, reason: TransportReason): void {
    if ((this.#table.statuses[slot] ?? 0) > 0) this.#settleResponse(slot);
    else this.settleUnknown(slot, reason);
  }

  /** Settles a stream with its response. `body` is given if the body arrived in one piece. */
  #settleResponse(slot: number, body?: string): void {
    const table = this.#table;
    const partial = table.partials[slot] ?? null;
    const status = table.statuses[slot] ?? 0;
    const retryAfter = partial?.retryAfter;
    const kept =
      partial === null || partial.chunks.length === 0
        ? ''
        : Buffer.concat(partial.chunks).toString('utf8');
    this.#report(slot, {
      kind: 'response',
      status,
      body: body ?? kept,
      header: partial?.header,
      retryAfterMs:
        retryAfter === undefined ? null : retryAfterMs(retryAfter, this.#connection.clock.now()),
      seconds: (this.#session.readAtMs - (table.writtenAtMs[slot] ?? 0)) / 1000,
    });
  }

  /**
   * Settles a stream that the peer calls unprocessed. The request may be sent again, unless a status
   * was received, which shows that the peer did process the request.
   */
  settleUnprocessed(slot: number, reason: TransportReason): void {
    if ((this.#table.statuses[slot] ?? 0) > 0) {
      this.#settleResponse(slot);
      return;
    }
    const batch = this.#table.batches[slot];
    const index = this.#table.indices[slot] ?? 0;
    this.#release(slot);
    if (batch) this.#connection.owner.onUnprocessed(batch, index, reason);
  }

  /** Settles a stream as unknown: the request was written and gets no response. */
  settleUnknown(slot: number, reason: TransportReason): void {
    const table = this.#table;
    const batch = table.batches[slot];
    const index = table.indices[slot] ?? 0;
    const seconds = (this.#session.readAtMs - (table.writtenAtMs[slot] ?? 0)) / 1000;
    this.#release(slot);
    if (batch) this.#connection.owner.onUnknown(batch, index, reason, Math.max(0, seconds));
  }

  #settleOk(slot: number): void {
    const reply = this.#ok;
    reply.seconds = (this.#session.readAtMs - (this.#table.writtenAtMs[slot] ?? 0)) / 1000;
    this.#report(slot, reply);
  }

  #report(slot: number, reply: Http2Response): void {
    const table = this.#table;
    const batch = table.batches[slot];
    const index = table.indices[slot] ?? 0;
    this.#release(slot);
    this.#guard.onResponse();
    this.#session.onResponse(reply.status, reply.seconds);
    if (batch && batch.settle(index, reply) === 'drain') this.#connection.drain();
  }

  #release(slot: number): void {
    const partial = this.#table.partials[slot] ?? null;
    if (partial !== null) this.#keptBytes -= partial.bytes;
    const id = this.#table.ids[slot] ?? 0;
    this.#table.close(slot);
    this.#session.onStreamClosed(id);
  }

  #onStatus(slot: number, id: number, isEnd: boolean): void {
    const { status, retryAfter, wanted, isMalformed } = this.#decoder;
    const isInformational = status < 200;
    if (isMalformed || status === 0 || status === 101 || (isInformational && isEnd)) {
      this.#resetStream(slot, id, errorCode.protocol);
      return;
    }
    if (isInformational) {
      this.#guard.count();
      return;
    }
    this.#table.statuses[slot] = status;
    if (retryAfter !== undefined) this.#partialOf(slot).retryAfter = retryAfter;
    if (wanted !== undefined) this.#partialOf(slot).header = wanted;
    if (isEnd) this.#settleResponse(slot);
  }

  #onTrailers(slot: number, id: number, isEnd: boolean): void {
    // The response is valid. A stream that continues after its trailers is reset (RFC 9113 8.1).
    if (!isEnd) this.#session.reset(id, errorCode.protocol);
    this.#settleResponse(slot);
  }

  #keep(slot: number, id: number, flowBytes: number, { bytes, start, end }: ByteRange): void {
    const partial = this.#partialOf(slot);
    partial.flowBytes += flowBytes;
    if (partial.flowBytes > streamWindowBytes) {
      this.#session.reset(id, errorCode.flowControl);
      this.#settleResponse(slot);
      return;
    }
    const length = Math.min(end - start, maxBodyBytes - partial.bytes);
    if (length > 0) {
      partial.chunks.push(Buffer.from(bytes.subarray(start, start + length)));
      partial.bytes += length;
      this.#keptBytes += length;
      if (this.#keptBytes > maxKeptBytes)
        throwConnectionError(errorCode.enhanceYourCalm, 'kept bodies above the limit');
    }
    if (end - start <= length) return;
    this.#session.reset(id, errorCode.cancel);
    this.#settleResponse(slot);
  }

  #partialOf(slot: number): PartialResponse {
    const known = this.#table.partials[slot] ?? null;
    if (known !== null) return known;
    const partial: PartialResponse = {
      retryAfter: undefined,
      header: undefined,
      chunks: [],
      bytes: 0,
      flowBytes: 0,
    };
    this.#table.partials[slot] = partial;
    return partial;
  }

  /** Handles a stream error (RFC 9113 5.4.2). */
  #resetStream(slot: number, id: number, code: number): void {
    this.#session.reset(id, code);
    this.settleUnknown(slot, 'stream_reset');
  }

  /**
   * Handles a frame of a stream that is not open. Ignores it if the stream was open before. Throws
   * if the stream is idle.
   */
  #onUnknownStream(id: number): void {
    if ((id & 1) === 0 || id >= this.#session.nextId)
      throwConnectionError(errorCode.protocol, 'a frame of an idle stream');
    this.#guard.count();
  }
}
