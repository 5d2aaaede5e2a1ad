import { describe, expect, test } from 'vitest';
import { aBatch, repliesOf, tally, transportOfTest } from '../../support/http2/peer.ts';
import {
  isProxyInstalled,
  proxyNames,
  startBackend,
  startReverseProxy,
} from '../../support/http2/reverse-proxy.ts';

const megabyte = 1_000_000;
const count = 40;
const template = { pathPrefix: '/p/', headers: {}, body: Buffer.alloc(megabyte, 'x') };

describe.each(proxyNames)('bodies of a megabyte to %s', (proxyName) => {
  describe.skipIf(!isProxyInstalled(proxyName))('', () => {
    test('arrive whole over one connection', async () => {
      const backend = await startBackend();
      const proxy = await startReverseProxy(proxyName, backend);
      const { transport, facts } = transportOfTest(
        proxy,
        { maxConnections: 1 },
        { requestMs: 60_000 },
      );
      const replies = await repliesOf(transport, aBatch(count, { template }));
      expect(facts.map(({ event, detail }) => `${event} ${detail}`.trim())).toEqual([
        'connected',
        'round_trip',
      ]);
      expect(tally(replies)).toEqual({ 'response 200': count });
      for (const seen of (await backend.processed()).values())
        expect(seen).toEqual({ count: 1, bytes: megabyte });
    });
  });
});
