/**
 * A peer that costs next to nothing: TLS and frames, no HTTP/2 library. It answers every request with 200 in ten
 * bytes, and counts what it got, so that all clients can be seen to have sent the same. A process of its own,
 * started by the benchmark with an IPC channel.
 */
import { createServer, type TLSSocket } from 'node:tls';
import { openCertificateAuthority } from '../../sandbox/kit/certificates.ts';

const frameHeaderBytes = 9;
const prefaceBytes = 24;
/** MAX_CONCURRENT_STREAMS 1000, INITIAL_WINDOW_SIZE 2^31-1; then the connection's window as wide as it goes. */
const hello = Buffer.from('00000c0400000000000003000003e800047fffffff0000040800000000007fff0000', 'hex');
const settingsAck = Buffer.from('000000040100000000', 'hex');
/** `:status: 200` with END_HEADERS and END_STREAM. */
const answer = Buffer.from('00000101050000000088', 'hex');
/** The window is given back when so much of it is used. */
const refillBytes = 1_000_000_000;
const counts = { requests: 0, bodyBytes: 0 };

const authority = await openCertificateAuthority();
const { certificate, privateKey } = await authority.issueServer();
const server = createServer({ cert: certificate, key: privateKey, ALPNProtocols: ['h2'] }, (socket) => {
  socket.setNoDelay(true);
  socket.on('error', () => undefined);
  socket.write(hello);
  serve(socket);
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  process.send?.({ port, ca: authority.certificate });
});
process.on('message', () => process.send?.(counts));
process.on('disconnect', () => process.exit(0));

function serve(socket: TLSSocket): void {
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
      const end = at + frameHeaderBytes + size;
      if (end > bytes.length) break;
      const type = bytes[at + 3] ?? 0;
      const flags = bytes[at + 4] ?? 0;
      if (type === 0) {
        counts.bodyBytes += size;
        used += size;
      }
      if (type <= 1 && flags & 1) {
        counts.requests += 1;
        out.set(answer, length);
        out.set(bytes.subarray(at + 5, at + frameHeaderBytes), length + 5);
        length += answer.length;
      } else if (type === 4 && (flags & 1) === 0) length += settingsAck.copy(out, length);
      else if (type === 6 && (flags & 1) === 0) {
        length += bytes.copy(out, length, at, end);
        out[length - size - 5] = 1;
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
