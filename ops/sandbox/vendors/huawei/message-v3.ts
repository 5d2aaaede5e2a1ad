import { isJsonObject, type Json, type JsonObject } from '../../../../shared/domain/json.ts';
import { isHttpsUrl } from '../../kit/rich-content.ts';
import { categories, type Fault, isText, isWithin } from './message-v1.ts';

const fault = (code: string, msg: string): Fault => ({ code, msg });

/** Supported v3 push types: 0 alert, 1 form, 2 voice, 6 background, 7 live view, 10 call. */
const pushTypes = new Set(['0', '1', '2', '6', '7', '10']);

/** Checks a v3 request without its tokens (protocol/huawei.md#v3-requests). */
export function v3Fault(
  { payload, pushOptions = {}, target, ...more }: JsonObject,
  pushType: string | undefined,
): Fault | null {
  if (pushType === undefined || !pushTypes.has(pushType))
    return fault('80100001', 'Illegal push-type');
  if (!isJsonObject(payload) || !isJsonObject(pushOptions) || !isJsonObject(target))
    return fault('80100003', 'Illegal payload');
  if (Object.keys(more).length > 0) return fault('80100003', 'Illegal payload, unknown member');
  return optionsFault(pushOptions, pushType) ?? payloadFault(payload, pushType);
}

function optionsFault(options: JsonObject, pushType: string): Fault | null {
  const { backgroundMode, biTag, collapseKey, receiptId, testMessage, ttl } = options;
  const unknown = Object.keys(options).find((name) => !optionNames.has(name));
  if (unknown !== undefined) return fault('80100003', `Illegal payload: pushOptions.${unknown}`);
  if (ttl !== undefined && !isWithin(ttl, 0, 1_296_000)) return fault('80100001', 'Illegal ttl');
  if (ttl === 0) return fault('80100004', 'Illegal expire time');
  if (biTag !== undefined && !isBytes(biTag, 64)) return fault('80100001', 'Illegal biTag');
  if (receiptId !== undefined && typeof receiptId !== 'string')
    return fault('80100001', 'Illegal receiptId');
  if (
    collapseKey !== undefined &&
    (!isWithin(collapseKey, -1, 100) || !['0', '2'].includes(pushType))
  )
    return fault('80100013', 'Illegal collapseKey');
  if (backgroundMode !== undefined && (!isWithin(backgroundMode, 0, 1) || pushType !== '6'))
    return fault('80100001', 'Illegal backgroundMode');
  return testMessage === undefined || typeof testMessage === 'boolean'
    ? null
    : fault('80100001', 'Illegal testMessage');
}

const optionNames = new Set([
  ...['testMessage', 'ttl', 'biTag', 'receiptId', 'collapseKey', 'backgroundMode'],
]);
const isBytes = (value: Json, maxBytes: number): boolean =>
  typeof value === 'string' && Buffer.byteLength(value) <= maxBytes;

/** Required members of a payload by push type. */
const needed = new Map<string, readonly string[]>([
  ['1', ['formId', 'version', 'moduleName', 'formName', 'abilityName', 'formData']],
  ['2', ['notification', 'extraData']],
  ['6', ['extraData']],
  ['7', ['activityId', 'operation', 'event']],
  ['10', ['extraData']],
]);

function payloadFault(payload: JsonObject, pushType: string): Fault | null {
  const { badge, extraData, notification } = payload;
  const missing = needed.get(pushType)?.find((name) => payload[name] === undefined);
  if (missing !== undefined) return fault('80100003', `Illegal payload: ${missing}`);
  if (extraData !== undefined && !isText(extraData))
    return fault('80100003', 'Illegal payload: extraData');
  if (pushType === '7') return liveViewFault(payload);
  if (pushType !== '0' && pushType !== '2')
    return notification === undefined ? null : fault('80100003', 'Illegal payload: notification');
  // A payload that contains only a badge is allowed.
  if (notification === undefined && badge !== undefined)
    return isBadge(badge) ? null : fault('80100001', 'Illegal badge');
  if (!isJsonObject(notification)) return fault('80100003', 'Illegal payload: notification');
  return notificationFault(notification, pushType);
}

