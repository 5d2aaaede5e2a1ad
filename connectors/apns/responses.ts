/**
 * Response table of APNs: one rule per status and reason. The source is protocol/apns.md#answers
 * (Apple's "Handling notification responses from APNs"), unless a rule names another section.
 */

import { hash } from 'node:crypto';
import { longerWait } from '../../shared/backoff.ts';
import { type Hint, httpReason, reasonText } from '../../shared/domain/reasons.ts';
import { isTemporaryStatus } from '../../shared/http/result.ts';
import type { AttemptResult } from '../contract/connector.ts';
import type { RequestResult } from '../http2/transport.ts';
import { failed, notSent, profileError, retry, retryAtOnce } from '../kit/response-rules.ts';
import { parseObject } from '../kit/values.ts';

/** How the connector reacts to an error response. */
type Reaction =
  /** This recipient is refused permanently. Others may succeed. */
  | 'fail'
  /** APNs would refuse all recipients of this push. The remaining recipients are not sent to. */
  | 'fail_push'
  /** APNs would refuse all recipients with this topic. */
  | 'fail_topic'
  /** The gateway says that this token is invalid. */
  | 'dead_token'
  | 'retry'
  /** Try again on another connection. */
  | 'retry_elsewhere'
  /**
   * Repeat once with a new provider token on a new connection. If that fails, the result is
   * `profile_error`.
   */
  | 'renew_token'
  /** Repeat once on a new connection. If that fails, the result is `retry`. */
  | 'renew_connection'
  /** Stop sending with this key for a while, and create no new provider token. */
  | 'pause'
  /** The credentials or the configuration are wrong. */
  | 'profile_error';

interface ResponseRule {
  status: number;
  reason: string;
  reaction: Reaction;
  /** Hint to the operator. */
  hint?: Hint;
  /**
   * For `dead_token`: a timestamp in the response proves that the token has ended
   * (protocol/delivery.md#promise-7).
   */
  isProof?: true;
}

export const responseRules: readonly ResponseRule[] = [
  { status: 400, reason: 'BadCollapseId', reaction: 'fail_push' },
  // The token is malformed or belongs to the other environment. APNs closes connections with many
  // such tokens (protocol/apns.md#connections).
  { status: 400, reason: 'BadDeviceToken', reaction: 'dead_token' },
  { status: 400, reason: 'BadExpirationDate', reaction: 'fail_push' },
  { status: 400, reason: 'BadMessageId', reaction: 'fail' },
  { status: 400, reason: 'BadPriority', reaction: 'fail_push' },
  { status: 400, reason: 'BadTopic', reaction: 'fail_topic', hint: 'apnsTopicRefused' },
  // The token belongs to another app and is still valid (protocol/apns.md#answers, Apple DTS forum
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
  // APNs servers use this spelling.
  {
    status: 403,
    reason: 'BadEnvironmentKeyInToken',
    reaction: 'profile_error',
    hint: 'apnsKeyEnvironment',
  },
  { status: 404, reason: 'BadPath', reaction: 'fail' },
  { status: 405, reason: 'MethodNotAllowed', reaction: 'profile_error', hint: 'apnsMalformed' },
  // The timestamp says since when the token is dead.
  { status: 410, reason: 'Unregistered', reaction: 'dead_token', isProof: true },
  { status: 410, reason: 'ExpiredToken', reaction: 'dead_token', isProof: true },
  { status: 413, reason: 'PayloadTooLarge', reaction: 'fail_push' },
  // The limit is per connection and is sometimes exceeded by a correct change of tokens
  // (protocol/apns.md#provider-tokens).
  { status: 429, reason: 'TooManyProviderTokenUpdates', reaction: 'pause' },
  // Too many requests for this device only, so other devices are not throttled.
  { status: 429, reason: 'TooManyRequests', reaction: 'retry' },
  { status: 500, reason: 'InternalServerError', reaction: 'retry' },
  { status: 503, reason: 'ServiceUnavailable', reaction: 'retry' },
  { status: 503, reason: 'Shutdown', reaction: 'retry_elsewhere' },
];

/**
 * Rules for broadcasts (protocol/apns.md#broadcast-answers). Authentication errors and temporary
 * errors have the same rules as for device tokens.
 */
