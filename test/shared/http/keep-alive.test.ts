import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { afterAll, beforeAll, test } from 'vitest';
import { systemClock } from '../../../shared/clock.ts';
import { createHttpClient, ForwardClient } from '../../../shared/http/client.ts';

let server: Server;
let url = '';

beforeAll(async () => {
  // The server offers to keep connections open for ten minutes, and does so itself.
  server = createServer({ keepAliveTimeout: 600_000 }, (request, response) => {
    request.resume();
    response.setHeader('Keep-Alive', 'timeout=600').end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (typeof address === 'object') url = `http://127.0.0.1:${address?.port}`;
});
afterAll(() => server.close());

const request = { method: 'GET', path: '/', headers: {} } as const;

/** All clients that keep HTTP/1.1 connections. */
const clients = {
  'of gateways': () => {
    const client = createHttpClient({ baseUrl: url, clock: systemClock });
    return { ask: () => client.request(request), close: () => client.close() };
  },
  'of function hosts': () => {
    const client = new ForwardClient(url);
    const ask = async () => {
      const reply = await client.forward({ ...request, body: null });
      if (reply.kind === 'response') for await (const _ of reply.body);
    };
    return { ask, close: () => client.close() };
  },
};

test.each(Object.entries(clients))(
  'a client %s closes an idle connection after its own timeout, whatever the server offers',
  async (_, open) => {
    const { ask, close } = open();
    const [, [socket]] = await Promise.all([
      ask(),
      once(server, 'connection') as Promise<[Socket]>,
    ]);
    // If a NAT silently dropped the idle connection, the next request would be late.
    await once(socket, 'close');
    await close();
  },
);
