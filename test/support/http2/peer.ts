import { once } from 'node:events';
import {
  createSecureServer,
  type Http2SecureServer,
  type IncomingHttpHeaders,
  type SecureServerOptions,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { openTransport as openPooled } from '../../../connectors/http2/pooled-transport.ts';
import {
  defaultTiming,
  type RequestBatch,
  type RequestResult,
  type ResponseDecision,
  type Transport,
  type TransportEvent,
  type TransportOptions,
} from '../../../connectors/http2/transport.ts';
import { systemClock } from '../../../shared/clock.ts';
import { loopbackIdentity } from '../gateways/identity.ts';

export interface Peer {
  url: string;
  ca: string;
  server: Http2SecureServer;
  sessions: ServerHttp2Session[];
  close(): Promise<void>;
}

export type Handler = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;

/** Starts an HTTP/2 server on loopback that calls the test's handler for each stream. */
export async function startPeer(
  handler: Handler,
  options: SecureServerOptions & { port?: number } = {},
): Promise<Peer> {
  const { authority, server: own } = await loopbackIdentity();
  const server = createSecureServer({ cert: own.certificate, key: own.privateKey, ...options });
  const sessions: ServerHttp2Session[] = [];
  server.on('session', (session) => {
    sessions.push(session);
    session.on('error', () => undefined);
  });
  server.on('stream', (stream, headers) => {
    stream.on('error', () => undefined);
    stream.resume();
    handler(stream, headers);
  });
  server.on('tlsClientError', () => undefined);
  server.listen(options.port ?? 0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `https://127.0.0.1:${portOf(server)}`,
    ca: authority.certificate,
    server,
    sessions,
    close: async () => {
      for (const session of sessions) session.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

export function portOf(server: Server | Http2SecureServer): number {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

export const ok: Handler = (stream) => stream.respond({ ':status': 200 }, { endStream: true });

/** Starts a connection that can be cut silently: no bytes pass, but the sockets stay open. */
export async function startWire(
  toPort: number,
): Promise<{ port: number; stall(): void; close(): Promise<void> }> {
  const sockets: Socket[] = [];
  const server = createServer((near) => {
    const far = connect(toPort, '127.0.0.1');
    for (const socket of [near, far]) {
      socket.on('error', () => undefined);
      sockets.push(socket);
    }
    near.pipe(far).pipe(near);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: portOf(server),
    stall: () => {
      for (const socket of sockets.splice(0)) socket.unpipe().pause();
    },
    close: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

export interface Opened {
  transport: Transport;
  facts: TransportEvent[];
}

/** Opens the transport under test with short timeouts. */
export function openTransport(
  peer: { url: string; ca: string },
  more: Partial<TransportOptions> = {},
  timing: Partial<TransportOptions['timing']> = {},
): Opened {
  const facts: TransportEvent[] = [];
  const transport = openPooled({
    baseUrl: peer.url,
    ca: peer.ca,
    maxConnections: 4,
    clock: systemClock,
    onEvent: (fact) => facts.push(fact),
    ...more,
    timing: { ...defaultTiming, drainMs: 500, ...timing },
  });
  return { transport, facts };
}

/** Starts a peer that is closed when the test ends. */
export async function peerOfTest(...given: Parameters<typeof startPeer>): Promise<Peer> {
  const peer = await startPeer(...given);
  onTestFinished(() => peer.close());
  return peer;
}

/** Opens a transport that is closed when the test ends, before the existing peers. */
export function transportOfTest(...given: Parameters<typeof openTransport>): Opened {
  const opened = openTransport(...given);
  onTestFinished(() => opened.transport.close());
  return opened;
}

export function aBatch(count: number, more: Partial<RequestBatch> = {}): RequestBatch {
  return {
    template: { pathPrefix: '/p/', headers: { 'x-shared': 's' }, body: Buffer.from('{}') },
    requests: Array.from({ length: count }, (_, index) => ({ path: String(index) })),
    ...more,
  };
}

/**
 * Sends a batch and returns the reply of each request. Fails if a request is answered twice or
 * never.
 */
export async function repliesOf(
  transport: Transport,
  batch: RequestBatch,
  onReply: (index: number, reply: RequestResult) => ResponseDecision = () => undefined,
): Promise<RequestResult[]> {
  const replies: RequestResult[] = [];
  let count = 0;
  await transport.sendMany(batch, (index, reply) => {
    if (replies[index]) throw new Error(`request ${index} was answered twice`);
    replies[index] = reply;
    count += 1;
    return onReply(index, reply);
  });
  if (count !== batch.requests.length)
    throw new Error(`${batch.requests.length - count} were never answered`);
  return replies;
}

/** Counts the replies by kind, with status or reason. */
export function tally(replies: RequestResult[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const reply of replies) {
    const name =
      reply.kind === 'response' ? `response ${reply.status}` : `${reply.kind} ${reply.reason}`;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}
