import { once } from 'node:events';
import type { ServerHttp2Stream, Settings } from 'node:http2';
import { describe, expect, test } from 'vitest';
import type { RequestBatch } from '../../../connectors/http2/transport.ts';
import {
  aBatch,
  type Handler,
  ok,
  type Peer,
  peerOfTest,
  repliesOf,
  tally,
  transportOfTest,
} from '../../support/http2/peer.ts';

/** Replies with the length and the first and last bytes of the body. */
const measure: Handler = async (stream) => {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  await once(stream, 'end');
  const body = Buffer.concat(chunks);
  stream.respond({ ':status': 200 });
  stream.end(
    `${body.length} ${body.toString('latin1', 0, 2)} ${body.toString('latin1', body.length - 2)}`,
  );
};

const sized = (bytes: number, count: number): RequestBatch =>
  aBatch(count, {
    template: { pathPrefix: '/p/', headers: {}, body: Buffer.from(`A(${'x'.repeat(bytes - 4)})Z`) },
  });

describe('bodies', () => {
  test.each<[what: string, bytes: number, settings: Settings]>([
    ['that fit', 300, {}],
    ['of a megabyte', 1_000_000, {}],
    ['larger than any frame', 40_000, { maxFrameSize: 16_384 }],
    ['larger than the window of their stream', 1000, { initialWindowSize: 10 }],
    ['for a stream without an initial window', 100, { initialWindowSize: 0 }],
  ])('%s arrive whole', async (_, bytes, settings) => {
    const peer = await peerOfTest(measure, { settings });
    if (settings.initialWindowSize === 0)
      peer.server.on('session', (session) => session.settings({ initialWindowSize: 65_535 }));
    const count = bytes > 100_000 ? 5 : 300;
    const replies = await repliesOf(
      transportOfTest(peer, { maxConnections: 1 }).transport,
      sized(bytes, count),
    );
    expect(replies).toHaveLength(count);
    for (const reply of replies)
      expect(reply).toMatchObject({ status: 200, body: `${bytes} A( )Z` });
  });

  test('in progress continue if the peer shrinks and grows its windows', async () => {
    const openStreams: ServerHttp2Stream[] = [];
    const peer = await peerOfTest(
      (stream, headers) => {
        if (openStreams.push(stream) === 20)
          stream.session?.settings({ initialWindowSize: 70_000 });
        void measure(stream, headers);
      },
      { settings: { initialWindowSize: 1000 } },
    );
    const setSmallWindow = (session: Peer['sessions'][number] | undefined) =>
      session?.settings({ initialWindowSize: 100 });
    peer.server.once('stream', () => setSmallWindow(peer.sessions[0]));
    const replies = await repliesOf(
      transportOfTest(peer, { maxConnections: 1 }).transport,
      sized(5000, 40),
    );
    for (const reply of replies) expect(reply).toMatchObject({ body: '5000 A( )Z' });
  });

  test('that are answered before they are complete are cancelled', async () => {
    const peer = await peerOfTest(ok, { settings: { initialWindowSize: 100 } });
    const { transport } = transportOfTest(peer, { maxConnections: 1 });
    expect(tally(await repliesOf(transport, sized(100_000, 20)))).toEqual({ 'response 200': 20 });
    expect(tally(await repliesOf(transport, sized(50, 20)))).toEqual({ 'response 200': 20 });
  });

  test('with splices of any script and length, and none', async () => {
    const bodies = new Map<string, string>();
    const peer = await peerOfTest(async (stream, headers) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      await once(stream, 'end');
      bodies.set(String(headers[':path']), Buffer.concat(chunks).toString());
      stream.respond({ ':status': 200 }, { endStream: true });
    });
    const splices = [
      '1',
      '',
      'é',
      '你好'.repeat(30),
      'x'.repeat(20_000),
      undefined,
      '12345678901234567890',
    ];
    await repliesOf(transportOfTest(peer).transport, {
      template: { pathPrefix: '/p/', headers: {}, body: Buffer.from('<>'), spliceAt: 1 },
      requests: splices.map((splice, index) => ({ path: String(index), splice })),
    });
    splices.forEach((splice, index) => {
      expect(bodies.get(`/p/${index}`)).toBe(`<${splice ?? ''}>`);
    });
  });

  test('that are empty', async () => {
    const peer = await peerOfTest(async (stream) => {
      stream.respond({ ':status': 200 });
      stream.end(String(stream.endAfterHeaders));
    });
    const [reply] = await repliesOf(
      transportOfTest(peer).transport,
      aBatch(1, { template: { pathPrefix: '/', headers: {}, body: Buffer.alloc(0) } }),
    );
    expect(reply).toMatchObject({ body: 'true' });
  });
});

