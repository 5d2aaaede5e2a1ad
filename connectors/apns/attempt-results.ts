/** Turns what happened to one request into what the dispatcher is told. */
import { hash } from 'node:crypto';
import type { AttemptResult } from '../contract/connector.ts';
import type { RequestResult, TransportReason } from '../http2/transport.ts';
import { failed, profileError, retry, withCause } from '../kit/attempt-results.ts';
import type { ApnsError } from './errors.ts';

/** How long a key rests after TooManyProviderTokenUpdates (protocol/apns.md#provider-tokens: back off, do not mint). */
export const pauseMs = 60_000;

/** The attempt of an answer once nothing more is tried for it here. */
export function attemptResult(
  answer: ApnsError,
  retryAfterMs: number | null,
  isOnlyTopic: boolean,
): AttemptResult {
  const { status, reason, hint: sentence = `APNs answered ${status} ${reason}.` } = answer;
  switch (answer.reaction) {
    case 'dead_token':
      return {
        kind: 'invalid_token',
        status,
        reason,
        ...(answer.deadSinceMs === undefined ? {} : { deadSinceMs: answer.deadSinceMs }),
      };
    case 'fail':
    case 'fail_push':
      return failed(status, reason);
    case 'fail_topic':
      // With several topics the others may do well, and an installation names its topic itself.
      return isOnlyTopic ? profileError(status, reason, sentence) : failed(status, reason);
    case 'retry':
    case 'renew_connection':
      return retry(status, reason, retryAfterMs);
    case 'retry_elsewhere':
      return retry(status, reason, retryAfterMs ?? 0);
    case 'pause':
      return retry(status, reason, retryAfterMs ?? pauseMs);
    case 'renew_token':
    case 'profile_error':
      return profileError(status, reason, sentence);
  }
}

/** The attempt of a request that got no answer. */
export function unansweredResult(
  reply: Exclude<RequestResult, { kind: 'response' }>,
  isRepeatHidden: boolean,
): AttemptResult {
  if (reply.kind === 'unknown') return { kind: 'unknown', reason: reply.reason, isRepeatHidden };
  if (reply.reason === 'certificate_refused')
    return withCause(
      profileError(
        0,
        reply.reason,
        'The gateway refuses the client certificate: it may be expired or revoked.',
      ),
      reply.cause,
    );
  return withCause(retry(0, reply.reason, isOurDoing(reply.reason) ? 0 : reply.afterMs), reply.cause);
}

const isOurDoing = (reason: TransportReason): boolean => reason === 'aborted' || reason === 'closed';

/**
 * `apns-id` of a recipient of a push: a lower-case UUID, the same at every attempt, so that repeats can be
 * told in Apple's logs (protocol/apns.md#request, protocol/apns.md#repeats). Version 8 of RFC 9562, made from a digest.
 */
export function apnsIdOf(objectId: string, recipientId: string): string {
  const hex = hash('sha1', `${objectId}:${recipientId}`, 'hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
