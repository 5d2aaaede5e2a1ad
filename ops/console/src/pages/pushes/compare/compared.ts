import type { PushDetail, PushProgress } from '../../../../../client/operations.ts';

/** Push that is compared. */
export interface Compared {
  push: PushDetail;
  progress: PushProgress;
}
