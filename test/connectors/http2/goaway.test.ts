import { once } from 'node:events';
import { constants } from 'node:http2';
import { connect, createServer } from 'node:net';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import {
  flag,
  frame,
  frameOf,
  numberFrame,
  setting,
  settingsFrame,
} from '../../../connectors/http2/frames/wire-format.ts';
import {
  type ApnsFixture,
  kinds,
  recipients,
  sendAll,
  startApnsFixture,
} from '../../support/gateways/apns.ts';
import {
  aBatch,
  ok,
  openTransport,
  portOf,
  repliesOf,
  startPeer,
  tally,
  transportOfTest,
} from '../../support/http2/peer.ts';
import {
  behave,
  block,
  dataFrame,
  headersFrame,
  okFrame,
  startRawPeer,
} from '../../support/http2/raw-peer.ts';

describe('over HTTP/2', () => {
  let bench: ApnsFixture;
  beforeEach(async () => {
    bench = await startApnsFixture();
    // When the GOAWAYs arrive, the connection has accepted the credentials and has many streams in
    // flight.
    await sendAll(bench.sender, recipients(1));
    bench.gateway.forget();
  });
  afterEach(() => bench.close());

  describe('GOAWAY during a push', () => {
    test('loses no request and repeats none that was processed', async () => {
      const { gateway, sender } = bench;
      gateway.misbehave({ kind: 'goaway', reason: 'IdleTimeout', fraction: 0.002 });
      const to = recipients(2000);
      const outcome = await sendAll(sender, to);
      expect(kinds(outcome)).toEqual({ sent: 2000 });
      expect(to.every(({ deviceToken: address }) => gateway.seen(address) === 1)).toBe(true);
      expect(gateway.connections).toBeGreaterThan(3);
    });

    test('with an error code repeats none either; processed requests are unknown', async () => {
      const { gateway, sender } = bench;
      gateway.misbehave({
        kind: 'goaway',
        code: constants.NGHTTP2_INTERNAL_ERROR,
        fraction: 0.002,
      });
      const to = recipients(2000);
      const outcome = await sendAll(sender, to);
      expect(to.every(({ deviceToken: address }) => gateway.seen(address) <= 1)).toBe(true);
      const { sent = 0, unknown = 0, ...others } = kinds(outcome);
      expect(others).toEqual({});
      expect(sent + unknown).toBe(2000);
      for (const { deviceToken: address, index } of to)
        if (outcome.attempts[index]?.kind === 'sent') expect(gateway.seen(address)).toBe(1);
    });

    test('with refused streams and broken connections repeats no recipient', async () => {
      const { gateway, sender } = bench;
      gateway.misbehave({ kind: 'refuse', fraction: 0.05 });
      gateway.misbehave({ kind: 'goaway', fraction: 0.003 });
      gateway.misbehave({ kind: 'disconnect', fraction: 0.001 });
      gateway.misbehave({ kind: 'reset', fraction: 0.01 });
      const to = recipients(2000);
      const outcome = await sendAll(sender, to);
      expect(outcome.reports.every((count) => count === 1)).toBe(true);
      expect(to.every(({ deviceToken: address }) => gateway.seen(address) <= 1)).toBe(true);
      for (const { deviceToken: address, index } of to)
        if (outcome.attempts[index]?.kind === 'sent') expect(gateway.seen(address)).toBe(1);
    });

    test('on an idle connection has no effect on requests', async () => {
      const { gateway, sender } = bench;
      gateway.goaway('IdleTimeout');
      const outcome = await sendAll(sender, recipients(200));
      expect(kinds(outcome)).toEqual({ sent: 200 });
      expect(gateway.total).toBe(200);
    });
  });

  test('on every connection at once is retried with a back-off', async () => {
    const peer = await startPeer(ok);
    peer.server.on('session', (session) => session.goaway(0, 0));
    const { transport } = openTransport(peer);
    const replies = await repliesOf(transport, aBatch(50));
    expect(Object.keys(tally(replies)).every((name) => name.startsWith('not_sent'))).toBe(true);
    expect(peer.sessions.length).toBeLessThan(12);
    await transport.close();
    await peer.close();
  });
});

