import type { AttemptResult } from '../contract/connector.ts';

/** Result of a failed store: always a retry, since repeated messages are skipped. */
export const enqueueFailed: AttemptResult = {
  kind: 'retry',
  status: 0,
  reason: 'mailbox unavailable',
  afterMs: null,
};

/** Result when the process stops before the store. */
export const stopping: AttemptResult = { kind: 'retry', status: 0, reason: 'stopping', afterMs: 0 };

/** Returns the permanent failure of content that this type of device cannot take. */
export function unrenderable(error: string): AttemptResult {
  return { kind: 'rejected', outcome: 'failed', status: 400, reason: error };
}
