import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http';
import type { Duplex } from 'node:stream';

/**
 * Connections that wait to be accepted, as far as the system allows: after a restart thousands of devices come at
 * once, and whose first packet is dropped tries again after one second, then two, then four.
 */
const backlog = 8192;

/** What slow senders are given. A body has its own time (shared/body/reader.ts), which begins when its keys are known. */
const timing: ServerOptions = {
  headersTimeout: 10_000,
  requestTimeout: 40_000,
  connectionsCheckingInterval: 2_000,
};

/** Starts listening; resolves with the server once the port is bound. */
export function listen(handle: RequestListener, port: number, host: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer(timing, handle);
    server.on('clientError', refuseUnreadable);
    server.once('error', reject);
    server.listen({ port, host, backlog }, () => resolve(server));
  });
}

/** Answers what is no request, or does not become one in time, before anything else knows of it. */
function refuseUnreadable(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const [status, text] = unreadable.get(error.code ?? '') ?? [400, 'Bad Request'];
  const body = JSON.stringify({ code: status, error: `${text}.` });
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

const unreadable = new Map<string, [number, string]>([
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
