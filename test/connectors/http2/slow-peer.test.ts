import { describe, expect, test } from 'vitest';
import { Watchdog } from '../../../connectors/http2/connection.ts';
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
import { againstRawPeer, okFrame, type RawConnection } from '../../support/http2/raw-peer.ts';

const megabyte = 1_000_000;
const largeBodies = (count: number) =>
  aBatch(count, {
    template: { pathPrefix: '/p/', headers: {}, body: Buffer.alloc(megabyte, 'x') },
  });

const ping = frameOf(frame.ping, 0, 0, Buffer.alloc(8));
/** SETTINGS with unlimited windows and frame size, so that only the socket delays the client. */
const unlimited = Buffer.concat([
  settingsFrame([
    [setting.initialWindowSize, maxWindowBytes],
    [setting.maxFrameSize, 0xff_ffff],
  ]),
  numberFrame(frame.windowUpdate, 0, maxWindowBytes - 65_535),
]);

/** Waits until the client has filled the kernel's socket buffers. */
async function untilFull(connection: RawConnection): Promise<void> {
  for (let turn = 0; turn < 300; turn++) {
    // A frame makes the client continue to write. A WINDOW_UPDATE also continues bodies.
    if (turn % 10 === 0) connection.write(ping, numberFrame(frame.windowUpdate, 0, 1));
    await new Promise(setImmediate);
  }
}

describe('a peer that reads slowly', () => {
  test('keeps its connection during uploads', async () => {
    const { transport, facts } = await againstRawPeer(async (connection) => {
      connection.write(unlimited);
      await connection.request();
      connection.socket.pause();
      await untilFull(connection);
      connection.socket.resume();
      const isEnd = (one: { type: number; flags: number }) =>
        one.type === frame.data && (one.flags & flag.endStream) > 0;
      for (let end = await connection.next(isEnd); end; end = await connection.next(isEnd))
        connection.write(okFrame(end.id));
    });
    expect(tally(await repliesOf(transport, largeBodies(20)))).toEqual({ 'response 200': 20 });
    expect(facts.map(({ event }) => event)).not.toContain('lost');
  });

  test('loses its connection if it leaves control frames unread', async () => {
    const { transport, facts } = await againstRawPeer(async (connection) => {
      connection.write(unlimited);
      await connection.request();
      connection.socket.pause();
      await untilFull(connection);
      connection.write(...Array<Buffer>(9000).fill(ping));
    });
    expect(tally(await repliesOf(transport, largeBodies(20)))).toEqual({
      'unknown connection_lost': 20,
    });
    expect(facts).toContainEqual(expect.objectContaining({ event: 'lost', detail: 'unread' }));
  });

  test('may send a WINDOW_UPDATE for every KiB that it reads', async () => {
    const { transport, facts } = await againstRawPeer(async (connection) => {
      connection.write(settingsFrame([[setting.initialWindowSize, megabyte]]));
      connection.write(numberFrame(frame.windowUpdate, 0, 0x3fff_ffff));
      const isData = ({ type }: { type: number }) => type === frame.data;
      for (let data = await connection.next(isData); data; data = await connection.next(isData)) {
        const { id, flags, payload } = data;
        for (let read = 0; read < payload.length; read += 1024)
          connection.write(
            numberFrame(frame.windowUpdate, 0, 1024),
            numberFrame(frame.windowUpdate, id, 1024),
          );
        if ((flags & flag.endStream) > 0) connection.write(okFrame(id));
      }
    });
    expect(tally(await repliesOf(transport, largeBodies(12)))).toEqual({ 'response 200': 12 });
    expect(facts.map(({ event }) => event)).not.toContain('lost');
  });

  test('keeps its connection if it sends frames after our GOAWAY', async () => {
    const { transport, facts } = await againstRawPeer(async (connection) => {
      connection.write(unlimited);
      const ids = [];
      for (let n = 0; n < 20; n++) ids.push(await connection.request());
      connection.socket.pause();
      await untilFull(connection);
      // Replies before the bodies are written. The client sends GOAWAY after the bytes in the
      // socket.
      connection.write(...ids.map(okFrame));
      await untilFull(connection);
      connection.socket.resume();
    });
    const replies = await repliesOf(transport, largeBodies(20), () => 'drain');
    expect(tally(replies)).toEqual({ 'response 200': 20 });
    await expect.poll(() => facts.map(({ event }) => event)).toContain('closed');
    expect(facts.map(({ event }) => event)).not.toContain('lost');
  });
});

describe('the timeout of a PING', () => {
  const silent = (wire: { hasBacklog: boolean; sentPieces: number }) => ({
    ...wire,
    ping: () => undefined,
  });

  test('starts when it is written, if there is no backlog', () => {
    const watchdog = new Watchdog({ pingAfterMs: 30, pingMs: 10 }, 0);
    const isAlive = [30, 40, 41].map((nowMs) =>
      watchdog.isAlive(silent({ hasBacklog: false, sentPieces: nowMs }), nowMs),
    );
    expect(isAlive).toEqual([true, true, false]);
  });

  test('starts with the last progress of an upload before it', () => {
    const watchdog = new Watchdog({ pingAfterMs: 30, pingMs: 10 }, 0);
    const isAlive = [30, 38, 46, 54, 56, 57].map((nowMs) =>
      watchdog.isAlive(silent({ hasBacklog: true, sentPieces: Math.min(nowMs, 46) }), nowMs),
    );
    expect(isAlive).toEqual([true, true, true, true, true, false]);
  });
});
