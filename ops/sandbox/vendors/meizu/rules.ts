/** Meizu's rules for a call (protocol/meizu.md#signature, protocol/meizu.md#message), independent of the connector's code. */
import { createHash } from 'node:crypto';
import { isJsonObject, type Json, type JsonObject } from '../../../../shared/domain/json.ts';

const knownFields = ['appId', 'pushIds', 'messageJson', 'sign', 'restrictedPackageNames'];
const maxTargets = 100;

/** Computes the expected signature of a form, over its unescaped values. */
export function expectedSign(form: URLSearchParams, appSecret: string): string {
  const names = [...form.keys()].filter((name) => name !== 'sign').sort();
  const text = names.map((name) => `${name}=${form.get(name)}`).join('');
  return createHash('md5')
    .update(text + appSecret, 'utf8')
    .digest('hex');
}

export function pushIdsOf(form: URLSearchParams): string[] {
  const text = form.get('pushIds') ?? '';
  return text === '' ? [] : text.split(',');
}

/** Parses the message of a form; null if it is not a JSON object. */
export function messageOf(form: URLSearchParams): JsonObject | null {
  try {
    const value: unknown = JSON.parse(form.get('messageJson') ?? '');
    return isJsonObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** Returns the first rule that a client must never break, described, or null. */
export function violationOf(form: URLSearchParams, message: JsonObject | null): string | null {
  const names = [...form.keys()];
  const unknownField = names.find((name) => !knownFields.includes(name));
  if (unknownField !== undefined) return `an unknown field ${unknownField.slice(0, 40)}`;
  if (new Set(names).size < names.length) return 'a field twice';
  const targets = pushIdsOf(form);
  if (targets.length === 0 || targets.length > maxTargets) return `${targets.length} devices in a request`;
  if (new Set(targets).size < targets.length) return 'a device twice in a request';
  if (message === null) return 'a message that is not a JSON object';
  if (Buffer.byteLength(form.get('messageJson') ?? '') > 5000) return 'a message of more than 5000 bytes';
  return barProblem(message) ?? clickProblem(message) ?? timeProblem(message) ?? extraProblem(message);
}

const partOf = (message: JsonObject, name: string): JsonObject => {
  const part = message[name];
  return isJsonObject(part) ? part : {};
};
const lengthOf = (value: Json | undefined): number =>
  typeof value === 'string' && value.trim() !== '' ? [...value].length : 0;
const isOneOf = (value: Json | undefined, ...values: Json[]): boolean =>
  value === undefined || values.includes(value);

function barProblem(message: JsonObject): string | null {
  const { content, noticeBarType, noticeMsgType, title } = partOf(message, 'noticeBarInfo');
  if (lengthOf(title) < 1 || lengthOf(title) > 32) return `a title of ${lengthOf(title)} characters`;
  if (lengthOf(content) < 1 || lengthOf(content) > 100) return `a content of ${lengthOf(content)} characters`;
  if (!isOneOf(noticeMsgType, 0, 1) || !isOneOf(noticeBarType, 0, 2)) return 'an unknown type of notice';
  const { noticeExpandContent, noticeExpandImgUrl, noticeExpandType } = partOf(message, 'noticeExpandInfo');
  if (!isOneOf(noticeExpandType, 0, 1, 2)) return 'an unknown type of expansion';
  if (noticeExpandType === 1 && lengthOf(noticeExpandContent) === 0) return 'an expansion without its text';
  return noticeExpandType === 2 && lengthOf(noticeExpandImgUrl) === 0
    ? 'an expansion without its image'
    : null;
}

function clickProblem(message: JsonObject): string | null {
  const { activity, clickType, customAttribute, parameters, url } = partOf(message, 'clickTypeInfo');
  if (!isOneOf(clickType, 0, 1, 2)) return `clickType ${JSON.stringify(clickType)}`;
  if (clickType === 1 && lengthOf(activity) === 0) return 'an activity without its name';
  if (clickType === 2 && lengthOf(url) === 0) return 'a URI that is missing';
  if (parameters !== undefined && !isJsonObject(parameters)) return 'parameters that are not an object';
  return typeof customAttribute === 'string' && Buffer.byteLength(customAttribute) > 1000
    ? 'a customAttribute of more than 1000 bytes'
    : null;
}

function timeProblem(message: JsonObject): string | null {
  const { offLine, validTime = 24 } = partOf(message, 'pushTimeInfo');
  if (!isOneOf(offLine, 0, 1)) return 'offLine is neither 0 nor 1';
  if (typeof validTime !== 'number' || !Number.isInteger(validTime) || validTime < 1 || validTime > 72)
    return `a validTime of ${JSON.stringify(validTime)} hours`;
  const { notifyKey } = partOf(message, 'advanceInfo');
  return notifyKey === undefined || (typeof notifyKey === 'string' && /^[0-9A-Za-z_-]{1,8}$/.test(notifyKey))
    ? null
    : 'a bad notifyKey';
}

function extraProblem(message: JsonObject): string | null {
  const { callback, 'callback.param': param, 'callback.type': type } = partOf(message, 'extra');
  if (callback === undefined) return null;
  if (typeof callback !== 'string' || !URL.canParse(callback) || Buffer.byteLength(callback) > 128)
    return 'a URL for receipts that is invalid or has more than 128 bytes';
  if (typeof param === 'string' && Buffer.byteLength(param) > 64)
    return 'a callback.param of more than 64 bytes';
  return isOneOf(type, '1', '2', '3') ? null : 'an unknown callback.type';
}
