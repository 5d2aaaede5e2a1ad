/**
 * Server for the compared clients. It counts requests, to check that all clients sent the same. Runs in its own process,
 * started by the benchmark with an IPC channel.
 */
import { startQuickPeer } from './quick-peer.ts';

const maxStreams = 1000;
const counts = { requests: 0, bodyBytes: 0 };

const { url, ca } = await startQuickPeer({ maxStreams }, () => ({
  onBody(size) {
    counts.bodyBytes += size;
  },
  onRequest() {
    counts.requests += 1;
  },
}));
process.on('message', () => process.send?.(counts));
process.on('disconnect', () => process.exit(0));
process.send?.({ url, ca });
