/** Attempt results of APNs requests. */
import { hash } from 'node:crypto';
import { longerWait } from '../../shared/backoff.ts';
import { reasonText } from '../../shared/domain/reasons.ts';
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
import type { ApnsError } from './errors.ts';

/** Pause of a key after TooManyProviderTokenUpdates (protocol/apns.md#provider-tokens: back off, create no token). */
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
 * Returns the beginning of the `apns-id` of all recipients of a push: a lower-case UUID, the same at every attempt, so
 * that Apple's logs show repeats (protocol/apns.md#request, protocol/apns.md#repeats). Version 8 of RFC 9562: a digest
 * of the push, then the internal id of the recipient in decimal digits.
 */
export function apnsIdPrefix(objectId: string): string {
  const hex = hash('sha1', objectId, 'hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-`;
}

/** Returns the rest of an `apns-id`, from the internal id of the recipient. */
export const apnsIdEnd = (recipientId: string): string =>
  recipientId.padStart(nodeDigits, '0').slice(-nodeDigits);
