import type { JsonObject } from '../json.ts';
import { type Notification, publicWhere } from './record.ts';

/** A push that waits for its time, with the integer that cancels it. */
export interface ScheduledPush {
  id: number;
  push: Notification;
}

/**
 * An entry of `GET /1.1/scheduledPushMessages` (protocol/push.md#scheduled-push-entry): the query
 * shows the condition that the service adds, `through?` is what the push said of `silent`.
 */
export function toScheduledEntry({ id, push }: ScheduledPush): JsonObject {
  const { order } = push;
  return {
    id,
    expire_time: push.pushTime.getTime(),
    push_msg: {
      'through?': typeof order.data.silent === 'boolean' ? order.data.silent : null,
      'app-id': push.appId,
      where: { sort: { createdAt: 1 }, query: { ...publicWhere(order), valid: true } },
      prod: order.prod,
      'api-version': '1.1',
      msg: order.data,
      id: push.objectId,
      notificationId: push.notificationId,
    },
    createdAt: push.createdAt.toISOString(),
  };
}
