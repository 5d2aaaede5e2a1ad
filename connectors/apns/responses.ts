/**
 * Response table of APNs: one rule per status and reason.
 *
 * Source of all rules: protocol/apns.md#answers (Apple's "Handling notification responses from
 * APNs"), unless a rule names another section.
 */

import { hash } from 'node:crypto';
import { longerWait } from '../../shared/backoff.ts';
import { type Hint, httpReason, reasonText } from '../../shared/domain/reasons.ts';
import { isTemporaryStatus } from '../../shared/http/result.ts';
import type { AttemptResult } from '../contract/connector.ts';
import type { RequestResult } from '../http2/transport.ts';
import {
  failed,
  notProcessed,
  profileError,
  refusedAddressHint,
  retry,
  retryAtOnce,
  withCause,
} from '../kit/response-rules.ts';
import { parseObject } from '../kit/values.ts';

/** Reaction to an error response. */
type Reaction =
  /** This recipient is refused for good; others may succeed. */
  | 'fail'
  /** All recipients of this push would be refused alike: the rest is not sent. */
  | 'fail_push'
  /** All recipients with this topic would be refused alike. */
  | 'fail_topic'
  /** The gateway says that this token is invalid. */
  | 'dead_token'
  | 'retry'
  /** Another try on another connection. */
  | 'retry_elsewhere'
  /** A new provider token and a new connection, once; then `profile_error`. */
  | 'renew_token'
  /** A new connection, once; then `retry`. */
  | 'renew_connection'
  /** This key pauses, without a new provider token. */
  | 'pause'
  /** Credentials or configuration are wrong. */
  | 'profile_error';

interface ResponseRule {
  status: number;
  reason: string;
  reaction: Reaction;
  /** Hint to the operator. */
  hint?: Hint;
  /**
   * `dead_token`: with a timestamp the answer proves the end of the token
   * (protocol/delivery.md#promise-7).
   */
  isProof?: true;
}

export const responseRules: readonly ResponseRule[] = [
  { status: 400, reason: 'BadCollapseId', reaction: 'fail_push' },
  // Malformed, or of the other environment; APNs closes connections with many of them
  // (protocol/apns.md#connections).
  { status: 400, reason: 'BadDeviceToken', reaction: 'dead_token' },
  { status: 400, reason: 'BadExpirationDate', reaction: 'fail_push' },
  { status: 400, reason: 'BadMessageId', reaction: 'fail' },
  { status: 400, reason: 'BadPriority', reaction: 'fail_push' },
  { status: 400, reason: 'BadTopic', reaction: 'fail_topic', hint: 'apnsTopicRefused' },
  // The token belongs to another app and stays valid (protocol/apns.md#answers, Apple DTS forum
  // 807380).
  { status: 400, reason: 'DeviceTokenNotForTopic', reaction: 'fail' },
  { status: 400, reason: 'DuplicateHeaders', reaction: 'fail_push' },
  { status: 400, reason: 'IdleTimeout', reaction: 'retry_elsewhere' },
  { status: 400, reason: 'InvalidPushType', reaction: 'fail_push' },
  { status: 400, reason: 'MissingDeviceToken', reaction: 'fail' },
  { status: 400, reason: 'MissingTopic', reaction: 'fail_topic', hint: 'apnsTopicMissing' },
  { status: 400, reason: 'PayloadEmpty', reaction: 'fail_push' },
  {
    status: 400,
    reason: 'TopicDisallowed',
    reaction: 'fail_topic',
    hint: 'apnsTopicForbidden',
  },
  {
    status: 403,
    reason: 'BadCertificate',
    reaction: 'profile_error',
    hint: 'apnsCertificateRefused',
  },
  {
    status: 403,
    reason: 'BadCertificateEnvironment',
    reaction: 'profile_error',
    hint: 'apnsCertificateEnvironment',
  },
  {
    status: 403,
    reason: 'ExpiredProviderToken',
    reaction: 'renew_token',
    hint: 'apnsTokenExpired',
  },
  { status: 403, reason: 'Forbidden', reaction: 'profile_error', hint: 'apnsForbidden' },
  {
    status: 403,
    reason: 'InvalidProviderToken',
    reaction: 'renew_token',
    hint: 'apnsTokenRefused',
  },
  {
    status: 403,
    reason: 'MissingProviderToken',
    reaction: 'profile_error',
    hint: 'apnsTokenMissing',
  },
  { status: 403, reason: 'UnrelatedKeyIdInToken', reaction: 'renew_connection' },
  {
    status: 403,
    reason: 'BadEnvironmentKeyIdInToken',
    reaction: 'profile_error',
    hint: 'apnsKeyEnvironment',
  },
  // Live servers spell it this way.
  {
    status: 403,
    reason: 'BadEnvironmentKeyInToken',
    reaction: 'profile_error',
    hint: 'apnsKeyEnvironment',
  },
  { status: 404, reason: 'BadPath', reaction: 'fail' },
  { status: 405, reason: 'MethodNotAllowed', reaction: 'profile_error', hint: 'apnsMalformed' },
  // The timestamp tells since when APNs knows that the token is dead.
  { status: 410, reason: 'Unregistered', reaction: 'dead_token', isProof: true },
  { status: 410, reason: 'ExpiredToken', reaction: 'dead_token', isProof: true },
  { status: 413, reason: 'PayloadTooLarge', reaction: 'fail_push' },
  // protocol/apns.md#provider-tokens: the limit is per connection and sometimes applies to a
  // correct rotation.
  { status: 429, reason: 'TooManyProviderTokenUpdates', reaction: 'pause' },
  // Too many requests for this device only: no global throttle.
  { status: 429, reason: 'TooManyRequests', reaction: 'retry' },
  { status: 500, reason: 'InternalServerError', reaction: 'retry' },
  { status: 503, reason: 'ServiceUnavailable', reaction: 'retry' },
  { status: 503, reason: 'Shutdown', reaction: 'retry_elsewhere' },
];

