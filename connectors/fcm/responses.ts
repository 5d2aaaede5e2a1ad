/**
 * Response table of FCM (protocol/fcm.md#answers): one rule per status and code. A code with
 * several meanings has a rule for each, and the body decides.
 */
import { dayMs } from '../../shared/clock.ts';
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import type { Hint } from '../../shared/domain/reasons.ts';
import {
  type ResponseRule,
  responseTable,
  ruleForPage,
  ruleForStatus,
  waits,
} from '../kit/response-rules.ts';
import { parseObject } from '../kit/values.ts';
import type { TargetForm } from './payload.ts';

export interface FcmRule extends ResponseRule {
  /**
   * Hint if all tokens get this rule: wrong credentials, not invalid tokens. Decided at the end of
   * a send.
   */
  projectHint?: Hint;
}

/** Shortest retry delay of Google's scaling guide (protocol/fcm.md#answers). */
const soonestMs = 10_000;
/** Waits of 429: Google's number, else a minute (protocol/fcm.md#answers). */
const quota = { afterMs: soonestMs, unaskedMs: 60_000 };

export const responseRules: readonly FcmRule[] = [
  // One code, several meanings: an invalid token, a malformed token, an invalid or too large
  // message.
  { code: '400 INVALID_ARGUMENT token', reason: 'invalid_token', reaction: 'dead_token' },
  { code: '400 INVALID_ARGUMENT apns', reason: 'apns_token_dead', reaction: 'dead_token' },
  { code: '400 INVALID_ARGUMENT target', reason: 'invalid_target', reaction: 'fail' },
  { code: '400 INVALID_ARGUMENT message', reason: 'invalid_message', reaction: 'fail_push' },
  { code: '400 INVALID_ARGUMENT size', reason: 'message_too_large', reaction: 'fail_push' },
  { code: '400 INVALID_ARGUMENT', reason: 'invalid_argument', reaction: 'fail' },
  // Google: the token will never be valid again ("manage-tokens").
  { code: '404 UNREGISTERED', reason: 'unregistered', reaction: 'dead_token', isProof: true },
  // The same answer for an id that never registered for messages, and for anything that is no id
  // (protocol/fcm.md#targets).
  {
    code: '404 UNREGISTERED fid',
    reason: 'fid_unregistered',
    reaction: 'dead_token',
    keepForMs: dayMs,
  },
  // A plain 404 means UNREGISTERED for one token, a wrong project for all.
  { code: '404 NOT_FOUND', reason: 'not_found', reaction: 'dead_token', projectHint: 'fcmProject' },
  // The token belongs to another project; for all tokens, the credentials do.
  {
    code: '403 SENDER_ID_MISMATCH',
    reason: 'sender_id_mismatch',
    reaction: 'dead_token',
    projectHint: 'fcmProject',
  },
  {
    code: '403 PERMISSION_DENIED',
    reason: 'permission_denied',
    reaction: 'profile_error',
    hint: 'fcmRole',
  },
  {
    code: '401 UNAUTHENTICATED',
    reason: 'unauthenticated',
    reaction: 'renew_token',
    hint: 'fcmTokenRefused',
  },
  // The Firebase project has no APNs or web push key: neither credentials nor token are invalid.
  { code: '401 THIRD_PARTY_AUTH_ERROR', reason: 'third_party_auth_error', reaction: 'fail' },
  { code: '401 APNS_AUTH_ERROR', reason: 'third_party_auth_error', reaction: 'fail' },
  // Two meanings: too many messages to this device, or too many of the project.
  {
    code: '429 QUOTA_EXCEEDED device',
    reason: 'device_rate_exceeded',
    reaction: 'retry',
    ...quota,
  },
  {
    code: '429 RESOURCE_EXHAUSTED device',
    reason: 'device_rate_exceeded',
    reaction: 'retry',
    ...quota,
  },
  { code: '429 QUOTA_EXCEEDED', reason: 'quota_exceeded', reaction: 'throttle', ...quota },
  { code: '429 RESOURCE_EXHAUSTED', reason: 'quota_exceeded', reaction: 'throttle', ...quota },
  // Google's front end: the client or a server of FCM gave up.
  { code: '499 CANCELLED', reason: 'request_cancelled', reaction: 'retry', afterMs: soonestMs },
  { code: '500 INTERNAL', reason: 'internal', reaction: 'retry', afterMs: soonestMs },
  {
    code: '500 UNSPECIFIED_ERROR',
    reason: 'unspecified_error',
    reaction: 'retry',
    afterMs: soonestMs,
  },
  { code: '503 UNAVAILABLE', reason: 'unavailable', reaction: 'retry', afterMs: soonestMs },
  {
    code: '504 DEADLINE_EXCEEDED',
    reason: 'deadline_exceeded',
    reaction: 'retry',
    afterMs: soonestMs,
  },
];

