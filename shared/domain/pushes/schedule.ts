import type { JsonObject } from '../json.ts';
import { type Push, publicWhere } from './record.ts';

/** A push that waits for its time, with the integer that cancels it. */
export interface ScheduledPush {
  id: number;
  push: Push;
}

/**
 * An entry of `GET /1.1/scheduledPushMessages` (protocol/push.md#scheduled-push-entry): the query
 * shows the condition that the service adds, `through?` is what the push said of `silent`.
 */
export function toScheduledEntry({ id, push }: ScheduledPush): JsonObject {
  const { pushOrder } = push;
  return {
    id,
    expire_time: push.pushTime.getTime(),
    push_msg: {
      'through?': typeof pushOrder.data.silent === 'boolean' ? pushOrder.data.silent : null,
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
