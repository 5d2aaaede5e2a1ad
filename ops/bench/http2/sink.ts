/**
 * Server for the compared clients, in a separate process that the benchmark starts with an IPC
 * channel. It counts requests and bytes, so that the benchmark can check that all clients sent the
 * same.
 */
import { listen } from '../../sandbox/kit/listen.ts';
import { createUncheckedServer } from '../../sandbox/kit/unchecked.ts';

const counts = { requests: 0, bodyBytes: 0 };

const { authority, url } = await listen({}, (identity) =>
  createUncheckedServer(identity, {
    maxStreams: 1000,
    successes: [],
    onBody(bytes) {
      counts.bodyBytes += bytes;
    },
    onRequest() {
      counts.requests += 1;
    },
  }),
);
process.on('message', () => process.send?.(counts));
process.on('disconnect', () => process.exit(0));
process.send?.({ url, ca: authority.certificate });
