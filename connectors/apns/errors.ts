/**
 * Response table of APNs: one rule per status and reason.
 *
 * Source of all rules: protocol/apns.md#answers (Apple's "Handling notification responses from APNs"), unless a rule names
 * another section.
 */
import { type Hint, httpReason } from '../../shared/domain/reasons.ts';
import { isTemporaryStatus } from '../../shared/http/result.ts';
import type { RequestResult } from '../http2/transport.ts';
import { parseObject } from '../kit/json.ts';

/** Reaction to an error response. */
export type Reaction =
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

export interface ResponseRule {
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
  // Malformed, or of the other environment; APNs closes connections with many of them (protocol/apns.md#connections).
  { status: 400, reason: 'BadDeviceToken', reaction: 'dead_token' },
  { status: 400, reason: 'BadExpirationDate', reaction: 'fail_push' },
  { status: 400, reason: 'BadMessageId', reaction: 'fail' },
  { status: 400, reason: 'BadPriority', reaction: 'fail_push' },
  { status: 400, reason: 'BadTopic', reaction: 'fail_topic', hint: 'apnsTopicRefused' },
  // The token belongs to another app and stays valid (protocol/apns.md#answers, Apple DTS forum 807380).
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
  { status: 403, reason: 'BadCertificate', reaction: 'profile_error', hint: 'apnsCertificateRefused' },
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
  { status: 403, reason: 'BadEnvironmentKeyInToken', reaction: 'profile_error', hint: 'apnsKeyEnvironment' },
  { status: 404, reason: 'BadPath', reaction: 'fail' },
  { status: 405, reason: 'MethodNotAllowed', reaction: 'profile_error', hint: 'apnsMalformed' },
  // The timestamp tells since when APNs knows that the token is dead.
  { status: 410, reason: 'Unregistered', reaction: 'dead_token', isProof: true },
  { status: 410, reason: 'ExpiredToken', reaction: 'dead_token', isProof: true },
  { status: 413, reason: 'PayloadTooLarge', reaction: 'fail_push' },
  // protocol/apns.md#provider-tokens: the limit is per connection and sometimes applies to a correct rotation.
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
  if (rule) return error?.timestamp === undefined ? rule : { ...rule, invalidSinceMs: error.timestamp };
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