const notificationNames = new Set([
  ...['category', 'title', 'body', 'clickAction', 'image', 'style', 'bigTitle', 'bigBody'],
  ...['inboxContent', 'notifyId', 'appMessageId', 'profileId', 'badge', 'sound', 'soundDuration'],
  'foregroundShow',
]);
const liveViewEvents = new Set([
  ...['TAXI', 'DELIVERY', 'FLIGHT', 'TRAIN', 'QUEUE', 'PICK_UP', 'SCORE', 'RENT', 'TIMER'],
  ...['WORKOUT', 'NAVIGATION'],
]);
/** Layouts with which a push may create a live view, by event. */
const created = new Map([
  ['FLIGHT', [5]],
  ['TRAIN', [5]],
  ['TAXI', [3, 4, 5, 7]],
]);
const blocks = new Map([
  [3, ['richProgress']],
  [4, ['singleTextBlock']],
  [5, ['firstTextBlock', 'lastTextBlock']],
  [7, ['game']],
]);

/** Checks a live view (protocol/huawei.md#live-views). */
function liveViewFault(payload: JsonObject): Fault | null {
  const { activityData, activityId, event, operation, status, version } = payload;
  const illegal = (name: string) => fault('80100003', `Illegal payload: ${name}`);
  const isCreated = operation === 0;
  if (!isWithin(activityId, -0x80000000, 0x7fffffff)) return illegal('activityId');
  if (!isWithin(operation, 0, 2)) return illegal('operation');
  if (!liveViewEvents.has(String(event))) return illegal('event');
  if (isCreated && !created.has(String(event))) return illegal('event cannot be created by push');
  if (isCreated && status === undefined) return illegal('status');
  if (version !== undefined && !isWithin(version, 0, 0x7fffffff)) return illegal('version');
  if (operation === 2 && activityData === undefined) return null;
  if (!isJsonObject(activityData) || !isJsonObject(activityData.notificationData))
    return illegal('activityData');
  const { keywords, ...shown } = activityData.notificationData;
  const type = Number(shown.type);
  if (!(isCreated ? created.get(String(event)) : [3, 4, 5, 7])?.includes(type))
    return illegal('notificationData.type');
  const block = blocks.get(type)?.find((name) => !isJsonObject(shown[name]));
  if (block !== undefined) return illegal(block);
  if (!isText(shown.contentTitle) || String(shown.contentTitle).length > 1024)
    return illegal('contentTitle');
  if (!Array.isArray(shown.contentText) || !isJsonObject(shown.clickAction))
    return illegal('contentText or clickAction');
  if (shown.keepTime !== undefined && !isWithin(shown.keepTime, 0, 3600))
    return illegal('keepTime');
  const text = JSON.stringify(shown);
  if (status !== undefined && !text.includes('{{status}}')) return illegal('{{status}}');
  const keyword = { FLIGHT: 'flightNo', TRAIN: 'trainNo' }[String(event)];
  if (!isCreated || keyword === undefined) return null;
  const value = isJsonObject(keywords) ? keywords[keyword] : undefined;
  return isText(value) && text.includes(`{{${keyword}}}`) ? null : illegal(`keywords.${keyword}`);
}

function notificationFault(notification: JsonObject, pushType: string): Fault | null {
  const unknown = Object.keys(notification).find((name) => !notificationNames.has(name));
  if (unknown !== undefined) return fault('80100003', `Illegal payload: ${unknown}`);
  if (notification.image !== undefined && !isHttpsUrl(notification.image))
    return fault('80100022', 'The image must pass the image check first');
  const { appMessageId, badge, category, clickAction, notifyId } = notification;
  for (const name of ['category', 'title', 'body'] as const)
    if (!isText(notification[name])) return fault('80100003', `Illegal payload: ${name}`);
  if (
    !(categories.has(String(category)) || category === 'MISS_CALL') ||
    (category === 'PLAY_VOICE') !== (pushType === '2')
  )
    return fault('80100003', 'Illegal payload: category');
  if (!isJsonObject(clickAction) || ![0, 1, 3].includes(Number(clickAction.actionType)))
    return fault('80100003', 'Illegal payload: clickAction');
  if (clickAction.data !== undefined && !isJsonObject(clickAction.data))
    return fault('80100003', 'Illegal payload: clickAction.data');
  if (notifyId !== undefined && !isWithin(notifyId, -1, 0x7fffffff))
    return fault('80100001', 'Illegal notifyId');
  if (appMessageId !== undefined && !/^[\w+/=\- ]{1,64}$/.test(String(appMessageId)))
    return fault('80100001', 'Illegal appMessageId');
  return badge === undefined || isBadge(badge) ? null : fault('80100001', 'Illegal badge');
}

const isBadge = (badge: unknown): boolean =>
  isJsonObject(badge) &&
  badge.class === undefined &&
  (badge.addNum === undefined || isWithin(badge.addNum, 1, 99)) &&
  (badge.setNum === undefined || isWithin(badge.setNum, 0, 99));
