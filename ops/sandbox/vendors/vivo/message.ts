/** Rules of vivo for a message (protocol/vivo.md#message), written independently: the sandbox shares none with the connector. */
import { isJsonObject, type Json, type JsonObject } from '../../../../shared/domain/json.ts';

/** What a client did that it must never do, and the code that the gateway answers it with. */
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
  ...['sendOnline', 'foregroundShow', 'addBadge', 'auditReview', 'extra'],
]);

const fault = (code: number, violation: string): Fault => ({ code, violation });
const isInt = (value: Json | undefined, from: number, to: number): boolean =>
  typeof value === 'number' && Number.isInteger(value) && value >= from && value <= to;
const lengthOf = (value: Json | undefined): number =>
  typeof value === 'string' ? [...value].length : value === undefined ? 0 : JSON.stringify(value).length;

/** The first rule that a message breaks; null when it breaks none. `isList`: it is saved for lists. */
export function messageFault(message: JsonObject, isList: boolean): Fault | null {
  const unknownField = Object.keys(message).find(
    (name) => !fields.has(name) || (isList && (name === 'regId' || name === 'profileId')),
  );
  if (unknownField !== undefined) return fault(10304, `an unknown field ${unknownField.slice(0, 40)}`);
  return requestFault(message) ?? textFault(message) ?? numberFault(message) ?? extraFault(message);
}

/** The id of a call. */
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
  const { category, clientCustomMap: map, timeToLive } = message;
  if (!isInt(message.notifyType, 1, 4)) return fault(10054, 'a bad notifyType');
  if (timeToLive !== undefined && !isInt(timeToLive, 60, 86_400)) return fault(10065, 'a bad timeToLive');
  for (const [name, from, to] of [
    ['networkType', -1, 1],
    ['classification', 0, 1],
    ['pushMode', 0, 1],
    ['notifyId', 1, 2_147_483_647],
  ] as const)
    if (message[name] !== undefined && !isInt(message[name], from, to)) return fault(10067, `a bad ${name}`);
  if (category !== undefined && !/^[A-Z][A-Z_]*$/.test(String(category)))
    return fault(10096, 'a bad category');
  if (map === undefined) return null;
  const isTexts = isJsonObject(map) && Object.values(map).every((value) => typeof value === 'string');
  return isTexts && Object.entries(map).flat().join('').length <= 1024
    ? null
    : fault(10095, 'a clientCustomMap that is no map of texts, or one of more than 1024 characters');
}

function extraFault({ extra, pushMode }: JsonObject): Fault | null {
  if (extra === undefined) return null;
  if (!isJsonObject(extra)) return fault(10305, 'extra is no object');
  if (lengthOf(extra.callback) > 128) return fault(10305, 'a callback address of more than 128 characters');
  if (lengthOf(extra['callback.param']) > 64)
    return fault(10306, 'a callback parameter of more than 64 characters');
  if (extra.callback !== undefined && !URL.canParse(String(extra.callback)))
    return fault(10305, 'a callback address that is none');
  return pushMode === 1 && extra.callback !== undefined
    ? fault(10305, 'a callback with a test message')
    : null;
}

/** Texts that vivo takes for somebody's trial (protocol/vivo.md#codes, 10085). */
export const looksLikeTest = ({ content }: JsonObject): boolean =>
  typeof content === 'string' &&
  (/^([0-9]+|[A-Za-z]+|[\p{P}\p{S}]+)$/u.test(content) || /测试|[[\]{}]/.test(content));
