import type { AttemptResult } from '../contract/connector.ts';

/**
 * Our own channel has no gateway that could refuse: it writes to our database, or it does not.
 */

/** The letters could not be stored; storing them again hides a repeat, so it is always worth another try. */
export const enqueueFailed: AttemptResult = {
  kind: 'retry',
  status: 0,
  reason: 'mailbox unavailable',
  afterMs: null,
};

/** Nothing was stored, since the process stops. */
export const stopping: AttemptResult = { kind: 'retry', status: 0, reason: 'stopping', afterMs: 0 };

/** The content does not fit this kind of device: it will not fit later either. */
export function unfit(problem: string): AttemptResult {
  return { kind: 'rejected', outcome: 'failed', status: 400, reason: problem };
}
