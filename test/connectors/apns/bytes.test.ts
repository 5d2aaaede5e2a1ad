import { expect, test } from 'vitest';
import { defaultTuning } from '../../../connectors/apns/client.ts';
import { apnsCredentials } from '../../../connectors/apns/credentials.ts';
import { apnsConnector } from '../../../connectors/apns/index.ts';
import { frame, settingsFrame } from '../../../connectors/http2/frames/wire-format.ts';
import { createApnsCredentials } from '../../../ops/sandbox/apns/server.ts';
import { systemClock } from '../../../shared/clock.ts';
import {
  aContext,
  aMessage,
  kinds,
  recipients,
  sendAll,
  topic,
} from '../../support/gateways/apns.ts';
import { okFrame, startRawPeer } from '../../support/http2/raw-peer.ts';

test('the collapse id of a large push takes one byte per request after the first', async () => {
  const blocks: number[] = [];
  const peer = await startRawPeer(async (connection) => {
    connection.write(settingsFrame([]));
    for (;;) {
      const request = await connection.next(({ type }) => type === frame.headers);
      if (request === undefined) return;
      blocks.push(request.payload.length);
      connection.write(okFrame(request.id));
    }
  });
  const { publicKey: _, ...token } = createApnsCredentials([topic]);
  const base = { auth: 'token', ...token, endpoint: peer.url, ca: peer.ca };
  const tuning = { ...defaultTuning, maxConnections: 1 };
  const sender = apnsConnector(tuning).open(apnsCredentials.parse(base), aContext());
  // All pushes have the same expiry, because a header that equals one of an earlier push takes one
  // byte.
  const expiresAtMs = systemClock.now() + 3_600_000;
  /**
   * Returns the size of the last header block of a push to `count` devices. The first blocks fill
   * the table of the connection.
   */
  const lastBlock = async (count: number, objectId: string) => {
    const message = aMessage({ alert: 'a' }, { objectId, expiresAtMs });
    const outcome = await sendAll(sender, recipients(count), message);
    expect(kinds(outcome)).toEqual({ sent: count });
    return blocks.at(-1) ?? 0;
  };
  await lastBlock(1, 'FirstRecord00001');
  const few = await lastBlock(20, 'SmallRecord00001');
  const many = await lastBlock(200, 'LargeRecord00001');
  await sender.close();
  await peer.close();
  // In a push to few devices the id is literal (index, length, at most 16 bytes), so that small
  // pushes do not fill the table.
  expect(few - many).toBeGreaterThan(8);
  expect(few - many).toBeLessThanOrEqual(18);
});
