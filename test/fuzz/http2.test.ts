import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { settingsFrame } from '../../connectors/http2/frames/wire-format.ts';
import { cuts, readIn, sound } from '../support/http2/frames.ts';
import { aBatch, openTransport, repliesOf } from '../support/http2/peer.ts';
import { behave, block, dataFrame, headersFrame, startRawPeer } from '../support/http2/raw-peer.ts';
import { mutated } from './generators/bytes.ts';
import { fuzz } from './runs.ts';

const noise = fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes));

describe('broken frames of a peer', () => {
  test('are parsed alike in any chunks, up to the first error', async () => {
    await fuzz(
      fc.property(fc.oneof(mutated(sound), noise), cuts, (bytes, lengths) => {
        const whole = readIn(bytes, [Math.max(1, bytes.length)]);
        const faults = whole.events.filter((event) => event.startsWith('fault'));
        expect(faults).toHaveLength(whole.fault === 0 ? 0 : 1);
        if (faults.length > 0) expect(whole.events.at(-1)).toBe(faults[0]);
        expect(readIn(bytes, lengths).events).toEqual(whole.events);
      }),
      { cases: 300 },
    );
  }, 600_000);
});

/** Valid responses of a server to requests 1 and 3, before mutation. */
const responses = fc
  .array(
    fc.oneof(
      fc
        .constantFrom(1, 3)
        .map((id) => headersFrame(id, block([':status', '200'], ['apns-id', 'x']), false)),
      fc
        .tuple(fc.constantFrom(1, 3), fc.string({ maxLength: 20 }))
        .map(([id, text]) => dataFrame(id, text)),
      sound.map((bytes) => bytes.subarray(9 + 6)),
    ),
    { minLength: 1, maxLength: 5 },
  )
  .map((frames) => Buffer.concat([settingsFrame([[3, 100]]), ...frames]));

describe('a connection to a peer that sends any bytes', () => {
  test('ends every request with an outcome, and another connection continues', async () => {
    const peer = await startRawPeer((connection) => {
      const next = script.shift();
      if (next === undefined) void behave(connection);
      else {
        // A client opens no stream before it has received the settings.
        connection.write(settingsFrame([]));
        void connection.request().then(() => {
          connection.write(next);
          connection.socket.end();
        });
      }
    });
    onTestFinished(() => peer.close());
    const script: Buffer[] = [];
    await fuzz(
      fc.asyncProperty(fc.oneof(mutated(responses), noise), async (bytes) => {
        const { transport } = openTransport(peer, { maxConnections: 1 });
        script.push(bytes);
        expect(await repliesOf(transport, aBatch(2))).toHaveLength(2);
        script.length = 0;
        expect(await repliesOf(transport, aBatch(1))).toMatchObject([{ kind: 'response' }]);
        await transport.close();
      }),
      { cases: 10 },
    );
  }, 600_000);
});
