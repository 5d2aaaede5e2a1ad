import { createServer, type RequestListener, type Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { errorText } from '../shared/domain/errors/errors.ts';
import { isChannelUpgrade } from './channel/websocket/frames.ts';

/**
 * Length of the queue of connections to accept, up to the system's limit. After a restart,
 * thousands of devices connect at once. A dropped connection is retried after one second, then
 * after two, then after four.
 */
const backlog = 8192;

/** Limits of the server. Tests use smaller limits. */
export interface ServerLimits {
  /** Time from the connection, or from the last reply, until a request's headers have arrived. */
  headersMs: number;
  /**
   * Time in which a whole request must arrive. A body has its own time limit
   * (shared/http/body/reader.ts), which starts when its keys are checked.
   */
  requestMs: number;
  /** Interval between checks of all connections. */
  checkEveryMs: number;
  /** Time after which an idle connection is closed. */
  keepAliveMs: number;
  /** Time for a client to read a final refusal. Then its connection is destroyed. */
  lingerMs: number;
  /** Maximum number of bytes in incomplete request heads, over all connections. */
  maxUnfinishedBytes: number;
  /**
   * Maximum number of requests of one connection that wait for replies. Known clients send one at a
   * time.
   */
  maxPipelined: number;
  /**
   * Maximum number of connections of this process, including devices (api/channel/limits.ts). There
   * is no limit per IP address: all clients of a proxy share its address, and the headers that name
   * the client arrive later.
   */
  maxConnections: number;
}

export const serverLimits: ServerLimits = {
  headersMs: 10_000,
  requestMs: 40_000,
  checkEveryMs: 2_000,
  keepAliveMs: 5_000,
  lingerMs: 2_000,
  maxUnfinishedBytes: 32 * 1024 * 1024,
  maxPipelined: 64,
  maxConnections: 60_000,
};

/** Maximum size of a request's headers without its URL, in bytes. Larger headers get 431. */
const maxHeaderBytes = 16 * 1024;
/**
 * Maximum size of a URL. The longest documented query is a `where` of 64 KB with each byte as
 * `%xx`, and 16 KB for the rest (protocol/queries.md#query-parameters). A longer URL gets 431.
 */
const maxUrlBytes = 3 * 64 * 1024 + 16 * 1024;

/**
 * Starts to listen. Resolves with the server when the port is bound. Upgrade requests that no
 * handler accepts are treated as ordinary requests.
 */
export function listen(
  handle: RequestListener,
  { port, host }: { port: number; host: string },
  limits: ServerLimits = serverLimits,
): Promise<Server> {
  const server: Server = createServer(
    {
      headersTimeout: limits.headersMs,
      requestTimeout: limits.requestMs,
      connectionsCheckingInterval: limits.checkEveryMs,
      keepAliveTimeout: limits.keepAliveMs,
      requireHostHeader: false,
      maxHeaderSize: maxUrlBytes + maxHeaderBytes,
      shouldUpgradeCallback: (request) => {
        // While the api starts, no handler accepts upgrades. The request then gets the usual 503.
        const isUpgrade = server.listenerCount('upgrade') > 0 && isChannelUpgrade(request);
        if (isUpgrade) forgetHead(request.socket);
        return isUpgrade;
      },
    },
    limitPipelining(checkHead(handle), limits.maxPipelined),
  );
  const forgetHead = limitUnfinishedHeads(server, limits);
  server.maxConnections = limits.maxConnections;
  server.on('clientError', (error, socket) => answerClientError(error, socket, limits.lingerMs));
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host, backlog }, () => resolve(server));
  });
}

/**
 * Refuses headers that are too large without their URL, because Node limits only both together.
 * Also refuses HTTP/1.1 without a host, because Node would refuse it without a body.
 */
function checkHead(handle: RequestListener): RequestListener {
  return (request, response) => {
    const bytes = request.rawHeaders.reduce((sum, text) => sum + text.length + 2, 0);
    const isHostMissing = request.headers.host === undefined && request.httpVersion === '1.1';
    if (bytes <= maxHeaderBytes && !isHostMissing) return handle(request, response);
    const { status, text } = bytes > maxHeaderBytes ? headersTooLarge : hostMissing;
    response.statusCode = status;
    response.setHeader('Content-Type', 'application/json; charset=utf-8');
    response.setHeader('Connection', 'close');
    response.end(JSON.stringify({ code: status, error: text }));
  };
}

