import { isJsonObject, type JsonObject } from '../../../../shared/domain/json.ts';
import { type Fault, isText, isWithin } from './message-v1.ts';

const fault = (code: string, msg: string): Fault => ({ code, msg });

/** Supported v3 push types: 0 alert, 1 form, 2 voice, 6 background, 7 live view, 10 call. */
const pushTypes = new Set(['0', '1', '2', '6', '7', '10']);

/** Checks a v3 request without its tokens (protocol/huawei.md#v3-requests). */
export function v3Fault(
  { payload, pushOptions = {}, target, ...more }: JsonObject,
  pushType: string | undefined,
): Fault | null {
  if (pushType === undefined || !pushTypes.has(pushType)) return fault('80100001', 'Illegal push-type');
  if (!isJsonObject(payload) || !isJsonObject(pushOptions) || !isJsonObject(target))
    return fault('80100003', 'Illegal payload');
  if (Object.keys(more).length > 0) return fault('80100003', 'Illegal payload, unknown member');
  return optionsFault(pushOptions) ?? payloadFault(payload, pushType);
}

function optionsFault({ biTag, testMessage, ttl }: JsonObject): Fault | null {
  if (ttl !== undefined && !isWithin(ttl, 0, 1_296_000)) return fault('80100001', 'Illegal ttl');
  if (ttl === 0) return fault('80100004', 'Illegal expire time');
  if (biTag !== undefined && typeof biTag !== 'string') return fault('80100001', 'Illegal biTag');
  return testMessage === undefined || typeof testMessage === 'boolean'
    ? null
    : fault('80100001', 'Illegal testMessage');
}

function payloadFault({ extraData, notification }: JsonObject, pushType: string): Fault | null {
  if (pushType === '6')
    return isText(extraData) && notification === undefined
      ? null
      : fault('80100003', 'Illegal payload: extraData');
  if (pushType !== '0') return null;
  if (!isJsonObject(notification)) return fault('80100003', 'Illegal payload: notification');
  const { badge, clickAction, notifyId } = notification;
  for (const name of ['category', 'title', 'body'] as const)
    if (!isText(notification[name])) return fault('80100003', `Illegal payload: ${name}`);
  if (!isJsonObject(clickAction) || !isWithin(clickAction.actionType, 0, 1))
    return fault('80100003', 'Illegal payload: clickAction');
  if (clickAction.data !== undefined && !isJsonObject(clickAction.data))
    return fault('80100003', 'Illegal payload: clickAction.data');
  if (notifyId !== undefined && !isWithin(notifyId, 0, 0x7fffffff))
    return fault('80100001', 'Illegal notifyId');
  return badge === undefined || isBadge(badge) ? null : fault('80100001', 'Illegal badge');
}

const isBadge = (badge: unknown): boolean =>
  isJsonObject(badge) &&
  (badge.addNum === undefined || isWithin(badge.addNum, 1, 99)) &&
  (badge.setNum === undefined || isWithin(badge.setNum, 0, 99));
