import type { Failure } from '../shared/db/tables/batches.ts';
import type { ConnectorId } from '../shared/domain/labels.ts';

/** What the main thread and the worker threads say to each other. Plain data: it is cloned. */

/** Handed to every thread when it starts. */
export interface ThreadData {
  databaseUrl: string;
  /** Keys of CARILLON_SECRET, base64. */
  secrets: string[];
  logLevel: string;
  /** One Int32: becomes 1 when the dispatcher stops; threads then send no more. */
  stopFlag: SharedArrayBuffer;
}

/** Recipients that are to be tried again, in a batch of their own. */
export interface RetryGroup {
  recipients: number[];
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
  failures: Failure[];
  retries: RetryGroup[];
  /** Why this profile was given up, or null. */
  halt: string | null;
  calls: CallCount[];
  callSeconds: { connector: ConnectorId; seconds: number[] }[];
}
