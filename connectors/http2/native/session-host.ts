import type { Clock } from '../../../shared/clock.ts';
import type { TransportReason } from '../transport.ts';
import type { ActiveBatch } from './requests/active-batch.ts';

/** What a link tells the connection that it belongs to. */
export interface Http2SessionHost {
  readonly clock: Clock;
  /** The peer's SETTINGS came, the first or others. */
  onSettings(): void;
  onRoundTrip(seconds: number): void;
  /** Bytes came. */
  onRead(): void;
  /** What came may have made room, or the socket caught up. */
  onCapacity(): void;
  onResponse(status: number, seconds: number): void;
  drain(): void;
  onUnprocessed(batch: ActiveBatch, index: number, reason: TransportReason): void;
  onUnknown(batch: ActiveBatch, index: number, reason: TransportReason, seconds: number): void;
  onGoaway(detail: string): void;
  /** The peer broke the protocol; it has been told, and the socket closes. */
  onConnectionError(code: number): void;
}
