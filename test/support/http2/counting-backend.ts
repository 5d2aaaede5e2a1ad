/**
 * Backend process behind a real proxy. It serves HTTP/1.1, answers each request after at most the
 * milliseconds in its argument, and counts how often each path was processed. It is a separate
 * process, so that it answers while the client is busy.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { portOf } from './peer.ts';

const withinMs = Number(process.argv[2]);
/** Number of fully read requests and bytes of their bodies, by path. */
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
  // A client that disconnects during its body ends only its own request.
  serve(request, response).catch(() => response.destroy());
});
// Only the proxy closes idle connections. A request on a connection that the backend closes would
// be lost.
server.keepAliveTimeout = 0;
server.listen(0, '127.0.0.1', () => process.send?.(portOf(server)));
process.once('disconnect', () => process.exit());
