/**
 * Response table of FCM (protocol/fcm.md#answers), with one rule per status and code. A code with
 * several meanings has a rule for each meaning, and the body decides.
 */
import { dayMs } from '../../shared/clock.ts';
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import type { Hint } from '../../shared/domain/reasons.ts';
import {
  delayingReactions,
  type ResponseRule,
  responseTable,
  ruleForPage,
  ruleForStatus,
} from '../kit/response-rules.ts';
import { parseObject } from '../kit/values.ts';
import type { TargetForm } from './payload.ts';

export interface FcmRule extends ResponseRule {
  /**
   * Hint to use if all tokens get this rule. The credentials are then wrong, not the tokens.
   * Decided at the end of a send.
   */
  projectHint?: Hint;
  /** True if the response leaves open whether FCM took the message. */
  isUnknown?: true;
}

/** Shortest retry delay that Google recommends (protocol/fcm.md#answers). */
const minRetryMs = 10_000;
/** Answers with which Google's front end gives up (protocol/fcm.md#answers). */
const gaveUp = { afterMs: minRetryMs, isUnknown: true } as const;
/** Waits after status 429: the time that Google requests, or a minute (protocol/fcm.md#answers). */
const quota = { afterMs: minRetryMs, defaultWaitMs: 60_000 };

export const responseRules: readonly FcmRule[] = [
  // This code has several meanings: the token is invalid or malformed, or the message is invalid or
  // too large.
  { code: '400 INVALID_ARGUMENT token', reason: 'invalid_token', reaction: 'dead_token' },
  { code: '400 INVALID_ARGUMENT apns', reason: 'apns_token_dead', reaction: 'dead_token' },
  { code: '400 INVALID_ARGUMENT target', reason: 'invalid_target', reaction: 'fail' },
  { code: '400 INVALID_ARGUMENT message', reason: 'invalid_message', reaction: 'fail_push' },
  { code: '400 INVALID_ARGUMENT size', reason: 'message_too_large', reaction: 'fail_push' },
  { code: '400 INVALID_ARGUMENT', reason: 'invalid_argument', reaction: 'fail' },
  // Google's documentation says that the token will never be valid again ("manage-tokens").
  { code: '404 UNREGISTERED', reason: 'unregistered', reaction: 'dead_token', isProof: true },
  // FCM gives the same response for an id that was never registered for messages, and for a value
  // that is no id (protocol/fcm.md#targets).
  {
    code: '404 UNREGISTERED fid',
    reason: 'fid_unregistered',
    reaction: 'dead_token',
    keepForMs: dayMs,
  },
  // A 404 without a code means UNREGISTERED if it concerns one token. If all tokens get it, the
  // project is wrong.
  { code: '404 NOT_FOUND', reason: 'not_found', reaction: 'dead_token', projectHint: 'fcmProject' },
  // The token belongs to another project. If all tokens get this code, the credentials belong to
  // another project.
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
  // The Firebase project has no key for APNs or web push. Credentials and token are valid.
  { code: '401 THIRD_PARTY_AUTH_ERROR', reason: 'third_party_auth_error', reaction: 'fail' },
  { code: '401 APNS_AUTH_ERROR', reason: 'third_party_auth_error', reaction: 'fail' },
  // This code has two meanings: too many messages to this device, or too many messages of the
  // project.
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
  // From Google's front end: the client or an FCM server gave up. FCM may have taken the message.
  { code: '499 CANCELLED', reason: 'request_cancelled', reaction: 'retry', ...gaveUp },
  { code: '500 INTERNAL', reason: 'internal', reaction: 'retry', afterMs: minRetryMs },
  {
    code: '500 UNSPECIFIED_ERROR',
    reason: 'unspecified_error',
    reaction: 'retry',
    afterMs: minRetryMs,
  },
  { code: '503 UNAVAILABLE', reason: 'unavailable', reaction: 'retry', afterMs: minRetryMs },
  {
    code: '504 DEADLINE_EXCEEDED',
    reason: 'deadline_exceeded',
    reaction: 'retry',
    ...gaveUp,
  },
];

const ruleFor: (code: string) => FcmRule = responseTable(responseRules);
const known = new Set(responseRules.map(({ code }) => code));

/**
 * Returns the rule of an error response. An unknown code gets the rule of its status. A body that
 * does not come from FCM is treated like the page of a proxy. Neither rule marks a token as dead.
 */
export function ruleForResponse(status: number, body: string, form: TargetForm = 'token'): FcmRule {
  const error = errorIn(body);
  const name = codeOf(error);
  const code = `${status} ${name}`;
  const meaning = `${code}${meaningOf(code, error, form)}`;
  if (known.has(meaning)) return ruleFor(meaning);
  const rule = name === '' ? ruleForPage(status) : ruleForStatus(status);
  if (status === 429) return { ...rule, ...quota };
  return delayingReactions.has(rule.reaction) ? { ...rule, afterMs: minRetryMs } : rule;
}

function errorIn(body: string): JsonObject {
  const error = parseObject(body)?.error;
  return isJsonObject(error) ? error : {};
}

const detailsOf = ({ details }: JsonObject): JsonObject[] =>
  Array.isArray(details) ? details.filter((one): one is JsonObject => isJsonObject(one)) : [];

/**
 * Finds a detail by the end of its type name. Older servers spell FcmError differently
 * (protocol/fcm.md#answers).
 */
function detail(error: JsonObject, ...types: string[]): JsonObject | undefined {
  return detailsOf(error).find(({ '@type': type }) =>
    types.some((end) => String(type).endsWith(end)),
  );
}

/** Returns FCM's code, or else Google's general code. */
function codeOf(error: JsonObject): string {
  const code = detail(error, 'FcmError', 'FcmErrorCode')?.errorCode ?? error.status;
  return typeof code === 'string' ? code : '';
}

/** Returns the suffix that distinguishes the meanings of a code. */
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
  // If a field other than the token is wrong, the message is invalid.
  if (fields?.some((field) => field !== 'message.token' && field !== 'message.fid'))
    return ' message';
  if (error.message === deadMessage) return ' token';
  if (typeof error.message === 'string' && tooLarge.test(error.message)) return ' size';
  // FCM names no field if the whole message is wrong.
  if (fields?.length === 0) return ' message';
  return fields ? ' target' : '';
}

const tooLarge = /\btoo (?:big|large|long)\b/i;

function fieldsOf({ fieldViolations: violations }: JsonObject): Json[] {
  return Array.isArray(violations)
    ? violations.map((one) => (isJsonObject(one) ? (one.field ?? '') : ''))
    : [];
}

/** True if the quota of the device is exceeded. False if the quota of the project is exceeded. */
function isOfDevice(error: JsonObject): boolean {
  const violations = detail(error, 'QuotaFailure')?.violations;
  const text = Array.isArray(violations) ? JSON.stringify(violations) : String(error.message ?? '');
  return /\bdevice\b/i.test(text);
}