const byKey = new Map(responseRules.map((rule) => [`${rule.status} ${rule.reason}`, rule]));

/** Error response of APNs with its rule. `reason` is from a bounded set, for a metric label. */
export interface ApnsError extends ResponseRule {
  /** 410 only: since when the token is invalid. */
  invalidSinceMs?: number;
}

/**
 * Returns the rule of an error response. An unknown reason gets a rule by its status, and a body
 * that is not APNs' one for this try only; neither deletes a token.
 */
export function parseError(reply: Extract<RequestResult, { kind: 'response' }>): ApnsError {
  const { status } = reply;
  const error = parse(reply.body);
  const rule = byKey.get(`${status} ${error?.reason}`);
  if (rule)
    return error?.timestamp === undefined ? rule : { ...rule, invalidSinceMs: error.timestamp };
  return { status, reason: httpReason(status), ...byStatus(status, error !== undefined) };
}

function byStatus(status: number, hasOwnBody: boolean): { reaction: Reaction; hint?: Hint } {
  // The page of a proxy or a firewall says nothing about the device or the credentials.
  if (isTemporaryStatus(status) || !hasOwnBody) return { reaction: 'retry' };
  if (status === 401 || status === 403)
    return {
      reaction: 'profile_error',
      hint: { code: 'credentialsStatus', params: { status } },
    };
  return { reaction: 'fail' };
}

/** Parses a body of APNs: JSON with a reason. Undefined for any other body. */
function parse(body: string): { reason: string; timestamp?: number } | undefined {
  const { reason, timestamp } = parseObject(body) ?? {};
  if (typeof reason !== 'string') return undefined;
  return typeof timestamp === 'number' && timestamp > 0 ? { reason, timestamp } : { reason };
}

// Attempt results of APNs requests.

/**
 * Pause of a key after TooManyProviderTokenUpdates (protocol/apns.md#provider-tokens: back off,
 * create no token).
 */
export const pauseMs = 60_000;

/** Returns the final result of an error response. */
export function attemptResult(
  answer: ApnsError,
  retryAfterMs: number | null,
  isOnlyTopic: boolean,
): AttemptResult {
  const {
    status,
    reason,
    hint = { code: 'apnsAnswered', params: { status, reason: reasonText(reason) } },
  } = answer;
  switch (answer.reaction) {
    case 'dead_token':
      return {
        kind: 'invalid_token',
        status,
        reason,
        ...(answer.invalidSinceMs === undefined ? {} : { invalidSinceMs: answer.invalidSinceMs }),
        ...(answer.isProof && answer.invalidSinceMs !== undefined ? { isProof: true } : {}),
      };
    case 'fail':
    case 'fail_push':
      return failed(status, reason);
    case 'fail_topic':
      // Other topics may succeed, and each installation names its own topic.
      return isOnlyTopic ? profileError(status, reason, hint) : failed(status, reason);
    case 'retry':
    case 'renew_connection':
      return retry(status, reason, retryAfterMs);
    case 'retry_elsewhere':
      return retryAfterMs ? retry(status, reason, retryAfterMs) : retryAtOnce(status, reason);
    case 'pause':
      return retry(status, reason, longerWait(pauseMs, retryAfterMs));
    case 'renew_token':
    case 'profile_error':
      return profileError(status, reason, hint);
  }
}

/** Returns the result of a request without a response. */
export function unansweredResult(
  reply: Exclude<RequestResult, { kind: 'response' }>,
  isRepeatHidden: boolean,
): AttemptResult {
  if (reply.kind === 'unknown') return { kind: 'unknown', reason: reply.reason, isRepeatHidden };
  if (reply.reason === 'certificate_refused')
    return withCause(profileError(0, reply.reason, 'certificateRefused'), reply.cause);
  if (reply.reason === 'address_refused')
    return withCause(profileError(0, reply.reason, refusedAddressHint), reply.cause);
  return withCause(notProcessed(reply.reason, reply.afterMs), reply.cause);
}

/** Digits of the last group of a UUID. */
const nodeDigits = 12;

/**
 * Returns the beginning of the `apns-id` of all recipients of a push: a lower-case UUID, the same
 * at every attempt, so that Apple's logs show repeats (protocol/apns.md#request,
 * protocol/apns.md#repeats). Version 8 of RFC 9562: a digest of the push, then the internal id of
 * the recipient in decimal digits.
 */
export function apnsIdPrefix(objectId: string): string {
  const hex = hash('sha1', objectId, 'hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-`;
}

/** Returns the rest of an `apns-id`, from the internal id of the recipient. */
export const apnsIdEnd = (recipientId: string): string =>
  recipientId.padStart(nodeDigits, '0').slice(-nodeDigits);