describe('headers', () => {
  /** Starts a server that records the received headers by the request's `x-own`. */
  async function recording(settings = {}) {
    const seen: Record<string, unknown>[] = [];
    const peer = await peerOfTest(
      (stream, headers) => {
        seen.push({ ...headers });
        ok(stream, headers);
      },
      { settings },
    );
    return { seen, peer };
  }

  const template = (n: number) => ({
    pathPrefix: `/push-${n}/`,
    headers: {
      authorization: `bearer ${'t'.repeat(200)}${n % 3}`,
      'x-push': `p${n}`,
      'x-expires': String(n),
    },
    batchHeaders: ['x-expires'],
    requestHeaderName: 'x-own',
    body: Buffer.from('{}'),
  });

  test.each([
    ['the usual table', {}],
    ['no table', { headerTableSize: 0 }],
    ['a table of 100 bytes', { headerTableSize: 100 }],
    ['a table of 600 bytes', { headerTableSize: 600 }],
    ['a large table', { headerTableSize: 65_536 }],
  ])('of many concurrent pushes arrive unchanged, over %s', async (_, settings) => {
    const { seen, peer } = await recording(settings);
    const { transport } = transportOfTest(peer, { maxConnections: 1 });
    const pushes = Array.from({ length: 30 }, (_, n) => n);
    await Promise.all(
      pushes.map((n) =>
        repliesOf(transport, {
          template: template(n),
          requests: Array.from({ length: 20 }, (_, i) => ({
            path: 'd'.repeat(i),
            headerValue: `${n}-${i}`,
          })),
        }),
      ),
    );
    expect(seen).toHaveLength(600);
    for (const headers of seen) {
      const [n, i] = String(headers['x-own']).split('-').map(Number);
      expect(headers).toMatchObject({
        ...template(n ?? 0).headers,
        ':path': `/push-${n}/${'d'.repeat(i ?? 0)}`,
      });
    }
  });

  test('are correct during permanent changes of the peer’s table', async () => {
    const { seen, peer } = await recording();
    const { transport } = transportOfTest(peer, { maxConnections: 1 });
    for (const headerTableSize of [4096, 0, 300, 4096, 50, 2000]) {
      await repliesOf(transport, {
        template: template(headerTableSize),
        requests: [
          { path: 'a', headerValue: 'o' },
          { path: 'b', headerValue: 'o' },
        ],
      });
      peer.sessions[0]?.settings({ headerTableSize });
      await once(peer.sessions[0] ?? peer.server, 'localSettings');
    }
    expect(seen.map((headers) => headers['x-push'])).toEqual(
      [4096, 4096, 0, 0, 300, 300, 4096, 4096, 50, 50, 2000, 2000].map((n) => `p${n}`),
    );
    expect(peer.sessions).toHaveLength(1);
  });

  test('larger than a frame continue in CONTINUATION', async () => {
    const { seen, peer } = await recording();
    const path = 'x'.repeat(40_000);
    const replies = await repliesOf(
      transportOfTest(peer).transport,
      aBatch(2, { requests: [{ path }, { path: 'y' }] }),
    );
    expect(tally(replies)).toEqual({ 'response 200': 2 });
    expect(seen[0]?.[':path']).toBe(`/p/${path}`);
  });

  test('with one path for all', async () => {
    const { seen, peer } = await recording();
    const requests = Array.from({ length: 50 }, () => ({ path: '' }));
    await repliesOf(transportOfTest(peer).transport, { ...aBatch(0), requests });
    expect(new Set(seen.map((headers) => headers[':path']))).toEqual(new Set(['/p/']));
    expect(seen).toHaveLength(50);
  });
});

describe('a connection', () => {
  test('finds an old stream among thousands of newer streams', async () => {
    const first = Promise.withResolvers<ServerHttp2Stream>();
    const peer = await peerOfTest((stream, headers) => {
      if (headers[':path'] === '/p/old') first.resolve(stream);
      else ok(stream, headers);
    });
    const { transport } = transportOfTest(peer, { maxConnections: 1 });
    const old = repliesOf(
      transport,
      aBatch(3, { requests: [{ path: 'old' }, { path: 'old' }, { path: 'old' }] }),
    );
    const stream = await first.promise;
    expect(tally(await repliesOf(transport, aBatch(5000)))).toEqual({ 'response 200': 5000 });
    stream.respond({ ':status': 410 });
    stream.end('{"reason":"x"}');
    peer.sessions[0]?.destroy();
    expect(tally(await old)).toEqual({ 'response 410': 1, 'unknown connection_lost': 2 });
  });

  test('is replaced before its stream ids run out', async () => {
    const peer = await peerOfTest(ok);
    const { transport } = transportOfTest(peer, { maxConnections: 1, streamsPerConnection: 50 });
    for (let i = 0; i < 4; i++)
      expect(tally(await repliesOf(transport, aBatch(40)))).toEqual({ 'response 200': 40 });
    expect(peer.sessions).toHaveLength(4);
  });

  test('is replaced when it is old, without delaying requests', async () => {
    const peer = await peerOfTest(ok);
    const { transport, facts } = transportOfTest(
      peer,
      { maxConnections: 1, maxAgeMs: 200 },
      { requestMs: 300 },
    );
    while (peer.sessions.length < 3)
      expect(tally(await repliesOf(transport, aBatch(5)))).toEqual({ 'response 200': 5 });
    expect(facts.filter(({ event }) => event === 'lost' || event === 'connect_failed')).toEqual([]);
  });

  test('sends a single request', async () => {
    const peer = await peerOfTest(measure);
    const { template } = aBatch(0);
    const reply = await transportOfTest(peer).transport.request(template, { path: 'one' });
    expect(reply).toMatchObject({ kind: 'response', status: 200, body: '2 {} {}' });
  });
});
