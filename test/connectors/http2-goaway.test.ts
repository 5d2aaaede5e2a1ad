import { constants } from 'node:http2';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { apnsBench, type Bench, credentialsOver, kinds, recipients, sendAll } from '../support/apns.ts';
import {
  aBatch,
  ok,
  openTransport,
  repliesOf,
  startPeer,
  tally,
  transportNames,
} from '../support/http2-peer.ts';

describe.each(transportNames)('over the %s transport', (name) => {
  let bench: Bench;
  beforeEach(async () => {
    bench = await apnsBench({ credentials: credentialsOver(name) });
    // The connection is trusted and has many streams in flight when the GOAWAYs come.
    await sendAll(bench.sender, recipients(1));
    bench.gateway.forget();
  });
  afterEach(() => bench.close());

  describe('GOAWAY in the midst of a push', () => {
    test('loses nothing and repeats nothing that was processed', async () => {
      const { gateway, sender } = bench;
      gateway.misbehave({ kind: 'goaway', reason: 'IdleTimeout', fraction: 0.002 });
      const to = recipients(2000);
      const outcome = await sendAll(sender, to);
      expect(kinds(outcome)).toEqual({ sent: 2000 });
      expect(to.every(({ address }) => gateway.seen(address) === 1)).toBe(true);
      expect(gateway.connections).toBeGreaterThan(3);
    });

    test('with an error code repeats nothing either; what the peer processed is unknown', async () => {
      const { gateway, sender } = bench;
      gateway.misbehave({ kind: 'goaway', code: constants.NGHTTP2_INTERNAL_ERROR, fraction: 0.002 });
      const to = recipients(2000);
      const outcome = await sendAll(sender, to);
      expect(to.every(({ address }) => gateway.seen(address) <= 1)).toBe(true);
      const { sent = 0, unknown = 0, ...others } = kinds(outcome);
      expect(others).toEqual({});
      expect(sent + unknown).toBe(2000);
      for (const { address, index } of to)
        if (outcome.attempts[index]?.kind === 'sent') expect(gateway.seen(address)).toBe(1);
    });

    test('and refused streams, and connections that break: each recipient is processed at most once', async () => {
      const { gateway, sender } = bench;
      gateway.misbehave({ kind: 'refuse', fraction: 0.05 });
      gateway.misbehave({ kind: 'goaway', fraction: 0.003 });
      gateway.misbehave({ kind: 'disconnect', fraction: 0.001 });
      gateway.misbehave({ kind: 'reset', fraction: 0.01 });
      const to = recipients(2000);
      const outcome = await sendAll(sender, to);
      expect(outcome.reports.every((count) => count === 1)).toBe(true);
      expect(to.every(({ address }) => gateway.seen(address) <= 1)).toBe(true);
      for (const { address, index } of to)
        if (outcome.attempts[index]?.kind === 'sent') expect(gateway.seen(address)).toBe(1);
    });

    test('that says goodbye to an idle connection costs nothing', async () => {
      const { gateway, sender } = bench;
      gateway.goaway('IdleTimeout');
      const outcome = await sendAll(sender, recipients(200));
      expect(kinds(outcome)).toEqual({ sent: 200 });
      expect(gateway.total).toBe(200);
    });
  });

  test('a peer that says GOAWAY to every connection at once is given up, not hammered', async () => {
    const peer = await startPeer(ok);
    peer.server.on('session', (session) => session.goaway(0, 0));
    const { transport } = openTransport(name, peer);
    const replies = await repliesOf(transport, aBatch(50));
    expect(Object.keys(tally(replies)).every((name) => name.startsWith('not_sent'))).toBe(true);
    expect(peer.sessions.length).toBeLessThan(12);
    await transport.close();
    await peer.close();
  });
});
