import type { JsonObject } from '../../shared/domain/json.ts';
import { originalTarget, type PushOrder } from '../../shared/domain/pushes/push.ts';

/** Parts of a push that all recipients share. Built once per push; objects for single device types are not merged yet. */
export interface PushMessage {
  /** Public id of the push record, 16 alphanumerics. */
  objectId: string;
  /** `data` as the caller sent it. */
  data: JsonObject;
  prod: 'dev' | 'prod';
  /** `topic` and `pgw_team_id` of the push body, for installations without their own. */
  topic?: string;
  teamId?: string;
  /** Android notification channel (`_notificationChannel` or, for lists of devices, `channel`). */
  notificationChannel?: string;
  /** Channels the push was addressed to. */
  channels?: string[];
  /** Epoch milliseconds. */
  expiresAtMs: number;
  createdAtMs: number;
}

/** Fields of a push record that make up its message. */
export interface MessageSource {
  objectId: string;
  pushOrder: PushOrder;
  expiresAt: Date;
  createdAt: Date;
}

/** Builds the message of a push. */
export function toPushMessage({ objectId, pushOrder, expiresAt, createdAt }: MessageSource): PushMessage {
  const target = originalTarget(pushOrder);
  const channels = target.kind === 'query' ? target.channels : null;
  return {
    objectId,
    data: pushOrder.data,
    prod: pushOrder.prod,
    ...(pushOrder.topic === null ? {} : { topic: pushOrder.topic }),
    ...(pushOrder.teamId === null ? {} : { teamId: pushOrder.teamId }),
    ...(pushOrder.notificationChannel === null ? {} : { notificationChannel: pushOrder.notificationChannel }),
    ...(channels === null ? {} : { channels }),
    expiresAtMs: expiresAt.getTime(),
    createdAtMs: createdAt.getTime(),
  };
}

/** One device of a batch, loaded by the worker thread that sends to it. */
export interface Recipient {
  /** Place in the batch, the argument of `report`. */
  index: number;
  /** Internal id of the installation. */
  id: string;
  /** Device token, registration id or installation id, by connector (`tokenField`). */
  deviceToken: string;
  deviceType: string;
  /** `vendor` in the installation's spelling: `mi` and `mi-intl` are different regions. */
  vendor?: string | null;
  topic: string | null;
  teamId: string | null;
  /** Value to send when `badge` is `Increment`; counted once per push before the first attempt. */
  badge: number | null;
}
