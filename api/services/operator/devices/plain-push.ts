import { newPushObjectId } from '../../../../shared/domain/ids.ts';
import type { PushOrder } from '../../../../shared/domain/pushes/push.ts';

/** Returns a push without content or condition, for the route that a device has by itself. */
export function plainPush(
  nowMs: number,
  prod: 'prod' | 'dev' = 'prod',
): {
  objectId: string;
  pushOrder: PushOrder;
  expiresAt: Date;
  createdAt: Date;
} {
  const pushOrder: PushOrder = {
    data: {},
    target: { kind: 'query', where: {}, channels: null },
    prod,
    topic: null,
    teamId: null,
    flowControl: null,
    notificationChannel: null,
  };
  return { objectId: newPushObjectId(), pushOrder, expiresAt: new Date(nowMs), createdAt: new Date(nowMs) };
}
