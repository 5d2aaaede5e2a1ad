/**
 * HTTP/2 server of minimal cost: TLS and frames, without a library and without checks. It answers every request with 200
 * in ten bytes. For benchmarks of clients only; the sandbox gateways check correctness.
 */
import { createServer, type TLSSocket } from 'node:tls';
import { openCertificateAuthority } from '../../sandbox/kit/certificates.ts';

/** Input of one connection. */
export interface QuickConnection {
  /** Complete header block, from `start` to `end` of `bytes`; valid until this returns. */
  onHeaders?(bytes: Buffer, start: number, end: number): void;
  onBody?(size: number): void;
  /** A request is complete; its response follows. */
  onRequest(): void;
}

export interface QuickPeer {
  url: string;
  /** PEM of its authority. */
  ca: string;
  close(): Promise<void>;
}

const frameHeaderBytes = 9;
const prefaceBytes = 24;
/** `:status: 200` with END_HEADERS and END_STREAM. */
const answer = Buffer.from('00000101050000000088', 'hex');
const settingsAck = Buffer.from('000000040100000000', 'hex');
/** Used bytes at which the window is increased again. */
const refillBytes = 1_000_000_000;
const frame = { data: 0, headers: 1, settings: 4, ping: 6, continuation: 9 };
const flag = { endStream: 1, ack: 1, endHeaders: 4, padded: 8, priority: 32 };

/** Listens on a free loopback port; calls `open` for every connection. */
export async function startQuickPeer(maxStreams: number, open: () => QuickConnection): Promise<QuickPeer> {
  const authority = await openCertificateAuthority();
  const { certificate, privateKey } = await authority.issueServer();
  const sockets = new Set<TLSSocket>();
  const server = createServer({ cert: certificate, key: privateKey, ALPNProtocols: ['h2'] }, (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.setNoDelay(true);
    socket.on('error', () => undefined);
    socket.write(greeting(maxStreams));
    serve(socket, open());
  });
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });
  return {
    url: `https://127.0.0.1:${port}`,
    ca: authority.certificate,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
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

function serve(socket: TLSSocket, connection: QuickConnection): void {
  let rest: Buffer = Buffer.alloc(0);
  let skip = prefaceBytes;
  let used = 0;
  socket.on('data', (chunk: Buffer) => {
    let bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    if (skip > 0) {
      const skipped = Math.min(skip, bytes.length);
      skip -= skipped;
      bytes = bytes.subarray(skipped);
    }
    const out = Buffer.allocUnsafe(64 + Math.ceil(bytes.length / frameHeaderBytes) * answer.length);
    let length = 0;
    let at = 0;
    while (bytes.length - at >= frameHeaderBytes) {
      const size = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
      const start = at + frameHeaderBytes;
      const end = start + size;
      if (end > bytes.length) break;
      const type = bytes[at + 3] ?? 0;
      const flags = bytes[at + 4] ?? 0;
      if (type === frame.data) {
        connection.onBody?.(size);
        used += size;
      } else if (type === frame.headers) {
        if ((flags & flag.endHeaders) === 0 || flags & (flag.padded | flag.priority)) socket.destroy();
        else connection.onHeaders?.(bytes, start, end);
      } else if (type === frame.settings && (flags & flag.ack) === 0) length += settingsAck.copy(out, length);
      else if (type === frame.ping && (flags & flag.ack) === 0) {
        length += bytes.copy(out, length, at, end);
        out[length - size - 5] = flag.ack;
      }
      if (type <= frame.headers && flags & flag.endStream) {
        connection.onRequest();
        out.set(answer, length);
        out.set(bytes.subarray(at + 5, start), length + 5);
        length += answer.length;
      }
      at = end;
    }
    rest = Buffer.from(bytes.subarray(at));
    if (used > refillBytes) {
      const refill = Buffer.from('00000408000000000000000000', 'hex');
      refill.writeUInt32BE(used, frameHeaderBytes);
      used = 0;
      socket.write(refill);
    }
    if (length > 0) socket.write(out.subarray(0, length));
  });
}