describe('the transport, with all frames in one read', () => {
  const last = 0x7fff_ffff;
  const goaway = (lastId: number, code = 0): Buffer => {
    const payload = Buffer.alloc(8);
    payload.writeUInt32BE(lastId, 0);
    payload.writeUInt32BE(code, 4);
    return frameOf(frame.goaway, 0, 0, payload);
  };

  const answerWith = (id: number, bytes: number): Buffer[] => [
    headersFrame(id, block([':status', '200']), false),
    dataFrame(id, 'x'.repeat(bytes)),
  ];

  // The PING makes Node write. This delays the second TLS record and the events of its frames.
  const ping = frameOf(frame.ping, 0, 0, Buffer.alloc(8));

  test.each<[what: string, says: (ids: number[]) => Buffer[], told: Record<string, number>]>([
    ['responses and a GOAWAY', (ids) => [...ids.map(okFrame), goaway(last)], { 'response 200': 8 }],
    [
      'a PING, responses with bodies and a GOAWAY',
      (ids) => [ping, ...ids.flatMap((id) => answerWith(id, 4000)), goaway(last)],
      { 'response 200': 8 },
    ],
    [
      'a PING, responses, resets and a GOAWAY',
      (ids) => [
        ping,
        ...ids.slice(0, 5).flatMap((id) => answerWith(id, 4000)),
        ...ids.slice(5).map((id) => numberFrame(frame.reset, id, 2)),
        goaway(last),
      ],
      { 'response 200': 5, 'unknown stream_reset': 3 },
    ],
    [
      'a PING, responses with bodies and a GOAWAY with an error',
      (ids) => [ping, ...ids.flatMap((id) => answerWith(id, 4000)), goaway(last, 2)],
      { 'response 200': 8 },
    ],
    [
      'responses and a GOAWAY with an error',
      (ids) => [...ids.map(okFrame), goaway(last, 2)],
      { 'response 200': 8 },
    ],
    [
      'resets and a GOAWAY',
      (ids) => [...ids.map((id) => numberFrame(frame.reset, id, 2)), goaway(last)],
      { 'unknown stream_reset': 8 },
    ],
    [
      'resets and a GOAWAY with REFUSED_STREAM',
      (ids) => [...ids.map((id) => numberFrame(frame.reset, id, 2)), goaway(last, 7)],
      { 'unknown stream_reset': 8 },
    ],
    [
      'the heads of responses and a GOAWAY that calls their requests unprocessed',
      (ids) => [...ids.map((id) => headersFrame(id, block([':status', '200']), false)), goaway(0)],
      { 'response 200': 8 },
    ],
    ['a GOAWAY with REFUSED_STREAM', () => [goaway(last, 7)], { 'unknown connection_lost': 8 }],
  ])('%s, repeats nothing', async (_, frames, expected) => {
    const seen: number[] = [];
    const peer = await startRawPeer(async (connection, index) => {
      if (index > 0) {
        await behave(connection);
        return;
      }
      connection.write(settingsFrame([]));
      for (let n = 0; n < 8; n++) seen.push(await connection.request());
      // The peer waits for complete requests, including bodies.
      for (const id of seen)
        await connection.next((one) => one.id === id && (one.flags & flag.endStream) > 0);
      connection.write(...frames(seen));
      connection.socket.end();
    });
    onTestFinished(() => peer.close());
    const { transport } = transportOfTest(peer);
    const replies = await repliesOf(transport, aBatch(8));
    expect(tally(replies)).toEqual(expected);
    expect(peer.connections).toHaveLength(1);
  });

  test('on every connection is no refused certificate, even if an earlier connection had one', async () => {
    const peer = await startRawPeer(async (connection) => {
      connection.write(settingsFrame([]));
      await connection.request();
      connection.write(goaway(0));
      connection.socket.end();
    });
    onTestFinished(() => peer.close());
    let connections = 0;
    const front = createServer((near) => {
      near.on('error', () => undefined);
      connections += 1;
      if (connections === 1) {
        // A fatal alert of TLS: bad_certificate (RFC 8446 6.2).
        near.end(Buffer.from([0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 42]));
        return;
      }
      const far = connect(Number(new URL(peer.url).port), '127.0.0.1');
      far.on('error', () => undefined);
      near.pipe(far).pipe(near);
    });
    front.listen(0, '127.0.0.1');
    await once(front, 'listening');
    onTestFinished(() => void front.close());
    const { transport } = transportOfTest({ ...peer, url: `https://127.0.0.1:${portOf(front)}` });
    expect(tally(await repliesOf(transport, aBatch(1)))).toEqual({
      'not_sent certificate_refused': 1,
    });
    expect(tally(await repliesOf(transport, aBatch(1)))).toEqual({ 'not_sent connect_failed': 1 });
    expect(connections).toBe(3);
  });

  const reset = (code: number) => (id: number) => [numberFrame(frame.reset, id, code)];
  const goawayAfter = (code: number) => (id: number) => [okFrame(id), goaway(id, code)];
  test.each<[what: string, says: (id: number) => Buffer[], shortestPauseMs: number]>([
    ['GOAWAY without an error', goawayAfter(constants.NGHTTP2_NO_ERROR), 0],
    ['GOAWAY with PROTOCOL_ERROR', goawayAfter(constants.NGHTTP2_PROTOCOL_ERROR), 50],
    ['GOAWAY with ENHANCE_YOUR_CALM', goawayAfter(constants.NGHTTP2_ENHANCE_YOUR_CALM), 500],
    ['GOAWAY with HTTP_1_1_REQUIRED', goawayAfter(constants.NGHTTP2_HTTP_1_1_REQUIRED), 500],
    ['RST_STREAM with ENHANCE_YOUR_CALM', reset(constants.NGHTTP2_ENHANCE_YOUR_CALM), 500],
  ])(
    'after %s, pauses before the next connection, twice as long the second time',
    async (_, says, shortest) => {
      const openedAt: number[] = [];
      const peer = await startRawPeer(async (connection, index) => {
        openedAt.push(performance.now());
        if (index === 2) {
          await behave(connection);
          return;
        }
        connection.write(settingsFrame([[setting.maxConcurrentStreams, 1]]));
        // The reply shows that the peer works, so only its code can cause the pause.
        connection.write(okFrame(await connection.request()));
        connection.write(...says(await connection.request()));
      });
      onTestFinished(() => peer.close());
      const { transport } = transportOfTest(peer, { maxConnections: 1 }, { queueMs: 20_000 });
      const { 'response 200': answered = 0, ...others } = tally(
        await repliesOf(transport, aBatch(8)),
      );
      expect(others).toEqual(says(1).length === 1 ? { 'unknown stream_reset': 2 } : {});
      expect(answered).toBe(says(1).length === 1 ? 6 : 8);
      const [first = 0, second = 0, third = 0] = openedAt;
      expect(openedAt).toHaveLength(3);
      expect(second - first).toBeGreaterThanOrEqual(shortest);
      expect(third - second).toBeGreaterThanOrEqual(2 * shortest);
    },
  );
});
