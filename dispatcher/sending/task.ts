import type { HealthSample } from '../../shared/breaker.ts';
import type { GatewayMessage } from '../../shared/db/tables/gateways/messages.ts';
import type { RecipientFailure } from '../../shared/db/tables/pushes/batches.ts';
import type { ConnectorId } from '../../shared/domain/labels.ts';
import type { DeliverJob } from '../../shared/queue/jobs.ts';

/** What the main thread and the worker threads say to each other. Plain data: it is cloned. */

/** Handed to every thread when it starts. */
export interface ThreadData {
  databaseUrl: string;
  /** Keys of CARILLON_SECRET, base64. */
  secrets: string[];
  publicUrl: string;
  logLevel: string;
  /** One Int32: becomes 1 when the dispatcher stops; threads then send no more. */
  stopFlag: SharedArrayBuffer;
  /** Counters of `interrupts.ts`: how often each push was stopped. */
  interrupts: SharedArrayBuffer;
}

/** When a batch of a paced push is to be sent: spread evenly over this time (epoch milliseconds). */
export interface SendSlot {
  startAtMs: number;
  durationMs: number;
}

/** One batch for a thread; with `slice`, so many of its open recipients only; with `slot`, at its pace. */
export type DeliverTask = DeliverJob & {
  slice?: number | undefined;
  slot?: SendSlot | undefined;
  /** The memory of a `InFlightBatch`; absent where nobody watches. */
  progressMemory?: SharedArrayBuffer | undefined;
};

/** Why a try did not succeed. */
export interface Why {
  status: number;
  reason: string;
}

/** Recipients that are to be tried again, in a batch of their own. */
export interface RetryGroup {
  /** Places in the batch, and for each its installation and the reason. */
  indexes: number[];
  recipients: number[];
  why: Why[];
  /** The gateway got the request: such tries are bounded. */
  isReached: boolean;
  /** The last try got no answer: these may get the message twice. */
  isRepeat: boolean;
  badges: (number | null)[] | null;
  /** What the gateway asked for; null leaves it to the dispatcher. */
  afterMs: number | null;
}

/** Answers of a gateway, counted. */
export interface CallCount {
  connector: ConnectorId;
  status: number;
  reason: string;
  count: number;
}

export interface DeliverResult {
  connector: ConnectorId;
  profile: string;
  attempt: number;
  /** One byte per recipient; 0 where the stop came first. */
  settled: Uint8Array;
  /** Recipients that had moved to retry batches before this try. */
  movedCount: number;
  failures: RecipientFailure[];
  /** The push was paused or cancelled meanwhile, or the slot was missed: the gates are to be asked again. */
  isInterrupted: boolean;
  retries: RetryGroup[];
  /** Only a slice of the batch was sent: the rest is open. */
  isSlice: boolean;
  /** What this batch showed of its gateway. */
  health: HealthSample;
  /** Why the gateway could not be asked, for people (`troubleOf`); null when all was answered. */
  trouble: string | null;
  /** Why this profile was given up, or null. */
  halt: string | null;
  calls: CallCount[];
  /** What the gateway called the messages it took; not all of them where each device's has a name of its own. */
  messages: GatewayMessage[];
  callSeconds: { connector: ConnectorId; seconds: number[] }[];
}
