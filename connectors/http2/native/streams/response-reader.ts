/** The streams' side of a connection: frames of streams into outcomes of requests (RFC 9113 5.1, 8.1). */
import type { Clock } from '../../../../shared/clock.ts';
import { retryAfterMs } from '../../../../shared/http/client.ts';
import { HeaderDecoder } from '../../hpack/decoder.ts';
import { defaultTableSize } from '../../hpack/static-table.ts';
import type { Http2Response, TransportReason } from '../../transport.ts';
import { throwConnectionError } from '../frames/connection-error.ts';
import type { FloodGuard } from '../frames/flood-guard.ts';
import type { ByteRange } from '../frames/frame-reader.ts';
import { errorCode } from '../frames/wire-format.ts';
import type { ActiveBatch } from '../requests/active-batch.ts';
import type { PartialResponse, StreamTable } from './stream-table.ts';

/** Reply bodies are kept up to this many bytes; a stream that goes on is cancelled. */
export const maxReplyBytes = 65_536;
/** Over all streams of a connection. */
const maxKeptBytes = 4_194_304;
/** Our SETTINGS_MAX_HEADER_LIST_SIZE. */
export const maxHeaderListBytes = 16_384;
/** Our SETTINGS_INITIAL_WINDOW_SIZE: never widened, since no reply is read so far. */
export const streamWindowBytes = 131_072;

/** What the connection is to us here. */
export interface ResponseReaderHost {
  readonly clock: Clock;
  /** The number that the next stream gets: those from here on are not open yet. */
  readonly nextId: number;
  /** When the bytes that are being read were read, on the monotonic clock. */
  readonly readAtMs: number;
  /** RST_STREAM; also gives up what is left of the stream's body. */
  reset(id: number, code: number): void;
  /** `seconds` after the request was written. */
  onResponse(status: number, seconds: number): void;
  /** The stream has ended for us; what is left of its body is of no use. */
  onStreamClosed(id: number): void;
  /** The caller wants no more requests on this connection. */
  drain(): void;
  onUnprocessed(batch: ActiveBatch, index: number, reason: TransportReason): void;
  onUnknown(batch: ActiveBatch, index: number, reason: TransportReason, seconds: number): void;
}

export class ResponseReader {
  readonly #host: ResponseReaderHost;
  readonly #table: StreamTable;
  readonly #guard: FloodGuard;
  readonly #decoder = new HeaderDecoder({ tableSize: defaultTableSize, listSize: maxHeaderListBytes });
  #keptBytes = 0;
  /** Told again and again: nearly all replies are this one. */
  readonly #ok: Http2Response = { kind: 'response', status: 200, body: '', retryAfterMs: null, seconds: 0 };

  constructor(host: ResponseReaderHost, table: StreamTable, guard: FloodGuard) {
    this.#host = host;
    this.#table = table;
    this.#guard = guard;
  }

