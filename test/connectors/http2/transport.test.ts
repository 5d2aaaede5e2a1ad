import { once } from 'node:events';
import { constants, type ServerHttp2Stream } from 'node:http2';
import { createServer } from 'node:https';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { RequestTemplate } from '../../../connectors/http2/transport.ts';
import { openCertificateAuthority } from '../../../ops/sandbox/kit/certificates.ts';
import {
  aBatch,
  ok,
  peerOfTest,
  portOf,
  repliesOf,
  startPeer,
  startWire,
  tally,
  transportOfTest,
} from '../../support/http2/peer.ts';

describe('over HTTP/2', () => {
  describe('connect', () => {
    test('opens one connection without a request, which the first request uses', async () => {
      let requests = 0;
      const peer = await peerOfTest((stream, headers) => {
        requests += 1;
        ok(stream, headers);
      });
      const { transport, facts } = transportOfTest(peer);
      await Promise.all([transport.connect(), transport.connect()]);
      expect(transport.load()).toEqual({ connections: 1, streams: 0 });
      expect(requests).toBe(0);
      await repliesOf(transport, aBatch(1));
      expect(requests).toBe(1);
      expect(facts.filter(({ event }) => event === 'connected')).toHaveLength(1);
    });

    test('waits for a connection that another caller is opening', async () => {
      const { transport, facts } = transportOfTest(await peerOfTest(ok));
      const first = transport.connect();
      await transport.connect();
      expect(facts.filter(({ event }) => event === 'connected')).toHaveLength(1);
      await first;
    });

    test('resolves without a listener, and when the transport is closed', async () => {
      const { transport } = transportOfTest({
        url: 'https://127.0.0.1:1',
        ca: (await peerOfTest(ok)).ca,
      });
      await transport.connect();
      await transport.connect();
      await transport.close();
      await transport.connect();
      expect(transport.load().connections).toBe(0);
    });
  });

  describe('a request', () => {
    test('has base path, shared headers, its own header and its splice', async () => {
      const seen: unknown[] = [];
      const peer = await peerOfTest(async (stream, headers) => {
        const chunks: Buffer[] = [];
        stream.on('data', (chunk: Buffer) => chunks.push(chunk));
        await once(stream, 'end');
        seen.push({ ...headers, body: Buffer.concat(chunks).toString() });
        ok(stream, headers);
      });
      const { transport } = transportOfTest({ ...peer, url: `${peer.url}/relay/` });
      await repliesOf(transport, {
        template: {
          pathPrefix: '/3/device/',
          headers: { 'x-shared': 's' },
          requestHeaderName: 'x-own',
          body: Buffer.from('{"n":}'),
          spliceAt: 5,
        },
        requests: [
          { path: 'aa', headerValue: 'o1', splice: '12' },
          { path: 'bb', headerValue: 'o2', splice: '3' },
        ],
      });
      expect(seen).toMatchObject([
        {
          ':path': '/relay/3/device/aa',
          ':method': 'POST',
          'x-shared': 's',
          'x-own': 'o1',
          body: '{"n":12}',
        },
        { ':path': '/relay/3/device/bb', 'x-own': 'o2', body: '{"n":3}' },
      ]);
    });

    test('has a header value with a shared start', async () => {
      const seen: unknown[] = [];
      const peer = await peerOfTest((stream, headers) => {
        seen.push(headers['x-own']);
        ok(stream, headers);
      });
      const template = {
        pathPrefix: '/',
        headers: {},
        requestHeaderName: 'x-own',
        requestHeaderPrefix: 'of-push-',
        body: Buffer.from('{}'),
      };
      const requests = ['1', 'two', 'x'.repeat(200)].map((headerValue) => ({
        path: 'a',
        headerValue,
      }));
      await repliesOf(transportOfTest(peer).transport, { template, requests });
      expect(seen).toEqual(['of-push-1', 'of-push-two', `of-push-${'x'.repeat(200)}`]);
    });

    test('has the parts of its own batch, even right after a similar batch', async () => {
      const seen: unknown[] = [];
      const peer = await peerOfTest(async (stream, headers) => {
        const chunks: Buffer[] = [];
        stream.on('data', (chunk: Buffer) => chunks.push(chunk));
        await once(stream, 'end');
        seen.push([
          headers[':path'],
          headers['x-a'],
          headers['x-b'],
          headers['x-own'],
          String(Buffer.concat(chunks)),
        ]);
        ok(stream, headers);
      });
      const { transport } = transportOfTest(peer, { maxConnections: 1 });
      const base = {
        pathPrefix: '/p/',
        headers: { 'x-a': '1' },
        requestHeaderName: 'x-own',
        requestHeaderPrefix: 'i-',
        body: Buffer.from('{"n":}'),
        spliceAt: 5,
      };
      const templates: RequestTemplate[] = [
        base,
        { ...base, body: Buffer.from('{"n":}') },
        { ...base, body: Buffer.from('{"m":}') },
        { ...base, spliceAt: 6 },
        { ...base, pathPrefix: '/q/' },
        { ...base, headers: { 'x-a': '2' } },
        { ...base, headers: { 'x-a': '1', 'x-b': '3' } },
        { ...base, headers: { 'x-b': '1' } },
        { ...base, requestHeaderPrefix: 'j-' },
        { ...base, requestHeaderName: 'x-b' },
        base,
      ];
      for (const template of templates)
        await repliesOf(transport, {
          template,
          requests: [{ path: 'd', headerValue: '7', splice: '8' }],
        });
      const usual = ['/p/d', '1', undefined, 'i-7', '{"n":8}'];
      expect(seen).toEqual([
        usual,
        usual,
        ['/p/d', '1', undefined, 'i-7', '{"m":8}'],
        ['/p/d', '1', undefined, 'i-7', '{"n":}8'],
        ['/q/d', '1', undefined, 'i-7', '{"n":8}'],
        ['/p/d', '2', undefined, 'i-7', '{"n":8}'],
        ['/p/d', '1', '3', 'i-7', '{"n":8}'],
        ['/p/d', undefined, '1', 'i-7', '{"n":8}'],
        ['/p/d', '1', undefined, 'j-7', '{"n":8}'],
        ['/p/d', '1', 'i-7', undefined, '{"n":8}'],
        usual,
      ]);
    });

    test('returns status, body and Retry-After', async () => {
      const peer = await peerOfTest((stream) => {
        stream.respond({ ':status': 503, 'retry-after': '7' });
        stream.end('{"reason":"x"}');
      });
      const [reply] = await repliesOf(transportOfTest(peer).transport, aBatch(1));
      expect(reply).toMatchObject({
        kind: 'response',
        status: 503,
        body: '{"reason":"x"}',
        retryAfterMs: 7000,
      });
    });

    test('returns one further header if the caller names it', async () => {
      const peer = await peerOfTest((stream, headers) => {
        const status = headers[':path'] === '/p/0' ? 401 : 200;
        stream.respond({ ':status': status, 'x-reason': 'r'.repeat(600), 'x-id': '1' });
        stream.end();
      });
      const named = transportOfTest(peer, { responseHeader: 'x-reason' });
      // The second value comes from the table of the connection.
      for (const _ of [1, 2]) {
        const replies = await repliesOf(named.transport, aBatch(3));
        expect(replies.map((one) => one.kind === 'response' && one.header)).toEqual(
          Array(3).fill('r'.repeat(512)),
        );
      }
      const [reply] = await repliesOf(transportOfTest(peer).transport, aBatch(1));
      expect(reply).toMatchObject({ kind: 'response', header: undefined });
    });

    test('returns the kept part of a huge body', async () => {
      const peer = await peerOfTest((stream) => {
        stream.respond({ ':status': 400 });
        stream.end(Buffer.alloc(1_000_000, 'x'));
      });
      const [reply] = await repliesOf(transportOfTest(peer).transport, aBatch(1));
      expect(reply?.kind === 'response' && reply.body.length).toBe(65_536);
    });
  });

  describe('the peer’s stream limit', () => {
    test('is never exceeded, and changes are followed', async () => {
      const waiting: ServerHttp2Stream[] = [];
      const peaks: number[] = [];
      // Replies in bursts, so that the client opens as many streams as it can.
      const answer = () => {
        for (const stream of waiting.splice(0))
          stream.respond({ ':status': 200 }, { endStream: true });
      };
      const peer = await peerOfTest(
        (stream) => {
          waiting.push(stream);
          peaks.push(waiting.length);
          if (waiting.length === 1) setTimeout(answer, 5);
        },
        { settings: { maxConcurrentStreams: 3 } },
      );
      const { transport } = transportOfTest(peer, { maxConnections: 1 });
      const peakOf = async (count: number) => {
        peaks.length = 0;
        expect(tally(await repliesOf(transport, aBatch(count)))).toEqual({ 'response 200': count });
        return Math.max(...peaks);
      };
      const setLimit = async (maxConcurrentStreams: number) => {
        peer.sessions[0]?.settings({ maxConcurrentStreams });
        await once(peer.sessions[0] ?? peer.server, 'localSettings');
      };
      expect(await peakOf(30)).toBe(3);
      await setLimit(20);
      expect(await peakOf(60)).toBe(20);
      await setLimit(1);
      expect(await peakOf(10)).toBe(1);
    });

    test('is one until the first accepted reply if the caller sets it', async () => {
      let open1 = 0;
      const peaks: number[] = [];
      const statuses = [403, 500, 200];
      const peer = await peerOfTest((stream) => {
        open1 += 1;
        peaks.push(open1);
        setImmediate(() => {
          open1 -= 1;
          stream.respond({ ':status': statuses.shift() ?? 200 }, { endStream: true });
        });
      });
      const { transport } = transportOfTest(peer, { firstStreams: 1, maxConnections: 1 });
      await repliesOf(transport, aBatch(200));
      expect(peaks.slice(0, 3)).toEqual([1, 1, 1]);
      expect(Math.max(...peaks)).toBeGreaterThan(1);
    });
  });

  describe('a pool', () => {
    test('keeps its connection between batches', async () => {
      const peer = await peerOfTest(ok);
      const { transport } = transportOfTest(peer);
      await repliesOf(transport, aBatch(10));
      await repliesOf(transport, aBatch(10));
      expect(peer.sessions).toHaveLength(1);
    });

    test('grows to its limit while all connections are full', async () => {
      const openStreams: ServerHttp2Stream[] = [];
      const peer = await peerOfTest(
        (stream) => {
          openStreams.push(stream);
          if (peer.sessions.length === 2 && openStreams.length === 4)
            for (const one of openStreams.splice(0)) setTimeout(() => ok(one, {}), 20);
        },
        { settings: { maxConcurrentStreams: 2 } },
      );
      const { transport } = transportOfTest(peer, { maxConnections: 2 });
      expect(tally(await repliesOf(transport, aBatch(40)))).toEqual({ 'response 200': 40 });
      expect(peer.sessions).toHaveLength(2);
    });

    test('renews its connections without losing requests in flight', async () => {
      const openStreams: ServerHttp2Stream[] = [];
      const arrived = Promise.withResolvers<void>();
      const peer = await peerOfTest((stream, headers) => {
        if (peer.sessions.length > 1) return ok(stream, headers);
        openStreams.push(stream);
        if (openStreams.length === 5) arrived.resolve();
      });
      const { transport } = transportOfTest(peer);
      const first = repliesOf(transport, aBatch(5));
      await arrived.promise;
      transport.renew();
      expect(tally(await repliesOf(transport, aBatch(5)))).toEqual({ 'response 200': 5 });
      for (const stream of openStreams) ok(stream, {});
      expect(tally(await first)).toEqual({ 'response 200': 5 });
      expect(peer.sessions).toHaveLength(2);
    });

    test('drains a connection if the callback decides so', async () => {
      const peer = await peerOfTest(ok);
      const { transport } = transportOfTest(peer);
      await repliesOf(transport, aBatch(1), () => 'drain');
      await repliesOf(transport, aBatch(1));
      expect(peer.sessions).toHaveLength(2);
    });

    test('closes gracefully: answers requests in flight, rejects waiting ones', async () => {
      const arrived = Promise.withResolvers<void>();
      const openStreams: ServerHttp2Stream[] = [];
      const peer = await peerOfTest(
        (stream) => {
          openStreams.push(stream);
          if (openStreams.length === 2) arrived.resolve();
        },
        { settings: { maxConcurrentStreams: 2 } },
      );
      const { transport } = transportOfTest(peer, { maxConnections: 1 });
      const replies = repliesOf(transport, aBatch(10));
      await arrived.promise;
      const closed = transport.close();
      for (const stream of openStreams) ok(stream, {});
      await closed;
      expect(tally(await replies)).toEqual({ 'response 200': 2, 'not_sent closed': 8 });
    });
  });

  describe('a batch', () => {
    test('stops if the callback decides so', async () => {
      const peer = await peerOfTest(ok, { settings: { maxConcurrentStreams: 1 } });
      const { transport } = transportOfTest(peer, { maxConnections: 1 });
      const replies = await repliesOf(transport, aBatch(100), (index) =>
        index === 4 ? 'stop' : undefined,
      );
      expect(tally(replies)).toEqual({ 'response 200': 5, 'not_sent stopped': 95 });
    });

    test('rejects unwritten requests when it is aborted', async () => {
      const peer = await peerOfTest(ok, { settings: { maxConcurrentStreams: 1 } });
      const { transport } = transportOfTest(peer, { maxConnections: 1 });
      const controller = new AbortController();
      const replies = await repliesOf(
        transport,
        aBatch(100, { signal: controller.signal }),
        (index) => {
          if (index === 4) controller.abort();
          return undefined;
        },
      );
      expect(tally(replies)).toEqual({ 'response 200': 5, 'not_sent aborted': 95 });
    });

    test('rejects with the error of its callback, without affecting other batches', async () => {
      const peer = await peerOfTest(ok);
      const { transport } = transportOfTest(peer);
      const broken = transport.sendMany(aBatch(10), () => {
        throw new Error('ours');
      });
      const sound = repliesOf(transport, aBatch(10));
      await expect(broken).rejects.toThrow('ours');
      expect(tally(await sound)).toEqual({ 'response 200': 10 });
    });
  });

  describe('an unreachable peer', () => {
    test('is reported with a retry time, and used again when it is back', async () => {
      const peer = await startPeer(ok);
      const port = portOf(peer.server);
      await peer.close();
      const { transport, facts } = transportOfTest(peer);
      const [reply] = await repliesOf(transport, aBatch(3));
      expect(reply).toMatchObject({
        kind: 'not_sent',
        reason: 'connect_failed',
        afterMs: expect.any(Number),
      });
      expect(facts.filter(({ event }) => event === 'connect_failed')).toHaveLength(3);
      const again = await repliesOf(transport, aBatch(1));
      expect(tally(again)).toEqual({ 'not_sent connect_failed': 1 });
      expect(port).toBeGreaterThan(0);
    });

    test('with invalid TLS gets no request', async () => {
      const peer = await peerOfTest(ok);
      const unknownAuthority = await openCertificateAuthority();
      const { transport } = transportOfTest({ url: peer.url, ca: unknownAuthority.certificate });
      expect(tally(await repliesOf(transport, aBatch(3)))).toEqual({
        'not_sent connect_failed': 3,
      });
    });

    test('without HTTP/2 gets no request', async () => {
      const authority = await openCertificateAuthority();
      const { certificate, privateKey } = await authority.issueServer();
      const server = createServer({ cert: certificate, key: privateKey }, (_, response) =>
        response.end('{}'),
      );
      server.on('tlsClientError', () => undefined);
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { transport } = transportOfTest({
        url: `https://127.0.0.1:${portOf(server)}`,
        ca: authority.certificate,
      });
      const replies = await repliesOf(transport, aBatch(3));
      expect(replies.every(({ kind }) => kind === 'not_sent')).toBe(true);
      server.close();
      server.closeAllConnections();
    });

    test('fails after the connect timeout', async () => {
      const peer = await peerOfTest(ok);
      const wire = await startWire(portOf(peer.server));
      onTestFinished(() => wire.close());
      const { transport, facts } = transportOfTest(
        { ...peer, url: `https://127.0.0.1:${wire.port}` },
        {},
        { connectMs: 100 },
      );
      const sending = repliesOf(transport, aBatch(1));
      wire.stall();
      await sending;
      expect(facts.some(({ event }) => event === 'connected' || event === 'connect_failed')).toBe(
        true,
      );
    });
  });

  describe('a silent peer', () => {
    test('makes requests unknown at their timeout, while others continue', async () => {
      const peer = await peerOfTest((stream, headers) => {
        if (headers[':path'] !== '/p/3') ok(stream, headers);
      });
      const { transport } = transportOfTest(peer, {}, { requestMs: 200 });
      const replies = await repliesOf(transport, aBatch(10));
      expect(tally(replies)).toEqual({ 'response 200': 9, 'unknown timeout': 1 });
      expect(tally(await repliesOf(transport, aBatch(3)))).toEqual({ 'response 200': 3 });
    });

    test('is detected by a PING, and a new connection is opened', async () => {
      const peer = await peerOfTest(ok);
      const wire = await startWire(portOf(peer.server));
      onTestFinished(() => wire.close());
      const { transport, facts } = transportOfTest(
        { ...peer, url: `https://127.0.0.1:${wire.port}` },
        {},
        { requestMs: 150, pingMs: 150 },
      );
      await repliesOf(transport, aBatch(5));
      wire.stall();
      expect(tally(await repliesOf(transport, aBatch(5)))).toEqual({ 'unknown timeout': 5 });
      while (!facts.some(({ event }) => event === 'ping_timeout')) await new Promise(setImmediate);
      expect(tally(await repliesOf(transport, aBatch(5)))).toEqual({ 'response 200': 5 });
      expect(peer.sessions).toHaveLength(2);
    });

    test('on one stream keeps a connection that answers PINGs', async () => {
      const peer = await peerOfTest((stream, headers) => {
        if (headers[':path'] === '/p/0') return;
        ok(stream, headers);
      });
      const { transport } = transportOfTest(peer, {}, { requestMs: 100, pingMs: 100 });
      await repliesOf(transport, aBatch(1));
      await repliesOf(transport, aBatch(3));
      expect(peer.sessions).toHaveLength(1);
    });

    test('without free streams gets no waiting requests: they are rejected', async () => {
      const peer = await peerOfTest(() => undefined, { settings: { maxConcurrentStreams: 1 } });
      const { transport } = transportOfTest(
        peer,
        { maxConnections: 1 },
        { queueMs: 200, requestMs: 1000 },
      );
      expect(tally(await repliesOf(transport, aBatch(5)))).toEqual({
        'unknown timeout': 1,
        'not_sent queue_timeout': 4,
      });
    });
  });

  describe('a stream', () => {
    test('that is refused is sent again, a limited number of times', async () => {
      let refusals = 0;
      const peer = await peerOfTest((stream, headers) => {
        if (headers[':path'] === '/p/1' || (headers[':path'] === '/p/2' && refusals < 2)) {
          if (headers[':path'] === '/p/2') refusals += 1;
          stream.close(constants.NGHTTP2_REFUSED_STREAM);
        } else ok(stream, headers);
      });
      const replies = await repliesOf(transportOfTest(peer).transport, aBatch(4));
      expect(
        replies.map((reply) => (reply.kind === 'response' ? reply.status : reply.reason)),
      ).toEqual([200, 'refused_stream', 200, 200]);
    });

    test('that is reset may have been processed', async () => {
      const peer = await peerOfTest((stream) => stream.close(constants.NGHTTP2_INTERNAL_ERROR));
      expect(tally(await repliesOf(transportOfTest(peer).transport, aBatch(2)))).toEqual({
        'unknown stream_reset': 2,
      });
    });

    test('with a status counts as answered if its connection breaks', async () => {
      const peer = await peerOfTest((stream) => {
        stream.respond({ ':status': 200 });
        setTimeout(() => stream.session?.destroy(), 20);
      });
      expect(tally(await repliesOf(transportOfTest(peer).transport, aBatch(1)))).toEqual({
        'response 200': 1,
      });
    });
  });
});
