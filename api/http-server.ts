import { createServer, type RequestListener, type Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/**
 * Connections that wait to be accepted, as far as the system allows: after a restart thousands of devices come at
 * once, and whose first packet is dropped tries again after one second, then two, then four.
 */
const backlog = 8192;

/** Soft numbers of the server; tests hand in shorter ones. */
export interface ServerLimits {
  /** Time from the connection, or from the last reply, to the end of a request's headers. */
  headersMs: number;
  /** Time for a whole request. A body has its own time (shared/http/body/reader.ts), which begins when its keys are known. */
  requestMs: number;
  /** How often connections are looked at. */
  checkEveryMs: number;
  /** An idle connection between two requests is ended after this. */
  keepAliveMs: number;
  /** Time for a client to read a last refusal; afterwards its connection is destroyed. */
  lingerMs: number;
  /** Requests of one connection that wait for their replies: no client of the field sends a second one before. */
  maxPipelined: number;
  /**
   * Connections of this process, those of devices included (api/channel/limits.ts). There is no limit per address: a
   * proxy has one for everybody, and who it forwards for is known only after the headers.
   */
  maxConnections: number;
}

export const serverLimits: ServerLimits = {
  headersMs: 10_000,
  requestMs: 40_000,
  checkEveryMs: 2_000,
  keepAliveMs: 5_000,
  lingerMs: 2_000,
  maxPipelined: 64,
  maxConnections: 60_000,
};

/** Largest headers of a request, in bytes; more are 431. */
const maxHeaderBytes = 16 * 1024;

/** Starts listening; resolves with the server once the port is bound. */
export function listen(
  handle: RequestListener,
  { port, host }: { port: number; host: string },
  limits: ServerLimits = serverLimits,
): Promise<Server> {
  const server = createServer(
    {
      headersTimeout: limits.headersMs,
      requestTimeout: limits.requestMs,
      connectionsCheckingInterval: limits.checkEveryMs,
      keepAliveTimeout: limits.keepAliveMs,
      maxHeaderSize: maxHeaderBytes,
    },
    limitPipelining(handle, limits.maxPipelined),
  );
  server.maxConnections = limits.maxConnections;
  server.on('clientError', (error, socket) => answerClientError(error, socket, limits.lingerMs));
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host, backlog }, () => resolve(server));
  });
}

/**
 * Ends a connection that has more than `most` requests without a reply: Node reads on while their handlers wait, and
 * one connection could fill the memory with small requests.
 */
function limitPipelining(handle: RequestListener, most: number): RequestListener {
  const waiting = new WeakMap<Socket, number>();
  return (request, response) => {
    const { socket } = request;
    const count = (waiting.get(socket) ?? 0) + 1;
    waiting.set(socket, count);
    if (count > most) {
      socket.destroy();
      return;
    }
    response.once('close', () => waiting.set(socket, (waiting.get(socket) ?? 1) - 1));
    handle(request, response);
  };
}

/** Answers what is no request, or does not become one in time, before anything else knows of it. */
function answerClientError(error: NodeJS.ErrnoException, socket: Duplex, lingerMs: number): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const [status, text] = clientErrors.get(error.code ?? '') ?? [400, 'Bad Request'];
  const body = JSON.stringify({ code: status, error: `${text}.` });
  // A client that neither reads nor closes would keep its connection.
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

/** Takes no more requests, ends idle connections, and waits for the ones in work. */
export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeIdleConnections();
  });
}
