import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { connect, createServer as createTcpServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openCertificateAuthority } from '../../../ops/sandbox/kit/certificates.ts';
import { systemClock } from '../../../shared/clock.ts';
import { createHttpClient } from '../../../shared/http/client.ts';
import {
  aBatch,
  ok,
  peerOfTest,
  portOf,
  repliesOf,
  tally,
  transportOfTest,
} from '../../support/http2/peer.ts';

interface Proxy {
  port: number;
  /** Requested authorities and the authorization of each request. */
  requests: { authority: string; authorization: string | undefined }[];
}

/**
 * Starts a forward proxy for CONNECT on loopback. With `isStrict`, it requires the user `us%` and
 * the password `er:s@cret%2`.
 */
async function startProxy(isStrict: boolean, server: Server = createHttpServer()): Promise<Proxy> {
  const requests: Proxy['requests'] = [];
  const sockets: Duplex[] = [];
  server.on('connect', (request: IncomingMessage, near: Duplex) => {
    const authorization = request.headers['proxy-authorization'];
    requests.push({ authority: request.url ?? '', authorization });
    sockets.push(near);
    near.on('error', () => undefined);
    if (
      isStrict &&
      authorization !== `Basic ${Buffer.from('us%:er:s@cret%2').toString('base64')}`
    ) {
      near.end('HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    const url = new URL(`http://${request.url}`);
    const far: Socket = connect(Number(url.port), url.hostname.replace(/^\[|\]$/g, ''), () => {
      // Sends the reply in two pieces after an informational response.
      near.write('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 Conn');
      setImmediate(() => {
        near.write('ection established\r\nVia: test\r\n\r\n');
        near.pipe(far).pipe(near);
      });
    });
    sockets.push(far);
    far.on('error', () => near.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: portOf(server), requests };
}

describe('through a proxy', () => {
  test('requests reach the gateway, and the proxy sees only its name', async () => {
    const peer = await peerOfTest(ok);
    const proxy = await startProxy(false);
    const { transport } = transportOfTest(peer, { proxy: `http://127.0.0.1:${proxy.port}` });
    expect(tally(await repliesOf(transport, aBatch(100)))).toEqual({ 'response 200': 100 });
    expect(proxy.requests).toEqual([
      { authority: new URL(peer.url).host, authorization: undefined },
    ]);
  });

  test('with a user and a password that need escaping', async () => {
    const peer = await peerOfTest(ok);
    const proxy = await startProxy(true);
    const { transport } = transportOfTest(peer, {
      proxy: `http://us%:er%3As%40cret%2@127.0.0.1:${proxy.port}`,
    });
    expect(tally(await repliesOf(transport, aBatch(5)))).toEqual({ 'response 200': 5 });
  });

  test('with TLS', async () => {
    const peer = await peerOfTest(ok);
    const authority = await openCertificateAuthority();
    const { certificate, privateKey } = await authority.issueServer();
    const proxy = await startProxy(
      false,
      createHttpsServer({ cert: certificate, key: privateKey }),
    );
    const ca = `${peer.ca}\n${authority.certificate}`;
    const { transport } = transportOfTest(
      { ...peer, ca },
      { proxy: `https://localhost:${proxy.port}` },
    );
    expect(tally(await repliesOf(transport, aBatch(5)))).toEqual({ 'response 200': 5 });
    expect(proxy.requests).toHaveLength(1);
  });

  test('that requires a missing password, nothing is sent', async () => {
    const peer = await peerOfTest(ok);
    const proxy = await startProxy(true);
    const { transport, facts } = transportOfTest(peer, { proxy: `http://127.0.0.1:${proxy.port}` });
    expect(tally(await repliesOf(transport, aBatch(3)))).toEqual({ 'not_sent connect_failed': 3 });
    expect(facts[0]).toMatchObject({ event: 'connect_failed', detail: 'PROXY_407' });
    expect(peer.sessions).toEqual([]);
  });

  test.each([
    ['does not speak HTTP', 'SSH-2.0-OpenSSH_9.2\r\n\r\n'],
    ['sends more than the response', 'HTTP/1.1 200 OK\r\n\r\nand more'],
    ['never ends its response', `HTTP/1.1 200 OK\r\n${'x: y\r\n'.repeat(4000)}`],
    ['closes the connection', ''],
  ])('that %s is not used', async (_, response) => {
    const peer = await peerOfTest(ok);
    const server = createTcpServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => (response === '' ? socket.destroy() : socket.write(response)));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(async () => void server.close());
    const { transport } = transportOfTest(peer, { proxy: `http://127.0.0.1:${portOf(server)}` });
    expect(tally(await repliesOf(transport, aBatch(1)))).toEqual({ 'not_sent connect_failed': 1 });
  });

  test('that never responds, requests time out', async () => {
    const peer = await peerOfTest(ok);
    const server = createTcpServer((socket) => socket.on('error', () => undefined));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(async () => void server.close());
    const { transport, facts } = transportOfTest(
      peer,
      { proxy: `http://127.0.0.1:${portOf(server)}` },
      { connectMs: 100 },
    );
    expect(tally(await repliesOf(transport, aBatch(1)))).toEqual({ 'not_sent connect_failed': 1 });
    expect(facts[0]).toMatchObject({ event: 'connect_failed', detail: 'connect_timeout' });
  });
});

test('HTTP/1.1 requests use the proxy too', async () => {
  const authority = await openCertificateAuthority();
  const { certificate, privateKey } = await authority.issueServer();
  const server = createHttpsServer({ cert: certificate, key: privateKey }, (_, response) =>
    response.end('{"a":1}'),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
  });
  const proxy = await startProxy(false);
  const client = createHttpClient({
    baseUrl: `https://localhost:${portOf(server)}`,
    ca: authority.certificate,
    proxy: `http://127.0.0.1:${proxy.port}`,
    clock: systemClock,
  });
  expect(await client.request({ method: 'GET', path: '/token' })).toMatchObject({
    status: 200,
    body: '{"a":1}',
  });
  await client.close();
  expect(proxy.requests.map(({ authority: host }) => host)).toEqual([
    `localhost:${portOf(server)}`,
  ]);
});
