import type { ConnectTarget } from '../connect.ts';
import type { ConnectionListener } from '../pool.ts';
import type { TransportReason, TransportTiming } from '../transport.ts';
import type { Exchange } from './exchange.ts';

/** Callbacks of a connection to its transport. */
export interface ConnectionOwner<C> extends ConnectionListener<C> {
  onResponse(connection: C, exchange: Exchange): void;
  onUnprocessed(exchange: Exchange, reason: TransportReason): void;
  onUnknown(exchange: Exchange, reason: TransportReason): void;
}

export interface ConnectionOptions {
  target: ConnectTarget;
  firstStreams: number;
  streamsPerConnection: number;
  timing: TransportTiming;
  monotonicMs(): number;
}
