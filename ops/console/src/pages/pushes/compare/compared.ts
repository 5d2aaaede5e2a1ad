import type { PushDetail, PushProgress } from '../../../../../../api/replies/admin/types.ts';

/** Push that is compared. */
export interface Compared {
  push: PushDetail;
  progress: PushProgress;
}
