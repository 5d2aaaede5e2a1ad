/**
 * Process behind a real proxy: serves HTTP/1.1, answers each request within as many milliseconds as its argument says,
 * and counts how often each path was processed. A process of its own, so that it answers while the client is busy.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { portOf } from './peer.ts';

const withinMs = Number(process.argv[2]);
/** Path → how often a request to it was read whole, and the bytes of the bodies. */
const processed: Record<string, { count: number; bytes: number }> = {};

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = request.url ?? '';
  if (path === '/processed') {
    response.end(JSON.stringify(processed));
    return;
  }
  let bytes = 0;
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  await once(request, 'end');
  const before = processed[path] ?? { count: 0, bytes: 0 };
  processed[path] = { count: before.count + 1, bytes: before.bytes + bytes };
  setTimeout(() => response.end('{"ok":1}'), withinMs * Math.random());
}

const server = createServer((request, response) => {
  // A client that goes away in mid-body ends nothing here but its own request.
  serve(request, response).catch(() => response.destroy());
});
// The proxy closes idle connections, not the backend: a request on a connection that closes would be lost.
server.keepAliveTimeout = 0;
server.listen(0, '127.0.0.1', () => process.send?.(portOf(server)));
process.once('disconnect', () => process.exit());