const ruleFor: (code: string) => FcmRule = responseTable(responseRules);
const known = new Set(responseRules.map(({ code }) => code));

/**
 * Returns the rule of an error response. An unknown code gets the rule of its status, a body that
 * is not FCM's that of a page; neither deletes a token.
 */
export function ruleForResponse(status: number, body: string, form: TargetForm = 'token'): FcmRule {
  const error = errorIn(body);
  const name = codeOf(error);
  const code = `${status} ${name}`;
  const meaning = `${code}${meaningOf(code, error, form)}`;
  if (known.has(meaning)) return ruleFor(meaning);
  const rule = name === '' ? ruleForPage(status) : ruleForStatus(status);
  if (status === 429) return { ...rule, ...quota };
  return waits.has(rule.reaction) ? { ...rule, afterMs: soonestMs } : rule;
}

function errorIn(body: string): JsonObject {
  const error = parseObject(body)?.error;
  return isJsonObject(error) ? error : {};
}

const detailsOf = ({ details }: JsonObject): JsonObject[] =>
  Array.isArray(details) ? details.filter((one): one is JsonObject => isJsonObject(one)) : [];

/**
 * Finds a detail by the end of its type; older servers spell FcmError differently
 * (protocol/fcm.md#answers).
 */
function detail(error: JsonObject, ...types: string[]): JsonObject | undefined {
  return detailsOf(error).find(({ '@type': type }) =>
    types.some((end) => String(type).endsWith(end)),
  );
}

/** Returns FCM's code, else Google's general one. */
function codeOf(error: JsonObject): string {
  const code = detail(error, 'FcmError', 'FcmErrorCode')?.errorCode ?? error.status;
  return typeof code === 'string' ? code : '';
}

/** Returns the suffix that tells the meanings of a code apart. */
function meaningOf(code: string, error: JsonObject, form: TargetForm): string {
  if (code === '400 INVALID_ARGUMENT') return meaningOfInvalid(error);
  if (code === '404 UNREGISTERED') return form === 'fid' ? ' fid' : '';
  if (code === '429 QUOTA_EXCEEDED' || code === '429 RESOURCE_EXHAUSTED')
    return isOfDevice(error) ? ' device' : '';
  return '';
}

const deadMessage = 'The registration token is not a valid FCM registration token';

function meaningOfInvalid(error: JsonObject): string {
  const apns = detail(error, 'ApnsError')?.reason;
  if (apns === 'Unregistered' || apns === 'BadDeviceToken') return ' apns';
  const badRequest = detail(error, 'BadRequest');
  const fields = badRequest ? fieldsOf(badRequest) : undefined;
  // A violation of any field but the token concerns the message.
  if (fields?.some((field) => field !== 'message.token' && field !== 'message.fid'))
    return ' message';
  if (error.message === deadMessage) return ' token';
  if (typeof error.message === 'string' && tooLarge.test(error.message)) return ' size';
  // FCM names no field if the message as a whole is wrong.
  if (fields?.length === 0) return ' message';
  return fields ? ' target' : '';
}

const tooLarge = /\btoo (?:big|large|long)\b/i;

function fieldsOf({ fieldViolations: violations }: JsonObject): Json[] {
  return Array.isArray(violations)
    ? violations.map((one) => (isJsonObject(one) ? (one.field ?? '') : ''))
    : [];
}

/** Whether the exceeded quota is the device's; by default it is the project's. */
function isOfDevice(error: JsonObject): boolean {
  const violations = detail(error, 'QuotaFailure')?.violations;
  const text = Array.isArray(violations) ? JSON.stringify(violations) : String(error.message ?? '');
  return /\bdevice\b/i.test(text);
}
