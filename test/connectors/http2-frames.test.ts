import { readFile } from 'node:fs/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { HeaderDecoder } from '../../connectors/http2/hpack/decoder.ts';
import { type FrameHandler, FrameReader } from '../../connectors/http2/own/frame-reader.ts';
import { flag, frame, frameOf, settingsFrame } from '../../connectors/http2/own/wire-format.ts';

/** Writes down what the reader says. */
class Recorder implements FrameHandler {
  readonly events: string[] = [];
  fault = 0;

  onHeaders(id: number, isEnd: boolean, bytes: Buffer, start: number, end: number): void {
    this.events.push(`headers ${id} ${isEnd} ${bytes.toString('hex', start, end)}`);
  }
  onData(
    id: number,
    isEnd: boolean,
    flowBytes: number,
    piece: { bytes: Buffer; start: number; end: number },
  ): void {
    this.events.push(
      `data ${id} ${isEnd} ${flowBytes} ${piece.bytes.toString('hex', piece.start, piece.end)}`,
    );
  }
  onSettings(payload: Buffer): void {
    this.events.push(`settings ${payload.toString('hex')}`);
  }
  onSettingsAck(): void {
    this.events.push('settings ack');
  }
  onPing(isAck: boolean, opaque: Buffer): void {
    this.events.push(`ping ${isAck} ${opaque.toString('hex')}`);
  }
  onGoaway(lastId: number, code: number, debugData: Buffer): void {
    this.events.push(`goaway ${lastId} ${code} ${debugData.toString('hex')}`);
  }
  onReset(id: number, code: number): void {
    this.events.push(`reset ${id} ${code}`);
  }
  onWindow(id: number, increment: number): void {
    this.events.push(`window ${id} ${increment}`);
  }
  onIgnored(): void {
    this.events.push('ignored');
  }
  onFault({ code }: { code: number }): void {
    this.events.push(`fault ${code}`);
    this.fault = code;
  }
}

/** What is read when the bytes come in pieces of these lengths, over and over. */
function readIn(bytes: Buffer, lengths: readonly number[]): Recorder {
  const recorder = new Recorder();
  const reader = new FrameReader(recorder);
  let turn = 0;
  for (let at = 0; at < bytes.length; ) {
    const length = lengths[turn++ % lengths.length] ?? 1;
    // A copy that is overwritten afterwards: nothing of it may be needed any more.
    const piece = Buffer.from(bytes.subarray(at, at + length));
    reader.push(piece);
    piece.fill(0xee);
    at += length;
  }
  return recorder;
}

const id = fc.integer({ min: 1, max: 0x7fff_ffff });
const payload = (max: number) => fc.uint8Array({ maxLength: max });
const exactly = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
const ends = fc.constantFrom(0, flag.endStream);

const padded = (bytes: Uint8Array, padding: number) =>
  Buffer.concat([Buffer.from([padding]), bytes, Buffer.alloc(padding)]);

/** A header block over one frame or several. */
const blockFrames = fc
  .tuple(id, ends, fc.array(payload(60), { minLength: 1, maxLength: 5 }))
  .map(([streamId, end, pieces]) =>
    Buffer.concat(
      pieces.map((piece, i) => {
        const last = i === pieces.length - 1 ? flag.endHeaders : 0;
        return frameOf(
          i === 0 ? frame.headers : frame.continuation,
          i === 0 ? end | last : last,
          streamId,
          piece,
        );
      }),
    ),
  );

const soundFrame = fc.oneof(
  blockFrames,
  fc.tuple(id, ends, payload(3000)).map(([n, end, bytes]) => frameOf(frame.data, end, n, bytes)),
  fc
    .tuple(id, ends, payload(300), fc.integer({ min: 0, max: 255 }))
    .map(([n, end, bytes, padding]) => frameOf(frame.data, end | flag.padded, n, padded(bytes, padding))),
  fc
    .tuple(id, payload(300), fc.integer({ min: 0, max: 255 }))
    .map(([n, bytes, padding]) =>
      frameOf(frame.headers, flag.endHeaders | flag.padded, n, padded(bytes, padding)),
    ),
  fc
    .tuple(fc.constantFrom(0, flag.ack), exactly(8))
    .map(([ack, bytes]) => frameOf(frame.ping, ack, 0, bytes)),
  fc.tuple(id, exactly(4)).map(([n, bytes]) => frameOf(frame.reset, 0, n, bytes)),
  fc.tuple(id, exactly(4)).map(([n, bytes]) => frameOf(frame.windowUpdate, 0, n, bytes)),
  fc
    .tuple(exactly(8), payload(100))
    .map(([head, debug]) => frameOf(frame.goaway, 0, 0, Buffer.concat([head, debug]))),
  fc.tuple(id, payload(100)).map(([n, bytes]) => frameOf(0xbe, 0xff, n, bytes)),
  fc.constant(frameOf(frame.settings, flag.ack, 0, Buffer.alloc(0))),
);
const sound = fc
  .array(soundFrame, { maxLength: 30 })
  .map((frames) => Buffer.concat([settingsFrame([[3, 100]]), ...frames]));
