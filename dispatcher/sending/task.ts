/**
 * Messages between the main thread and the worker threads. They are cloned, so they contain only
 * plain data.
 */
import { z } from 'zod';
import type { HealthSample } from '../../shared/breaker.ts';
import type { Batch } from '../../shared/db/tables/batches.ts';
import type { RecipientFailure } from '../../shared/db/tables/push-failures.ts';
import type { GatewayMessage } from '../../shared/db/tables/receipts.ts';
import type { ConnectorId } from '../../shared/domain/labels.ts';
import type { RecipientStates } from '../../shared/domain/outcome.ts';
import type { OpenPush } from '../../shared/domain/pushes/record.ts';
import type { MetricValues } from '../../shared/metrics.ts';
import type { DurationCounts } from '../../shared/process/operation-metrics.ts';
import type { DeliverJob } from '../../shared/queue/jobs.ts';

/** Data that every thread gets when it starts. */
export const threadData = z.object({
  databaseUrl: z.string(),
  pooler: z.enum(['none', 'transaction']),
  /** Database connections of one thread. Its batches share them to load and to checkpoint. */
  connections: z.number(),
  /** Keys of CARILLON_SECRET, base64. */
  secrets: z.array(z.string()),
  publicUrl: z.string(),
  /** CARILLON_PRIVATE_HOSTS. */
  privateHosts: z.string(),
  /** WEBPUSH_HOSTS. */
  pushHosts: z.string(),
  logLevel: z.string(),
  /** One Int32, which becomes 1 when the dispatcher stops. Threads stop sending then. */
  stopFlag: z.instanceof(SharedArrayBuffer),
  /** Interrupt counters (`shared-memory.ts`). */
  interrupts: z.instanceof(SharedArrayBuffer),
});

export type ThreadData = z.infer<typeof threadData>;

/** Time slot of a batch (epoch ms). Its requests are spread evenly over the slot. */
export interface SendSlot {
  startAtMs: number;
  durationMs: number;
}

/** A push that the main thread has read, so that the thread need not read it. */
export interface PlannedPush {
  push: OpenPush;
  /** Interrupt count of the push, read before the state of the push. */
  interruptCount: number;
}

/** One batch for a thread. */
export type DeliverTask = DeliverJob & {
  connector: ConnectorId;
  /** For a probe: number of open recipients to send to. Absent: all of them. */
  probeSize?: number | undefined;
  slot?: SendSlot | undefined;
  /** Memory of an `InFlightBatch`. Absent if the batch is not watched. */
  progressMemory?: SharedArrayBuffer | undefined;
  /** Number of all recipients of the batch. */
  size: number;
  /** The push. If absent, the thread reads it. */
  plannedPush?: PlannedPush | undefined;
};

/** What a thread reports for a scrape. */
export interface ThreadReport {
  thread: number;
  values: MetricValues;
  /** Heap of the thread, in bytes. */
  heap: { used: number; limit: number };
}

/** Cause of a try without success. */
export interface Why {
  status: number;
  reason: string;
}

/** Recipients that are retried at the same time, in one retry batch. */
export interface RetryGroup {
  /**
   * Indexes in the batch. `recipients` and `why` contain the installation and the cause for each
   * index.
   */
  indexes: number[];
  recipients: number[];
  why: Why[];
  /** True if the request reached the gateway. Such tries count towards their limit. */
  isReached: boolean;
  /** True if the last request got no answer. These recipients may get the message twice. */
  isRepeat: boolean;
  badges: (number | null)[] | null;
  /**
   * Minimum wait in ms; null if the gateway requested none. 0 if the gateway did not cause the
   * retry: then the first retry is immediate.
   */
  afterMs: number | null;
}

/** Number of equal answers of a gateway. */
export interface CallCount {
  status: number;
  /** Text of the reason, as used in metric labels. */
  reason: string;
  count: number;
}

/** Result of one batch. */
export interface DeliverResult {
  connector: ConnectorId;
  profile: string;
  /** State of each recipient. Open recipients were not sent to. */
  states: RecipientStates;
  /** Recipients that had moved to retry batches before this delivery. */
  retriedCount: number;
  failures: RecipientFailure[];
  sentBy: Batch['sentBy'];
  retries: RetryGroup[];
  /**
   * True if the push was paused or cancelled while its batch was sent, or if the time slot was
   * missed. The gates decide again then.
   */
  isInterrupted: boolean;
  /** True if a probe left recipients of the batch unsent. */
  hasUnsent: boolean;
  health: HealthSample;
  /** Why the gateway did not answer, for the operator; null if it answered every request. */
  failureReason: string | null;
  /** Why no push can be sent with this profile; null if no answer says so. */
  profileError: string | null;
  /** Message ids that the gateway returned, up to a limit. */
  messages: GatewayMessage[];
  calls: CallCount[];
  durations: DurationCounts;
}

/**
 * A result as a thread returns it. Cloning drops class instances, so it contains the bytes of the
 * states.
 */
export type ThreadResult = Omit<DeliverResult, 'states'> & { stateBytes: Uint8Array<ArrayBuffer> };
