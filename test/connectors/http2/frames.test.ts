import { readFile } from 'node:fs/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { frameOf, settingsFrame } from '../../../connectors/http2/frames/wire-format.ts';
import { HeaderDecoder } from '../../../connectors/http2/hpack/decoder.ts';
import { cuts, payload, readIn, sound } from '../../support/http2/frames.ts';

describe('frames', () => {
  test('are the same however the bytes are split', () => {
    fc.assert(
      fc.property(sound, cuts, (bytes, lengths) => {
        const whole = readIn(bytes, [bytes.length]);
        expect(whole.fault).toBe(0);
        expect(readIn(bytes, lengths).events).toEqual(whole.events);
        expect(readIn(bytes, [1]).events).toEqual(whole.events);
      }),
    );
  });

  test('of a truncated input are the complete ones', () => {
    fc.assert(
      fc.property(sound, fc.nat(), cuts, (bytes, cut, lengths) => {
        const whole = readIn(bytes, [bytes.length]).events;
        const part = readIn(bytes.subarray(0, cut % bytes.length), lengths).events;
        expect(part).toEqual(whole.slice(0, part.length));
      }),
    );
  });

  test('of random bytes cause one connection error, and nothing is read after it', () => {
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
          // Half of the frames have a wrong length.
          if (length % 2 === 1) bogus.writeUIntBE(length, 0, 3);
          return bogus;
        }),
      );
    fc.assert(
      fc.property(
        fc.array(fc.oneof(head, payload(80)), { maxLength: 20 }),
        cuts,
        (pieces, lengths) => {
          const bytes = Buffer.concat([settingsFrame([]), ...pieces]);
          const { events, fault } = readIn(bytes, lengths);
          const faults = events.filter((event) => event.startsWith('fault'));
          expect(faults.length).toBe(fault === 0 ? 0 : 1);
          if (fault !== 0) expect(events.at(-1)).toBe(`fault ${fault}`);
        },
      ),
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

/** Recorded bytes of servers. See `fixtures/README.md`. */
describe.each(['node', 'nghttpd'])('recorded bytes of %s', (name) => {
  test.each([[100_000], [1], [7]])('are decoded correctly, in pieces of %i', async (length) => {
    const file = new URL(`fixtures/${name}.json`, import.meta.url);
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