const cuts = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 10 });

describe('frames', () => {
  test('are the same however they are cut', () => {
    fc.assert(
      fc.property(sound, cuts, (bytes, lengths) => {
        const whole = readIn(bytes, [bytes.length]);
        expect(whole.fault).toBe(0);
        expect(readIn(bytes, lengths).events).toEqual(whole.events);
        expect(readIn(bytes, [1]).events).toEqual(whole.events);
      }),
    );
  });

  test('that are cut off at the end say nothing of what is missing', () => {
    fc.assert(
      fc.property(sound, fc.nat(), cuts, (bytes, cut, lengths) => {
        const whole = readIn(bytes, [bytes.length]).events;
        const part = readIn(bytes.subarray(0, cut % bytes.length), lengths).events;
        expect(part).toEqual(whole.slice(0, part.length));
      }),
    );
  });

  test('of noise are refused with a code, once, and nothing is read after that', () => {
    const head = fc
      .tuple(
        fc.integer({ min: 0, max: 20_000 }),
        fc.integer({ min: 0, max: 12 }),
        fc.nat(255),
        fc.integer({ min: 0, max: 8 }),
      )
      .chain(([length, type, flags, streamId]) =>
        payload(Math.min(length, 64)).map((bytes) => {
          const bogus = frameOf(type, flags, streamId, bytes);
          // Half of them lie about their length.
          if (length % 2 === 1) bogus.writeUIntBE(length, 0, 3);
          return bogus;
        }),
      );
    fc.assert(
      fc.property(fc.array(fc.oneof(head, payload(80)), { maxLength: 20 }), cuts, (pieces, lengths) => {
        const bytes = Buffer.concat([settingsFrame([]), ...pieces]);
        const { events, fault } = readIn(bytes, lengths);
        const faults = events.filter((event) => event.startsWith('fault'));
        expect(faults.length).toBe(fault === 0 ? 0 : 1);
        if (fault !== 0) expect(events.at(-1)).toBe(`fault ${fault}`);
      }),
      { numRuns: 500 },
    );
  });
});

const capture = z.object({
  server: z.string(),
  hex: z.string(),
  replies: z.array(
    z.object({ id: z.number(), status: z.number(), fields: z.record(z.string(), z.string()) }),
  ),
});

/** What servers said, byte for byte, after TLS: `fixtures/README.md` tells how it was recorded. */
describe.each(['node', 'nghttpd'])('what %s once said', (name) => {
  test.each([[100_000], [1], [7]])('is read as it was meant, in pieces of %i', async (length) => {
    const file = new URL(`fixtures/http2-${name}.json`, import.meta.url);
    const { hex, replies } = capture.parse(JSON.parse(await readFile(file, 'utf8')));
    const { events, fault } = readIn(Buffer.from(hex, 'hex'), [length]);
    expect(fault).toBe(0);
    const decoder = new HeaderDecoder();
    const read = events
      .map((event) => event.split(' '))
      .filter(([kind]) => kind === 'headers')
      .map(([, streamId, , block]) => {
        const bytes = Buffer.from(block ?? '', 'hex');
        const fields: Record<string, string> = {};
        expect(
          decoder.decode(bytes, 0, bytes.length, (key, value) => {
            if (key !== 'date') fields[key] = value;
          }),
        ).toBeNull();
        expect(decoder.isMalformed).toBe(false);
        return { id: Number(streamId), status: decoder.status, fields };
      });
    expect(read).toEqual(replies);
    expect(read.length).toBeGreaterThan(5);
  });
});
