import { connect } from 'node:http2';
import { Duplex } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FrameReader } from '../../connectors/http2/frames/frame-reader.ts';
import {
  errorCode,
  frame,
  frameOf,
  settingsFrame,
} from '../../connectors/http2/frames/wire-format.ts';
import { HeaderDecoder } from '../../connectors/http2/hpack/decoder.ts';
import { type Field, HeaderEncoder } from '../../connectors/http2/hpack/encoder.ts';
import { Recorder } from '../support/http2/frames.ts';
import { headersFrame } from '../support/http2/raw-peer.ts';
import { mutated } from './generators/bytes.ts';
import { fuzz } from './runs.ts';

const field = fc.record<Field>({
  name: fc.stringMatching(/^[a-z][a-z0-9-]{0,12}$/),
  value: fc.string({
    maxLength: 40,
    unit: fc.integer({ min: 33, max: 126 }).map((code) => String.fromCharCode(code)),
  }),
  scope: fc.constantFrom('connection', 'batch', 'request'),
});
const fields = fc.array(field, { maxLength: 8 });
const status: Field = { name: ':status', value: '200', scope: 'connection' };
const blockOf = (list: Field[]): Buffer => new HeaderEncoder().encode([status, ...list]);
const blocks = fc.oneof(
  { weight: 5, arbitrary: mutated(fields.map(blockOf), 2) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)) },
);

const limits = { tableSize: 4096, listSize: 16_384 };

/**
 * Socket without a network. `onWrite` gets the bytes of the client, `push` sends bytes to the
 * client.
 */
class MemorySocket extends Duplex {
  readonly #onWrite: (chunk: Buffer) => void;
  constructor(onWrite: (chunk: Buffer) => void) {
    super();
    this.#onWrite = onWrite;
  }
  override _read(): void {}
  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#onWrite(chunk);
    done();
  }
}

/** Decodes a response's header block with Node's client, which uses nghttp2. */
function askNghttp2(
  block: Buffer,
): Promise<{ isBroken: boolean; headers: Record<string, unknown> | undefined }> {
  return new Promise((resolve) => {
    const recorder = new Recorder();
    const reader = new FrameReader(recorder);
    let skip = 24;
    let headers: Record<string, unknown> | undefined;
    const socket = new MemorySocket((chunk) => {
      const from = Math.min(skip, chunk.length);
      skip -= from;
      reader.push(Buffer.from(chunk.subarray(from)));
      const end = recorder.events.find(
        (event) => event.startsWith('ping true') || event.startsWith('goaway'),
      );
      if (end === undefined) return;
      resolve({
        isBroken: end.startsWith(`goaway`) && end.split(' ')[2] === String(errorCode.compression),
        headers,
      });
      client.destroy();
    });
    const client = connect('http://127.0.0.1', { createConnection: () => socket });
    client.on('error', () => undefined);
    const request = client.request();
    request.on('error', () => undefined);
    request.on('response', (received) => {
      headers = received;
    });
    socket.push(settingsFrame([]));
    socket.push(headersFrame(1, block));
    // The client answers the PING after the frames before it, or never if the connection has ended.
    socket.push(frameOf(frame.ping, 0, 0, Buffer.alloc(8)));
  });
}

describe('a header block', () => {
  test('is broken exactly if nghttp2 finds it broken, else decodes alike', async () => {
    await fuzz(
      fc.asyncProperty(blocks, async (block) => {
        const decoder = new HeaderDecoder(limits);
        const own: [string, string][] = [];
        const fault = decoder.decode(block, 0, block.length, (name, value) =>
          own.push([name, value]),
        );
        const { isBroken, headers } = await askNghttp2(block);
        expect(fault === 'broken').toBe(isBroken);
        if (headers === undefined || fault !== null || decoder.isMalformed) return;
        expect(headers[':status']).toBe(decoder.status);
        for (const [name, value] of own)
          if (!name.startsWith(':')) expect(String(headers[name])).toContain(value.trim());
      }),
      { cases: 250 },
    );
  }, 600_000);

  test('that is broken or endless stays within the memory limit', async () => {
    await fuzz(
      fc.property(fc.array(blocks, { minLength: 1, maxLength: 20 }), (list) => {
        const decoder = new HeaderDecoder(limits);
        for (const block of list) {
          let size = 0;
          const fault = decoder.decode(block, 0, block.length, (name, value) => {
            size += name.length + value.length + 32;
          });
          // The decoder may report one field above the limit: the field that exceeds it.
          expect(size).toBeLessThanOrEqual(limits.listSize + limits.tableSize + block.length * 2);
          if (fault !== null) return;
        }
      }),
      { cases: 300 },
    );
  }, 600_000);
});