export const broadcastRules: readonly ResponseRule[] = [
  { status: 400, reason: 'FeatureNotEnabled', reaction: 'fail_topic', hint: 'apnsBroadcastOff' },
  { status: 400, reason: 'MissingChannelId', reaction: 'fail_push' },
  { status: 400, reason: 'BadChannelId', reaction: 'fail_push' },
  // The channel was deleted or belongs to the other environment. It never comes back.
  { status: 400, reason: 'ChannelNotRegistered', reaction: 'dead_token', isProof: true },
  { status: 400, reason: 'BadRequestParams', reaction: 'fail_push' },
  { status: 400, reason: 'BadRequestPayload', reaction: 'fail_push' },
  { status: 400, reason: 'MissingPushType', reaction: 'fail_push' },
  { status: 400, reason: 'CannotCreateChannelConfig', reaction: 'fail_push' },
  { status: 403, reason: 'TopicMismatch', reaction: 'fail_topic', hint: 'apnsTopicForbidden' },
];

const toMap = (rules: readonly ResponseRule[]) =>
  new Map(rules.map((rule) => [`${rule.status} ${rule.reason}`, rule]));

const byKey = toMap(responseRules);
const broadcastByKey = toMap([...responseRules, ...broadcastRules]);

/**
 * Error response of APNs with its rule. `reason` comes from a bounded set, because it is a metric
 * label.
 */
export interface ApnsError extends ResponseRule {
  /** For status 410: since when the token is invalid. */
  invalidSinceMs?: number;
}

/**
 * Returns the rule of an error response. An unknown reason gets a rule by its status. A body that
 * does not come from APNs leads to a retry. Neither rule marks a token as dead.
 */
export function parseError(
  reply: Extract<RequestResult, { kind: 'response' }>,
  isBroadcast = false,
): ApnsError {
  const { status } = reply;
  const error = parse(reply.body);
  const rule = (isBroadcast ? broadcastByKey : byKey).get(`${status} ${error?.reason}`);
  if (rule)
    return error?.timestamp === undefined ? rule : { ...rule, invalidSinceMs: error.timestamp };
  return { status, reason: httpReason(status), ...byStatus(status, error !== undefined) };
}

function byStatus(status: number, hasOwnBody: boolean): { reaction: Reaction; hint?: Hint } {
  // The page of a proxy or firewall says nothing about the device or the credentials.
  if (isTemporaryStatus(status) || !hasOwnBody) return { reaction: 'retry' };
  if (status === 401 || status === 403)
    return {
      reaction: 'profile_error',
      hint: { code: 'credentialsStatus', params: { status } },
    };
  return { reaction: 'fail' };
}

/** Parses an error body of APNs: JSON with a `reason`. Returns undefined for other bodies. */
function parse(body: string): { reason: string; timestamp?: number } | undefined {
  const { reason, timestamp } = parseObject(body) ?? {};
  if (typeof reason !== 'string') return undefined;
  // Apple's list of broadcast errors prints this reason with a blank.
  const name = reason === 'Service Unavailable' ? 'ServiceUnavailable' : reason;
  return typeof timestamp === 'number' && timestamp > 0
    ? { reason: name, timestamp }
    : { reason: name };
}

// Results of attempts.

/**
 * Pause of a key after TooManyProviderTokenUpdates. No token may be created during the pause
 * (protocol/apns.md#provider-tokens).
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
        ...(answer.isProof && (status !== 410 || answer.invalidSinceMs !== undefined)
          ? { isProof: true }
          : {}),
      };
    case 'fail':
    case 'fail_push':
      return failed(status, reason);
    case 'fail_topic':
      // Other topics may succeed, because each device names its own topic.
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
  return notSent(reply, 'certificateRefused');
}

/** Number of digits in the last group of a UUID. */
const nodeDigits = 12;

/**
 * Returns the beginning of the `apns-id` of all recipients of a push. The id is a lower-case UUID
 * and stays the same in all attempts, so that Apple's logs show repeats (protocol/apns.md#request,
 * protocol/apns.md#repeats). It is a version 8 UUID (RFC 9562): a digest of the push, then the
 * internal id of the recipient in decimal digits.
 */
export function apnsIdPrefix(objectId: string): string {
  const hex = hash('sha1', objectId, 'hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-`;
}

/** Returns the end of an `apns-id`: the internal id of the recipient. */
export const apnsIdEnd = (recipientId: number): string =>
  String(recipientId).padStart(nodeDigits, '0').slice(-nodeDigits);
