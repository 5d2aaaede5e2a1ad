/** Health of a gateway as results of attempts show it. */
import { connectionReason, httpReason, withStatus } from '../../shared/domain/reasons.ts';
import type { AttemptResult } from './connector.ts';

/**
 * Reasons of results without a response that say nothing about the gateway: aborted or delayed by
 * this process, or redirected.
 */
const ignoredReasons = new Set([
  'aborted',
  'closed',
  'stopped',
  'stopping',
  'goaway',
  'TooManyProviderTokenUpdates',
  'outside_sending_hours',
]);

/** Reasons of token calls that failed: the gateway itself got no request. */
const tokenCallReasons = new Set(['token_call_refused', 'token_reply_unreadable']);

/** Returns whether the gateway got the request of a try that failed, so that the try counts. */
export const hasReachedGateway = ({
  status,
  reason,
}: {
  status: number;
  reason: string;
}): boolean => status > 0 && !tokenCallReasons.has(reason);

/**
 * Whether a proxy answered in place of the gateway: a status below 500 without the gateway's own
 * code.
 */
const isPage = ({ status, reason }: { status: number; reason: string }): boolean =>
  status >= 300 && status !== 429 && reason === httpReason(status);

/**
 * Returns true if the gateway did not respond or responded with a 5xx, false if it responded
 * otherwise, null if the result says nothing about it. Input of the breakers.
 */
export function isFailure(attempt: AttemptResult): boolean | null {
  switch (attempt.kind) {
    case 'sent':
      return false;
    case 'unknown':
      return true;
    case 'retry':
      if (hasReachedGateway(attempt)) return attempt.status >= 500 || isPage(attempt);
      return ignoredReasons.has(attempt.reason) ? null : true;
    default:
      return attempt.status > 0 ? false : null;
  }
}

/**
 * Returns the reason for which the gateway could not be asked; undefined if the result is no such
 * failure.
 */
export function failureCause(attempt: AttemptResult): string | undefined {
  switch (attempt.kind) {
    case 'retry':
      return isFailure(attempt) ? retryCause(attempt) : undefined;
    case 'unknown':
      return attempt.cause === undefined ? attempt.reason : connectionReason(attempt.cause);
    case 'profile_error':
      // Refused credentials are a response; an untrusted certificate is not.
      return attempt.status === 0 && attempt.cause !== undefined
        ? connectionReason(attempt.cause)
        : undefined;
    default:
      return undefined;
  }
}

/** Returns a status with the gateway's reason, or the code of the failed connection alone. */
function retryCause({ status, reason, cause }: Extract<AttemptResult, { kind: 'retry' }>): string {
  if (status > 0) return withStatus(status, reason);
  return cause === undefined ? reason : connectionReason(cause);
}