const headersTooLarge = { status: 431, text: errorText('headersTooLarge') };
const hostMissing = { status: 400, text: 'The header Host is missing.' };

/**
 * Limits the memory of incomplete request heads. While they exceed `maxUnfinishedBytes`, closes the
 * connections with the most bytes. Their keys are not known yet, so no other limit counts them.
 * Returns a function that stops counting a socket, for upgrades.
 */
function limitUnfinishedHeads(
  server: Server,
  { maxUnfinishedBytes, checkEveryMs }: Pick<ServerLimits, 'maxUnfinishedBytes' | 'checkEveryMs'>,
): (socket: Socket) => void {
  /**
   * Connections without a request in progress, and the bytes that earlier requests read from them.
   */
  const readBefore = new Map<Socket, number>();
  /**
   * Number of unfinished requests per connection: requests without a reply, or with a body that may
   * still arrive. Pipelined requests overlap.
   */
  const inWork = new WeakMap<Socket, number>();
  const end = (socket: Socket) => {
    const left = (inWork.get(socket) ?? 1) - 1;
    inWork.set(socket, left);
    if (left === 0 && !socket.destroyed) readBefore.set(socket, socket.bytesRead);
  };
  server.on('connection', (socket: Socket) => {
    readBefore.set(socket, 0);
    socket.once('close', () => readBefore.delete(socket));
  });
  server.on('request', (request, response) => {
    const { socket } = request;
    readBefore.delete(socket);
    inWork.set(socket, (inWork.get(socket) ?? 0) + 1);
    response.once('close', () => {
      if (request.complete) end(socket);
      else request.once('close', () => end(socket));
    });
  });
  const check = () => {
    const heads = [...readBefore].map(([socket, before]) => ({
      socket,
      bytes: socket.bytesRead - before,
    }));
    let sum = heads.reduce((total, { bytes }) => total + bytes, 0);
    if (sum <= maxUnfinishedBytes) return;
    for (const { socket, bytes } of heads.toSorted((a, b) => b.bytes - a.bytes)) {
      if (sum <= maxUnfinishedBytes) return;
      socket.destroy();
      sum -= bytes;
    }
  };
  const timer = setInterval(check, Math.min(checkEveryMs, 500)).unref();
  server.once('close', () => clearInterval(timer));
  return (socket) => readBefore.delete(socket);
}

/**
 * Closes a connection that has more than `maxPipelined` requests without a reply. Node continues to
 * read while handlers wait, so one connection could otherwise fill the memory with small requests.
 */
function limitPipelining(handle: RequestListener, maxPipelined: number): RequestListener {
  const waiting = new WeakMap<Socket, number>();
  return (request, response) => {
    const { socket } = request;
    const count = (waiting.get(socket) ?? 0) + 1;
    waiting.set(socket, count);
    if (count > maxPipelined) {
      socket.destroy();
      return;
    }
    response.once('close', () => waiting.set(socket, (waiting.get(socket) ?? 1) - 1));
    handle(request, response);
  };
}

/** Replies to invalid and late requests, which no handler gets. */
function answerClientError(error: NodeJS.ErrnoException, socket: Duplex, lingerMs: number): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const [status, text] = clientErrors.get(error.code ?? '') ?? [400, 'Bad Request'];
  const body = JSON.stringify({ code: status, error: `${text}.` });
  // Otherwise a client that neither reads nor closes would keep its connection open.
  setTimeout(() => socket.destroy(), lingerMs).unref();
  socket.end(
    [
      `HTTP/1.1 ${status} ${text}`,
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${body.length}`,
      'Connection: close',
      '',
      body,
    ].join('\r\n'),
  );
}

const clientErrors = new Map<string, [number, string]>([
  ['HPE_HEADER_OVERFLOW', [431, 'Request Header Fields Too Large']],
  ['HPE_CHUNK_EXTENSIONS_OVERFLOW', [413, 'Payload Too Large']],
  ['ERR_HTTP_REQUEST_TIMEOUT', [408, 'Request Timeout']],
]);

/** Stops accepting requests, closes idle connections, and waits for running requests. */
export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeIdleConnections();
  });
}
