/**
 * Messages between the main thread and the worker threads. They are cloned, so they hold plain data
 * only.
 */
import type { HealthSample } from '../../shared/breaker.ts';
import type { Pooler } from '../../shared/db/limits/pooler.ts';
import type { RecipientFailure } from '../../shared/db/tables/push-failures.ts';
import type { GatewayMessage } from '../../shared/db/tables/receipts.ts';
import type { RecentProfile } from '../../shared/db/tables/recipients.ts';
import type { ConnectorId } from '../../shared/domain/labels.ts';
import type { RecipientStates } from '../../shared/domain/outcome.ts';
import type { Push } from '../../shared/domain/pushes/record.ts';
import type { MetricValues } from '../../shared/metrics.ts';
import type { DurationCounts } from '../../shared/process/operation-metrics.ts';
import type { DeliverJob } from '../../shared/queue/jobs.ts';

/** Data that every thread gets when it starts. */
export interface ThreadData {
  databaseUrl: string;
  pooler: Pooler;
  /** Database connections of one thread; its batches load and checkpoint in turns. */
  connections: number;
  /** Keys of CARILLON_SECRET, base64. */
  secrets: string[];
  publicUrl: string;
  /** CARILLON_PRIVATE_HOSTS. */
  privateHosts: string;
  logLevel: string;
  /** One Int32: 1 when the dispatcher stops; threads then send no more. */
  stopFlag: SharedArrayBuffer;
  /** Counters of `shared-memory.ts`, one per push. */
  interrupts: SharedArrayBuffer;
}

/** Time slot of a batch (epoch milliseconds), over which its requests are spread evenly. */
export interface SendSlot {
  startAtMs: number;
  durationMs: number;
}

/** Push that the main thread has read, so that the thread does not. */
export interface KnownPush {
  push: Push;
  /** Interrupts of the push before its state was read. */
  interruptCount: number;
}

/** One batch for a thread. */
export type DeliverTask = DeliverJob & {
  connector: ConnectorId;
  /** Number of its open recipients to send to, for a probe; absent: all. */
  probeSize?: number | undefined;
  slot?: SendSlot | undefined;
  /** Memory of an `InFlightBatch`; absent where the batch is not watched. */
  progressMemory?: SharedArrayBuffer | undefined;
  /** Number of all its recipients. */
  size: number;
  /** Absent: the thread reads the push. */
  known?: KnownPush | undefined;
};

/** Preparation of a thread for its first batch. */
export interface WarmUpTask {
  /** Profiles whose gateways are connected to. */
  profiles: RecentProfile[];
}

/** What a thread reports for a scrape. */
export interface ThreadReport {
  values: MetricValues;
  /** Heap of the thread, in bytes. */
  heap: { used: number; limit: number };
}

/** Cause of a try without success. */
export interface Why {
  status: number;
  reason: string;
}

/** Recipients that are tried again at the same time, in a batch of their own. */
export interface RetryGroup {
  /** Places in the batch, and for each place its installation and cause. */
  indexes: number[];
  recipients: number[];
  why: Why[];
  /** Whether the gateway got the request: such tries are bounded. */
  isReached: boolean;
  /** Whether the last request got no answer: these recipients may get the message twice. */
  isRepeat: boolean;
  badges: (number | null)[] | null;
  /**
   * Shortest wait, null without one; 0: the cause was our own, and the first retry is immediate.
   */
  afterMs: number | null;
}

/** Number of equal answers of a gateway. */
export interface CallCount {
  status: number;
  /** Text of the reason, a metric label. */
  reason: string;
  count: number;
}

/** Result of one batch. */
export interface DeliverResult {
  connector: ConnectorId;
  profile: string;
  /** State of each recipient; open ones were not sent to. */
  states: RecipientStates;
  /** Recipients that had moved to retry batches before this try. */
  retriedCount: number;
  failures: RecipientFailure[];
  /**
   * Recipients that were sent to by the form of their token; null where the connector has one form.
   */
  sentBy: Record<string, number> | null;
  retries: RetryGroup[];
  /**
   * Whether the push was paused or cancelled while its batch was sent, or the slot was missed: the
   * gates decide again.
   */
  isInterrupted: boolean;
  /** Whether a probe left recipients of the batch unsent. */
  hasUnsent: boolean;
  health: HealthSample;
  /** Why the gateway did not answer, for the operator; null when it answered every request. */
  trouble: string | null;
  /** Why no push can be sent with this profile; null if no answer says so. */
  profileError: string | null;
  /** The gateway's ids of the messages it took, the first ones. */
  messages: GatewayMessage[];
  calls: CallCount[];
  /** Durations of the requests. */
  durations: DurationCounts;
}

/** A result as a thread returns it: class instances do not survive the clone. */
export type ThreadResult = Omit<DeliverResult, 'states'> & { stateBytes: Uint8Array<ArrayBuffer> };