  onHeaders(id: number, isEnd: boolean, bytes: Buffer, start: number, end: number): void {
    const slot = this.#table.find(id);
    // `:status: 200` alone, entry 8 of the static table: nothing to decode.
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
    const problem = decoder.decode(bytes, start, end);
    if (problem === 'broken')
      throwConnectionError(errorCode.compression, 'a header block that cannot be read');
    if (problem === 'too_large')
      throwConnectionError(errorCode.enhanceYourCalm, 'a header list beyond our bound');
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
      this.settleResponse(slot, bytes.toString('utf8', start, Math.min(end, start + maxReplyBytes)));
      return;
    }
    if (flowBytes === 0 && !isEnd) this.#guard.count();
    this.#keep(slot, id, flowBytes, piece);
    if (isEnd && table.ids[slot] === id) this.settleResponse(slot);
  }

  onReset(id: number, code: number): void {
    const slot = this.#table.find(id);
    if (slot < 0) {
      this.#onUnknownStream(id);
      return;
    }
    this.#guard.count();
    // A status is an answer, even when what followed it was cut off.
    if ((this.#table.statuses[slot] ?? 0) > 0) this.settleResponse(slot);
    else if (code === errorCode.refusedStream) this.settleUnprocessed(slot, 'refused_stream');
    else this.settleUnknown(slot, 'stream_reset');
  }

  /** The stream has ended with an answer; `body` where it is not among what was kept. */
  settleResponse(slot: number, body?: string): void {
    const table = this.#table;
    const { clock, readAtMs } = this.#host;
    const partial = table.partials[slot] ?? null;
    const status = table.statuses[slot] ?? 0;
    const retryAfter = partial?.retryAfter;
    const kept =
      partial === null || partial.chunks.length === 0 ? '' : Buffer.concat(partial.chunks).toString('utf8');
    this.#report(slot, {
      kind: 'response',
      status,
      body: body ?? kept,
      retryAfterMs: retryAfter === undefined ? null : retryAfterMs(retryAfter, clock.now()),
      seconds: (readAtMs - (table.writtenAtMs[slot] ?? 0)) / 1000,
    });
  }

  /** The request was not processed: it may be sent again. */
  settleUnprocessed(slot: number, reason: TransportReason): void {
    const batch = this.#table.batches[slot];
    const index = this.#table.indices[slot] ?? 0;
    this.#release(slot);
    if (batch) this.#host.onUnprocessed(batch, index, reason);
  }

  /** The request was written and no answer will come. */
  settleUnknown(slot: number, reason: TransportReason): void {
    const table = this.#table;
    const batch = table.batches[slot];
    const index = table.indices[slot] ?? 0;
    const seconds = (this.#host.readAtMs - (table.writtenAtMs[slot] ?? 0)) / 1000;
    this.#release(slot);
    if (batch) this.#host.onUnknown(batch, index, reason, Math.max(0, seconds));
  }

  #settleOk(slot: number): void {
    const reply = this.#ok;
    reply.seconds = (this.#host.readAtMs - (this.#table.writtenAtMs[slot] ?? 0)) / 1000;
    this.#report(slot, reply);
  }

  #report(slot: number, reply: Http2Response): void {
    const table = this.#table;
    const batch = table.batches[slot];
    const index = table.indices[slot] ?? 0;
    this.#release(slot);
    this.#guard.onResponse();
    this.#host.onResponse(reply.status, reply.seconds);
    if (batch && batch.settle(index, reply) === 'drain') this.#host.drain();
  }

  #release(slot: number): void {
    const partial = this.#table.partials[slot] ?? null;
    if (partial !== null) this.#keptBytes -= partial.bytes;
    const id = this.#table.ids[slot] ?? 0;
    this.#table.close(slot);
    this.#host.onStreamClosed(id);
  }

  #onStatus(slot: number, id: number, isEnd: boolean): void {
    const { status, retryAfter, isMalformed } = this.#decoder;
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
    if (isEnd) this.settleResponse(slot);
  }

  #onTrailers(slot: number, id: number, isEnd: boolean): void {
    // The answer stands; a stream that goes on behind its trailers is ended by us (RFC 9113 8.1).
    if (!isEnd) this.#host.reset(id, errorCode.protocol);
    this.settleResponse(slot);
  }

  #keep(slot: number, id: number, flowBytes: number, { bytes, start, end }: ByteRange): void {
    const partial = this.#partialOf(slot);
    partial.flowBytes += flowBytes;
    if (partial.flowBytes > streamWindowBytes) {
      this.#host.reset(id, errorCode.flowControl);
      this.settleResponse(slot);
      return;
    }
    const length = Math.min(end - start, maxReplyBytes - partial.bytes);
    if (length > 0) {
      partial.chunks.push(Buffer.from(bytes.subarray(start, start + length)));
      partial.bytes += length;
      this.#keptBytes += length;
      if (this.#keptBytes > maxKeptBytes)
        throwConnectionError(errorCode.enhanceYourCalm, 'bodies beyond our bound');
    }
    if (end - start <= length) return;
    this.#host.reset(id, errorCode.cancel);
    this.settleResponse(slot);
  }

  #partialOf(slot: number): PartialResponse {
    const known = this.#table.partials[slot] ?? null;
    if (known !== null) return known;
    const partial: PartialResponse = { retryAfter: undefined, chunks: [], bytes: 0, flowBytes: 0 };
    this.#table.partials[slot] = partial;
    return partial;
  }

  /** The peer broke the rules on this stream alone (RFC 9113 5.4.2). */
  #resetStream(slot: number, id: number, code: number): void {
    this.#host.reset(id, code);
    this.settleUnknown(slot, 'stream_reset');
  }

  /** A frame of a stream that is not open: late after we ended it, or of one that never was. */
  #onUnknownStream(id: number): void {
    if ((id & 1) === 0 || id >= this.#host.nextId)
      throwConnectionError(errorCode.protocol, 'a frame of a stream that is not');
    this.#guard.count();
  }
}
