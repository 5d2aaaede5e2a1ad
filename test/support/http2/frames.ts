import fc from 'fast-check';
import { type FrameHandler, FrameReader } from '../../../connectors/http2/frames/frame-reader.ts';
import {
  flag,
  frame,
  frameOf,
  settingsFrame,
} from '../../../connectors/http2/frames/wire-format.ts';

/** Records the events of the frame reader. */
export class Recorder implements FrameHandler {
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
  onWindowUpdate(id: number, increment: number): void {
    this.events.push(`window ${id} ${increment}`);
  }
  onIgnored(): void {
    this.events.push('ignored');
  }
  onConnectionError({ code }: { code: number }): void {
    this.events.push(`fault ${code}`);
    this.fault = code;
  }
}

/** Passes the bytes to the reader in pieces of these lengths, in rotation. */
export function readIn(bytes: Buffer, lengths: readonly number[]): Recorder {
  const recorder = new Recorder();
  const reader = new FrameReader(recorder);
  let turn = 0;
  for (let at = 0; at < bytes.length; ) {
    const length = lengths[turn++ % lengths.length] ?? 1;
    // The copy is overwritten afterwards to detect later reads.
    const piece = Buffer.from(bytes.subarray(at, at + length));
    reader.push(piece);
    piece.fill(0xee);
    at += length;
  }
  return recorder;
}

const id = fc.integer({ min: 1, max: 0x7fff_ffff });
export const payload = (max: number) => fc.uint8Array({ maxLength: max });
const exactly = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
const ends = fc.constantFrom(0, flag.endStream);

const padded = (bytes: Uint8Array, padding: number) =>
  Buffer.concat([Buffer.from([padding]), bytes, Buffer.alloc(padding)]);

/** Header block in one or several frames. */
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
    .map(([n, end, bytes, padding]) =>
      frameOf(frame.data, end | flag.padded, n, padded(bytes, padding)),
    ),
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
export const sound = fc
  .array(soundFrame, { maxLength: 30 })
  .map((frames) => Buffer.concat([settingsFrame([[3, 100]]), ...frames]));
export const cuts = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 10 });
