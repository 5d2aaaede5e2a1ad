import type { DeliverResult } from '../sending/task.ts';

/** A batch that was sent: its result, and whether its tries count towards their limit. */
export interface SentBatch {
  result: DeliverResult;
  isCounted: boolean;
}
