/** vivo's rules for a message (protocol/vivo.md#message), independent of the connector's code. */
import { isJsonObject, type Json, type JsonObject } from '../../../../shared/domain/json.ts';

/** Broken rule of a request, and the gateway's code for it. */
export interface Fault {
  code: number;
  violation: string;
}

const fields = new Set([
  ...[
    'appId',
    'regId',
    'notifyType',
    'title',
    'content',
    'timeToLive',
    'skipType',
    'skipContent',
    'category',
  ],
  ...['networkType', 'classification', 'clientCustomMap', 'requestId', 'pushMode', 'notifyId', 'profileId'],
  ...['sendOnline', 'foregroundShow', 'addBadge', 'auditReview', 'liveMessage', 'extra'],
]);

/** Category → its class. */
const categories = new Map([
  ...['IM', 'ACCOUNT', 'TODO', 'DEVICE_REMINDER', 'ORDER', 'SUBSCRIPTION'].map((name) => [name, 1] as const),
  ...['NEWS', 'CONTENT', 'MARKETING', 'SOCIAL'].map((name) => [name, 0] as const),
]);

const fault = (code: number, violation: string): Fault => ({ code, violation });
const isInt = (value: Json | undefined, from: number, to: number): boolean =>
  typeof value === 'number' && Number.isInteger(value) && value >= from && value <= to;
const lengthOf = (value: Json | undefined): number =>
  typeof value === 'string' ? [...value].length : value === undefined ? 0 : JSON.stringify(value).length;

/** Returns the first broken rule of a message, or null. `isList`: the message is saved for lists. */
export function messageFault(message: JsonObject, isList: boolean): Fault | null {
  const unknownField = Object.keys(message).find(
    (name) => !fields.has(name) || (isList && (name === 'regId' || name === 'profileId')),
  );
  if (unknownField !== undefined) return fault(10304, `an unknown field ${unknownField.slice(0, 40)}`);
  return requestFault(message) ?? textFault(message) ?? numberFault(message) ?? extraFault(message);
}

/** Checks the id of a call. */
export function requestFault({ requestId }: JsonObject): Fault | null {
  if (typeof requestId !== 'string' || requestId === '') return fault(10352, 'no requestId');
  return lengthOf(requestId) > 64 ? fault(10353, 'a requestId of more than 64 characters') : null;
}

function textFault({ content, skipContent, skipType, title }: JsonObject): Fault | null {
  if (typeof title !== 'string' || title.trim() === '') return fault(10055, 'no title');
  if (lengthOf(title) > 40) return fault(10056, `a title of ${lengthOf(title)} characters`);
  if (typeof content !== 'string' || content.trim() === '') return fault(10057, 'no content');
  if (lengthOf(content) > 100) return fault(10058, `a content of ${lengthOf(content)} characters`);
  if (!isInt(skipType, 1, 4)) return fault(10059, `skipType is ${String(skipType)}`);
  const isBare = typeof skipContent !== 'string' || skipContent === '';
  if ((skipType === 2 || skipType === 4) && isBare) return fault(10060, 'no skipContent');
  return lengthOf(skipContent) > 1024 ? fault(10060, 'a skipContent of more than 1024 characters') : null;
}

function numberFault(message: JsonObject): Fault | null {
  const { category, classification, clientCustomMap: map, timeToLive } = message;
  if (!isInt(message.notifyType, 1, 4)) return fault(10054, 'a bad notifyType');
  if (timeToLive !== undefined && !isInt(timeToLive, 60, 86_400)) return fault(10065, 'a bad timeToLive');
  for (const [name, from, to] of [
    ['networkType', -1, 1],
    ['classification', 0, 1],
    ['pushMode', 0, 1],
    ['notifyId', 1, 2_147_483_647],
  ] as const)
    if (message[name] !== undefined && !isInt(message[name], from, to)) return fault(10067, `a bad ${name}`);
  const ownClass = categories.get(String(category));
  if (category !== undefined && ownClass === undefined) return fault(10096, 'a bad category');
  if (category !== undefined && classification !== undefined && classification !== ownClass)
    return fault(10097, 'a classification that contradicts the category');
  if (map === undefined) return null;
  const isTexts = isJsonObject(map) && Object.values(map).every((value) => typeof value === 'string');
  return isTexts && Object.entries(map).flat().join('').length <= 1024
    ? null
    : fault(10095, 'a clientCustomMap with other values than texts, or of more than 1024 characters');
}

function extraFault({ extra, pushMode }: JsonObject): Fault | null {
  if (extra === undefined) return null;
  if (!isJsonObject(extra)) return fault(10305, 'extra is not an object');
  if (lengthOf(extra.callback) > 128) return fault(10305, 'a callback URL of more than 128 characters');
  if (lengthOf(extra['callback.param']) > 64)
    return fault(10306, 'a callback parameter of more than 64 characters');
  if (extra.callback !== undefined && !URL.canParse(String(extra.callback)))
    return fault(10305, 'an invalid callback URL');
  return pushMode === 1 && extra.callback !== undefined
    ? fault(10305, 'a callback with a test message')
    : null;
}

/** Whether vivo considers a text to be a test (protocol/vivo.md#codes, 10085). */
export const looksLikeTest = ({ content }: JsonObject): boolean =>
  typeof content === 'string' &&
  (/^([0-9]+|[A-Za-z]+|[\p{P}\p{S}]+)$/u.test(content) || /测试|[[\]{}]/.test(content));
