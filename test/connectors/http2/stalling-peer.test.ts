import { describe, expect, test } from 'vitest';
import {
  flag,
  frame,
  frameOf,
  maxWindowBytes,
  numberFrame,
  setting,
  settingsFrame,
} from '../../../connectors/http2/frames/wire-format.ts';
import { aBatch, repliesOf, tally } from '../../support/http2/peer.ts';
import { againstRawPeer, behave, block, dataFrame } from '../../support/http2/raw-peer.ts';

const megabyte = 1_000_000;
const template = { pathPrefix: '/p/', headers: {}, body: Buffer.alloc(megabyte, 'x') };

describe('a peer that stalls a connection', () => {
  test('with incomplete SETTINGS fails after the connect timeout', async () => {
    const { transport, facts, peer } = await againstRawPeer(
      (connection) =>
        connection.write(settingsFrame([[setting.maxConcurrentStreams, 1]]).subarray(0, 10)),
      { connectMs: 1000 },
    );
    expect(tally(await repliesOf(transport, aBatch(2)))).toEqual({ 'response 200': 2 });
    expect(facts).toContainEqual(
      expect.objectContaining({ event: 'connect_failed', detail: 'connect_timeout' }),
    );
    expect(peer.connections).toHaveLength(2);
  });

  test('with an incomplete header block is detected by a PING', async () => {
    const { transport, facts } = await againstRawPeer(
      async (connection) => {
        connection.write(settingsFrame([]));
        const id = await connection.request();
        connection.write(frameOf(frame.headers, flag.endStream, id, block([':status', '200'])));
      },
      { requestMs: 400, pingMs: 400 },
    );
    // The first part of the block counts as activity. The silence after the second batch does not.
    for (let batch = 0; batch < 2; batch++)
      expect(tally(await repliesOf(transport, aBatch(2)))).toEqual({ 'unknown timeout': 2 });
    await expect.poll(() => facts.map(({ event }) => event)).toContain('ping_timeout');
    expect(tally(await repliesOf(transport, aBatch(2)))).toEqual({ 'response 200': 2 });
  });

  test('with a body byte by byte times out, and the status counts', async () => {
    const { transport, peer } = await againstRawPeer(
      async (connection) => {
        connection.write(settingsFrame([]));
        const id = await connection.request();
        connection.write(frameOf(frame.headers, flag.endHeaders, id, block([':status', '200'])));
        const reset = connection.next(({ type }) => type === frame.reset);
        let isReset = false;
        void reset.then(() => {
          isReset = true;
        });
        while (!isReset) {
          connection.write(dataFrame(id, 'x', false));
          await new Promise((resolve) => setTimeout(resolve, 1));
        }
        await behave(connection);
      },
      { requestMs: 400 },
    );
    expect(tally(await repliesOf(transport, aBatch(1)))).toEqual({ 'response 200': 1 });
    expect(tally(await repliesOf(transport, aBatch(2)))).toEqual({ 'response 200': 2 });
    expect(peer.connections).toHaveLength(1);
  });

  test('without streams gets no waiting requests: they are rejected', async () => {
    const { transport } = await againstRawPeer(
      async (connection) => connection.write(settingsFrame([[setting.maxConcurrentStreams, 0]])),
      { queueMs: 200 },
    );
    expect(tally(await repliesOf(transport, aBatch(3)))).toEqual({ 'not_sent queue_timeout': 3 });
  });

  test('without a window makes waiting bodies time out', async () => {
    const { transport, peer } = await againstRawPeer(
      async (connection) => {
        connection.write(settingsFrame([[setting.initialWindowSize, 0]]));
        await connection.next(({ type }) => type === frame.reset);
        connection.write(settingsFrame([[setting.initialWindowSize, 65_535]]));
        await behave(connection);
      },
      { requestMs: 400 },
    );
    expect(tally(await repliesOf(transport, aBatch(1)))).toEqual({ 'unknown timeout': 1 });
    expect(peer.connections[0]?.frames.filter(({ type }) => type === frame.data)).toEqual([]);
  });
});

describe('a window that overflows during an upload', () => {
  test('ends the stream if it is a stream window', async () => {
    const code = Promise.withResolvers<number | undefined>();
    const { transport, peer } = await againstRawPeer(async (connection) => {
      connection.write(settingsFrame([[setting.initialWindowSize, 1]]));
      const id = await connection.request();
      connection.write(numberFrame(frame.windowUpdate, id, maxWindowBytes));
      connection.write(numberFrame(frame.windowUpdate, id, maxWindowBytes));
      const reset = await connection.next(({ type }) => type === frame.reset);
      code.resolve(reset?.payload.readUInt32BE(0));
      // The body has used up the window of the connection.
      connection.write(numberFrame(frame.windowUpdate, 0, megabyte));
      await behave(connection);
    });
    expect(tally(await repliesOf(transport, aBatch(1, { template })))).toEqual({
      'unknown stream_reset': 1,
    });
    expect(await code.promise).toBe(3);
    expect(tally(await repliesOf(transport, aBatch(2)))).toEqual({ 'response 200': 2 });
    expect(peer.connections).toHaveLength(1);
  });

  test('ends the connection if SETTINGS cause it', async () => {
    const { transport, peer } = await againstRawPeer(async (connection) => {
      connection.write(settingsFrame([[setting.initialWindowSize, 0]]));
      const id = await connection.request();
      // The window of the connection is used up, so the stream's window keeps its size.
      connection.write(settingsFrame([[setting.initialWindowSize, maxWindowBytes]]));
      connection.write(numberFrame(frame.windowUpdate, id, 65_535));
      connection.write(settingsFrame([[setting.initialWindowSize, 0]]));
      connection.write(numberFrame(frame.windowUpdate, id, 65_535));
      connection.write(settingsFrame([[setting.initialWindowSize, maxWindowBytes]]));
    });
    expect(tally(await repliesOf(transport, aBatch(1, { template })))).toEqual({
      'unknown connection_lost': 1,
    });
    expect(await peer.connections[0]?.goaway()).toBe(3);
    expect(tally(await repliesOf(transport, aBatch(2)))).toEqual({ 'response 200': 2 });
  });
});
