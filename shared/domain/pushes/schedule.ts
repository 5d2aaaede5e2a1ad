import type { JsonObject } from '../json.ts';
import { flagIn } from '../plain-values.ts';
import { type Push, publicWhere } from './record.ts';

/** Scheduled push with the integer id that is used to cancel it. */
export interface ScheduledPush {
  id: number;
  push: Push;
}

/**
 * Returns an entry of `GET /1.1/scheduledPushMessages` (protocol/push.md#scheduled-push-entry).
 * `query` includes the condition that the service adds. `through?` is the value of `silent`.
 */
export function toScheduledEntry({ id, push }: ScheduledPush): JsonObject {
  const { pushOrder } = push;
  return {
    id,
    expire_time: push.pushTime.getTime(),
    push_msg: {
      'through?': flagIn(pushOrder.data.silent) ?? null,
      'app-id': push.appId,
      where: { sort: { createdAt: 1 }, query: { ...publicWhere(pushOrder), valid: true } },
      prod: pushOrder.prod,
      'api-version': '1.1',
      msg: pushOrder.data,
      id: push.objectId,
      notificationId: push.notificationId,
    },
    createdAt: push.createdAt.toISOString(),
  };
}
