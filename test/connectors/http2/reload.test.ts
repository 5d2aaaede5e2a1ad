import { describe, expect, test } from 'vitest';
import { aBatch, repliesOf, transportOfTest } from '../../support/http2/peer.ts';
import {
  isProxyInstalled,
  proxyNames,
  startBackend,
  startReverseProxy,
} from '../../support/http2/reverse-proxy.ts';

const requests = 10_000;
/** Reloads of the proxy during the requests. */
const reloads = 8;

describe.each(proxyNames)('%s that reloads during a push', (proxyName) => {
  describe.skipIf(!isProxyInstalled(proxyName))('', () => {
    test('processes no request twice', async () => {
      const backend = await startBackend(20);
      const proxy = await startReverseProxy(proxyName, backend);
      const { transport, facts } = transportOfTest(proxy);
      let answered = 0;
      const replies = await repliesOf(transport, aBatch(requests), () => {
        answered += 1;
        if (answered % (requests / reloads) === 200) proxy.reload();
        return undefined;
      });
      expect(facts.filter(({ event }) => event === 'goaway').length).toBeGreaterThan(1);
      const processed = await backend.processed();
      expect([...processed.values()].filter(({ count }) => count > 1).length).toBe(0);
      for (const [index, reply] of replies.entries()) {
        expect(reply).not.toMatchObject({ kind: 'not_sent' });
        if (reply.kind !== 'response') continue;
        expect(reply.status).toBe(200);
        expect(processed.has(`/p/${index}`)).toBe(true);
      }
    });
  });
});
