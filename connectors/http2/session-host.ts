import type { Clock } from '../../shared/clock.ts';
import type { ActiveBatch } from './requests/active-batch.ts';
import type { TransportReason } from './transport.ts';

/** Callbacks of a session to its connection. */
export interface Http2SessionHost {
  readonly clock: Clock;
  /** SETTINGS arrived, the first or further ones. */
  onSettings(): void;
  onRoundTrip(seconds: number): void;
  /** Bytes arrived. */
  onRead(): void;
  /** Frames may have freed capacity, or the socket drained. */
  onCapacity(): void;
  onResponse(status: number, seconds: number): void;
  drain(): void;
  onUnprocessed(batch: ActiveBatch, index: number, reason: TransportReason): void;
  onUnknown(batch: ActiveBatch, index: number, reason: TransportReason, seconds: number): void;
  onGoaway(detail: string, code: number): void;
  /** RST_STREAM with ENHANCE_YOUR_CALM arrived. */
  onCalm(): void;
  /** The peer violated the protocol; GOAWAY is sent and the socket closes. */
  onConnectionError(code: number): void;
}
