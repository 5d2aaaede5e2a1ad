import { createServer, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { type ChannelLimits, channelLimits } from '../../../api/channel/limits.ts';
import { Channel } from '../../../api/channel/server.ts';
import { systemClock } from '../../../shared/clock.ts';
import { Vault } from '../../../shared/crypto.ts';
import { AppCache } from '../../../shared/db/app-cache.ts';
import { Listener } from '../../../shared/db/listener.ts';
import { Database } from '../../../shared/db/pool.ts';
import { createMetrics, type Metrics } from '../../../shared/metrics.ts';
import { silentLog, testConfig } from '../../support/api.ts';

export interface BareChannel {
  url: string;
  metrics: Metrics;
  /** Server sockets of all connections. */
  sockets: Socket[];
  close(): Promise<void>;
}

/** Starts the channel on a plain HTTP server, with limits that are short enough for a test. */
export async function startBareChannel(
  databaseUrl: string,
  limits: Partial<ChannelLimits>,
): Promise<BareChannel> {
  const db = new Database({ url: databaseUrl, applicationName: 'bare channel' });
  const listener = new Listener(databaseUrl, silentLog);
  await listener.start();
  const metrics = createMetrics();
  const appCache = new AppCache(db, new Vault(testConfig(databaseUrl).secrets), systemClock);
  const server = createServer();
  const sockets: Socket[] = [];
  server.on('connection', (socket) => sockets.push(socket));
  const ipAddressOf = (request: IncomingMessage) => request.socket.remoteAddress ?? '';
  const deps = { db, appCache, listener, metrics, clock: systemClock, log: silentLog, ipAddressOf };
  const channel = new Channel(server, deps, { ...channelLimits, ...limits });
  await channel.start();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return {
    url: `ws://127.0.0.1:${address.port}/1.1/channel`,
    metrics,
    sockets,
    async close() {
      await channel.close();
      server.close();
      await listener.close();
      await db.close();
    },
  };
}
