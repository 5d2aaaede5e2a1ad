/**
 * What FCM answers and what follows from it (protocol/fcm.md#answers): one row per status and code. Where one code has two
 * meanings each has a row of its own, and the body decides.
 */
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import { parseObject } from '../kit/json.ts';
import { type ResponseRule, responseTable, ruleForStatus } from '../kit/response-rules.ts';

export interface FcmRule extends ResponseRule {
  /** Said of every token it is no dead token but wrong credentials: judged when the whole send is known. */
  projectHint?: string;
}

/** Google's scaling guide: never again in less than ten seconds (protocol/fcm.md#answers). */
const soonestMs = 10_000;
/** 429 without Retry-After (protocol/fcm.md#answers). */
const quotaMs = 60_000;

const wrongProject =
  'FCM knows none of the devices: check that the service account is of the project whose app they use.';

export const responseRules: readonly FcmRule[] = [
  // One code, three meanings: a dead token, a token that is none, and a message that is wrong for everybody.
  { code: '400 INVALID_ARGUMENT token', reason: 'invalid_token', reaction: 'dead_token' },
  { code: '400 INVALID_ARGUMENT apns', reason: 'apns_token_dead', reaction: 'dead_token' },
  { code: '400 INVALID_ARGUMENT target', reason: 'invalid_target', reaction: 'fail' },
  { code: '400 INVALID_ARGUMENT message', reason: 'invalid_message', reaction: 'fail_push' },
  { code: '400 INVALID_ARGUMENT', reason: 'invalid_argument', reaction: 'fail' },
  { code: '404 UNREGISTERED', reason: 'unregistered', reaction: 'dead_token' },
  // A bare 404 of one token is as UNREGISTERED; of all, a wrong project.
  { code: '404 NOT_FOUND', reason: 'not_found', reaction: 'dead_token', projectHint: wrongProject },
  // The token belongs to another project; of all tokens, the credentials do.
  {
    code: '403 SENDER_ID_MISMATCH',
    reason: 'sender_id_mismatch',
    reaction: 'dead_token',
    projectHint: wrongProject,
  },
  {
    code: '403 PERMISSION_DENIED',
    reason: 'permission_denied',
    reaction: 'profile_error',
    hint: 'The service account may not send: give it the role, and switch the FCM API on.',
  },
  {
    code: '401 UNAUTHENTICATED',
    reason: 'unauthenticated',
    reaction: 'renew_token',
    hint: 'FCM refuses a fresh access token: check the service account and the clock of this machine.',
  },
  // The Firebase project has no APNs or web push key: says nothing of our credentials, nor of the token.
  { code: '401 THIRD_PARTY_AUTH_ERROR', reason: 'third_party_auth_error', reaction: 'fail' },
  { code: '401 APNS_AUTH_ERROR', reason: 'third_party_auth_error', reaction: 'fail' },
  // Two meanings again: this device gets too many, or the project sends too fast.
  { code: '429 QUOTA_EXCEEDED device', reason: 'device_rate_exceeded', reaction: 'retry', afterMs: quotaMs },
  {
    code: '429 RESOURCE_EXHAUSTED device',
    reason: 'device_rate_exceeded',
    reaction: 'retry',
    afterMs: quotaMs,
  },
  { code: '429 QUOTA_EXCEEDED', reason: 'quota_exceeded', reaction: 'throttle', afterMs: quotaMs },
  { code: '429 RESOURCE_EXHAUSTED', reason: 'quota_exceeded', reaction: 'throttle', afterMs: quotaMs },
  { code: '500 INTERNAL', reason: 'internal', reaction: 'retry', afterMs: soonestMs },
  { code: '500 UNSPECIFIED_ERROR', reason: 'unspecified_error', reaction: 'retry', afterMs: soonestMs },
  { code: '503 UNAVAILABLE', reason: 'unavailable', reaction: 'retry', afterMs: soonestMs },
];

const ruleFor: (code: string) => FcmRule = responseTable(responseRules);
const known = new Set(responseRules.map(({ code }) => code));

/** The row of an answer that is not 200; what is not in the table is judged by its status, and kills no token. */
export function ruleForResponse(status: number, body: string): FcmRule {
  const error = errorIn(body);
  const code = `${status} ${codeOf(error)}`;
  const meaning = `${code}${meaningOf(code, error)}`;
  if (known.has(meaning)) return ruleFor(meaning);
  const rule = ruleForStatus(status);
  if (rule.reaction === 'throttle') return { ...rule, afterMs: status === 429 ? quotaMs : soonestMs };
  return rule.reaction === 'retry' ? { ...rule, afterMs: soonestMs } : rule;
}

function errorIn(body: string): JsonObject {
  const error = parseObject(body)?.error;
  return isJsonObject(error) ? error : {};
}

const detailsOf = ({ details }: JsonObject): JsonObject[] =>
  Array.isArray(details) ? details.filter((one): one is JsonObject => isJsonObject(one)) : [];

/** A detail by the end of its type; older servers spell FcmError differently (protocol/fcm.md#answers). */
function detail(error: JsonObject, ...types: string[]): JsonObject | undefined {
  return detailsOf(error).find(({ '@type': type }) => types.some((end) => String(type).endsWith(end)));
}

/** FCM's own code, else Google's general one. */
function codeOf(error: JsonObject): string {
  const code = detail(error, 'FcmError', 'FcmErrorCode')?.errorCode ?? error.status;
  return typeof code === 'string' ? code : '';
}

/** Which of its meanings a code has here. */
function meaningOf(code: string, error: JsonObject): string {
  if (code === '400 INVALID_ARGUMENT') return meaningOfInvalid(error);
  if (code === '429 QUOTA_EXCEEDED' || code === '429 RESOURCE_EXHAUSTED')
    return isOfDevice(error) ? ' device' : '';
  return '';
}

const deadMessage = 'The registration token is not a valid FCM registration token';

function meaningOfInvalid(error: JsonObject): string {
  const apns = detail(error, 'ApnsError')?.reason;
  if (apns === 'Unregistered' || apns === 'BadDeviceToken') return ' apns';
  const fields = fieldsOf(error);
  // A violation of anything but the token speaks of the message, whatever else is said.
  if (fields.some((field) => field !== 'message.token')) return ' message';
  if (error.message === deadMessage) return ' token';
  return fields.length > 0 ? ' target' : '';
}

function fieldsOf(error: JsonObject): Json[] {
  const violations = detail(error, 'BadRequest')?.fieldViolations;
  return Array.isArray(violations)
    ? violations.map((one) => (isJsonObject(one) ? (one.field ?? '') : ''))
    : [];
}

/** Whether a quota that is used up is the device's; without a word on it, it is the project's. */
function isOfDevice(error: JsonObject): boolean {
  const violations = detail(error, 'QuotaFailure')?.violations;
  const told = Array.isArray(violations) ? JSON.stringify(violations) : String(error.message ?? '');
  return /\bdevice\b/i.test(told);
}
