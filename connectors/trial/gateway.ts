import { createServer, type TLSSocket } from 'node:tls';
import {
  flag,
  frame,
  frameHeaderBytes,
  frameOf,
  numberFrame,
  preface,
  readUint24,
  readUint31,
  setting,
  settingsFrame,
} from '../http2/frames/wire-format.ts';
import { selfSignedCertificate } from './self-signed.ts';

/** As many streams as Apple's gateways allow, and bodies of any size. */
const greeting = Buffer.concat([
  settingsFrame([
    [setting.maxConcurrentStreams, 1000],
    [setting.initialWindowSize, 0x7fff_ffff],
  ]),
  numberFrame(frame.windowUpdate, 0, 0x7fff_0000),
]);

const settingsAck = frameOf(frame.settings, flag.ack, 0, Buffer.alloc(0));

/** `:status: 200` of the static table (RFC 7541 A). */
const accepted = Buffer.from([0x88]);

/** Gateway in this process that accepts every request. */
export interface TrialGateway {
  endpoint: string;
  /** Certificate, PEM. */
  ca: string;
}

interface OpenTrialGateway {
  gateway: TrialGateway;
  /** Closes it and its connections. */
  close: () => void;
}

/**
 * Listens on a free loopback port and answers every HTTP/2 request with 200, for the trial batches of a warm-up: the threads
 * send over real connections, since streams of another kind would need code of their own.
 */
export async function openTrialGateway(nowMs: number): Promise<OpenTrialGateway> {
  const { certificate, privateKey } = selfSignedCertificate(nowMs);
  const sockets = new Set<TLSSocket>();
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' });
  const server = createServer({ cert: certificate, key, ALPNProtocols: ['h2'] }, (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    answerAll(socket);
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });
  return {
    gateway: { endpoint: `https://127.0.0.1:${port}`, ca: certificate },
    close: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

function answerAll(socket: TLSSocket): void {
  let rest = Buffer.alloc(0);
  let isGreeted = false;
  socket.setNoDelay(true);
  socket.on('error', () => undefined);
  socket.write(greeting);
  socket.on('data', (chunk: Buffer) => {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let at = 0;
    if (!isGreeted && bytes.length >= preface.length) {
      isGreeted = true;
      at = preface.length;
    }
    const replies: Buffer[] = [];
    if (isGreeted) at = readFrames(bytes, at, (reply) => replies.push(reply));
    rest = Buffer.from(bytes.subarray(at));
    if (replies.length > 0) socket.write(Buffer.concat(replies));
  });
}

/** Answers the complete frames of `bytes` from `at` on; returns the offset behind them. */
function readFrames(bytes: Buffer, from: number, answer: (reply: Buffer) => void): number {
  let at = from;
  while (bytes.length - at >= frameHeaderBytes) {
    const end = at + frameHeaderBytes + readUint24(bytes, at);
    if (end > bytes.length) break;
    const reply = replyTo(bytes, at);
    if (reply) answer(reply);
    at = end;
  }
  return at;
}

function replyTo(bytes: Buffer, at: number): Buffer | undefined {
  const type = bytes[at + 3] ?? 0;
  const flags = bytes[at + 4] ?? 0;
  if (type === frame.settings && (flags & flag.ack) === 0) return settingsAck;
  if (type > frame.headers || (flags & flag.endStream) === 0) return undefined;
  return frameOf(frame.headers, flag.endHeaders | flag.endStream, readUint31(bytes, at + 5), accepted);
}
