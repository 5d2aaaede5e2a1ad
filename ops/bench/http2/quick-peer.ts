/**
 * HTTP/2 server of minimal cost: TLS and frames, without a library and without checks. It answers every request with 200.
 * For benchmarks only; the sandbox gateways check correctness.
 */
import type { TLSSocket } from 'node:tls';
import { openCertificateAuthority } from '../../sandbox/kit/certificates.ts';
import { listenQuick, type QuickServer } from './quick-server.ts';

/** Input of one connection. */
export interface QuickConnection {
  /** Complete header block, from `start` to `end` of `bytes`; valid until this returns. */
  onHeaders?(bytes: Buffer, start: number, end: number): void;
  onBody?(size: number): void;
  /** A request is complete; its response follows. */
  onRequest(): void;
}

export interface QuickPeer extends QuickServer {
  /** PEM of its authority. */
  ca: string;
}

export interface QuickPeerOptions {
  maxStreams: number;
  /** Issuer of the certificate; absent: a new one. */
  authority?: Awaited<ReturnType<typeof openCertificateAuthority>>;
  /** Frames of every response, with stream id 0. Default: HEADERS with a status alone. */
  answer?: Buffer;
}

const frameHeaderBytes = 9;
const prefaceBytes = 24;
const priorityBytes = 5;
/** `:status: 200` with END_HEADERS and END_STREAM. */
const statusAlone = Buffer.from('00000101050000000088', 'hex');
const settingsAck = Buffer.from('000000040100000000', 'hex');
/** Used bytes at which the window is increased again. */
const refillBytes = 1_000_000_000;
/** Size of a buffer of responses; each part of it is written once. */
const outputBytes = 262_144;
const frame = { data: 0, headers: 1, settings: 4, ping: 6, continuation: 9 };
const flag = { endStream: 1, ack: 1, endHeaders: 4, padded: 8, priority: 32 };

/** Listens on a free loopback port; calls `open` for every connection. */
export async function startQuickPeer(
  { answer = statusAlone, authority: issuer, maxStreams }: QuickPeerOptions,
  open: () => QuickConnection,
): Promise<QuickPeer> {
  const authority = issuer ?? (await openCertificateAuthority());
  const response = { bytes: answer, idOffsets: idOffsetsOf(answer) };
  const server = await listenQuick(await authority.issueServer(), 'h2', (socket) => {
    socket.write(greeting(maxStreams));
    const session = new QuickSession(socket, open(), response);
    socket.on('data', (chunk: Buffer) => session.receive(chunk));
  });
  return { ...server, ca: authority.certificate };
}

/** SETTINGS with MAX_CONCURRENT_STREAMS and INITIAL_WINDOW_SIZE 2^31-1, then the largest connection window. */
function greeting(maxStreams: number): Buffer {
  const bytes = Buffer.from(
    '00000c0400000000000003000000000004' + '7fffffff0000040800000000007fff0000',
    'hex',
  );
  bytes.writeUInt32BE(maxStreams, frameHeaderBytes + 2);
  return bytes;
}

/** Returns the offsets of the stream ids in a sequence of frames. */
function idOffsetsOf(frames: Buffer): number[] {
  const offsets: number[] = [];
  for (let at = 0; at < frames.length; at += frameHeaderBytes + frames.readUIntBE(at, 3))
    offsets.push(at + 5);
  return offsets;
}

class QuickSession {
  readonly #socket: TLSSocket;
  readonly #connection: QuickConnection;
  readonly #response: { bytes: Buffer; idOffsets: readonly number[] };
  #rest: Buffer = Buffer.alloc(0);
  #toSkip = prefaceBytes;
  #used = 0;
  #out = Buffer.allocUnsafe(outputBytes);
  /** Range of `#out` that is not written to the socket yet. */
  #from = 0;
  #to = 0;

  constructor(
    socket: TLSSocket,
    connection: QuickConnection,
    response: { bytes: Buffer; idOffsets: readonly number[] },
  ) {
    this.#socket = socket;
    this.#connection = connection;
    this.#response = response;
  }

  receive(chunk: Buffer): void {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    if (this.#toSkip > 0) {
      const skipped = Math.min(this.#toSkip, bytes.length);
      this.#toSkip -= skipped;
      bytes = bytes.subarray(skipped);
    }
    let at = 0;
    while (bytes.length - at >= frameHeaderBytes) {
      const size = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
      const end = at + frameHeaderBytes + size;
      if (end > bytes.length) break;
      this.#frame(bytes, at, end);
      at = end;
    }
    this.#rest = Buffer.from(bytes.subarray(at));
    if (this.#used > refillBytes) this.#refill();
    this.#flush();
  }

  #frame(bytes: Buffer, at: number, end: number): void {
    const type = bytes[at + 3] ?? 0;
    const flags = bytes[at + 4] ?? 0;
    const start = at + frameHeaderBytes;
    if (type === frame.data) {
      this.#connection.onBody?.(end - start);
      this.#used += end - start;
    } else if (type === frame.headers) {
      const from = (flags & flag.priority) === 0 ? start : start + priorityBytes;
      if ((flags & flag.endHeaders) === 0 || flags & flag.padded) this.#socket.destroy();
      else this.#connection.onHeaders?.(bytes, from, end);
    } else if (type === frame.settings && (flags & flag.ack) === 0) this.#append(settingsAck);
    else if (type === frame.ping && (flags & flag.ack) === 0) {
      const pong = Buffer.from(bytes.subarray(at, end));
      pong[4] = flag.ack;
      this.#append(pong);
    }
    if (type > frame.headers || (flags & flag.endStream) === 0) return;
    this.#connection.onRequest();
    this.#respond(bytes, at + 5);
  }

  /** Writes a response with the stream id at `idAt` of a frame. */
  #respond(request: Buffer, idAt: number): void {
    const { bytes, idOffsets } = this.#response;
    const from = this.#append(bytes);
    const out = this.#out;
    for (const offset of idOffsets) {
      const to = from + offset;
      out[to] = request[idAt] ?? 0;
      out[to + 1] = request[idAt + 1] ?? 0;
      out[to + 2] = request[idAt + 2] ?? 0;
      out[to + 3] = request[idAt + 3] ?? 0;
    }
  }

  /** Returns the offset of the appended bytes in `#out`. */
  #append(bytes: Buffer): number {
    if (this.#to + bytes.length > this.#out.length) {
      this.#flush();
      this.#out = Buffer.allocUnsafe(outputBytes);
      this.#from = 0;
      this.#to = 0;
    }
    const at = this.#to;
    this.#out.set(bytes, at);
    this.#to = at + bytes.length;
    return at;
  }

  #flush(): void {
    if (this.#to === this.#from) return;
    this.#socket.write(this.#out.subarray(this.#from, this.#to));
    this.#from = this.#to;
  }

  #refill(): void {
    const refill = Buffer.from('00000408000000000000000000', 'hex');
    refill.writeUInt32BE(this.#used, frameHeaderBytes);
    this.#used = 0;
    this.#append(refill);
  }
}
