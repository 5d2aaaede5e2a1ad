/** What the results of attempts say about the health of their gateway. */
import { connectionReason, httpReason, withStatus } from '../../shared/domain/reasons.ts';
import type { AttemptResult } from './connector.ts';

/**
 * Reasons of results without a response that say nothing about the gateway: this process aborted or
 * delayed the request, our database did not respond, or the gateway redirected the connection.
 */
const ignoredReasons = new Set([
  'aborted',
  'closed',
  'stopped',
  'stopping',
  'quota_unavailable',
  'token_store_unavailable',
  'goaway',
  'TooManyProviderTokenUpdates',
  'outside_sending_hours',
]);

/** Reasons of failed token calls. The gateway itself got no request. */
const tokenCallReasons = new Set(['token_call_refused', 'token_reply_unreadable']);

/**
 * Returns true if the gateway got the request of a failed attempt. Other attempts say nothing about
 * the gateway.
 */
export const hasReachedGateway = ({
  status,
  reason,
}: {
  status: number;
  reason: string;
}): boolean => status > 0 && !tokenCallReasons.has(reason);

/** True if a proxy answered instead of the gateway: the response has no code of the gateway. */
const isPage = ({ status, reason }: { status: number; reason: string }): boolean =>
  status >= 300 && status !== 429 && reason === httpReason(status);

/**
 * Returns true if the gateway did not respond or responded with a 5xx status. Returns false if it
 * responded otherwise, and null if the result says nothing about the gateway. The circuit breakers
 * use it.
 */
export function isFailure(attempt: AttemptResult): boolean | null {
  if ('isOfService' in attempt && attempt.isOfService) return null;
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
 * Returns the reason why the gateway could not be reached or was unavailable. Returns undefined for
 * all other results.
 */
export function failureCause(attempt: AttemptResult): string | undefined {
  switch (attempt.kind) {
    case 'retry':
      return isFailure(attempt) ? retryCause(attempt) : undefined;
    case 'unknown':
      return attempt.cause === undefined ? attempt.reason : connectionReason(attempt.cause);
    case 'profile_error':
      // Refused credentials have a status, so the gateway responded. An untrusted certificate has
      // no status.
      return attempt.status === 0 && attempt.cause !== undefined
        ? connectionReason(attempt.cause)
        : undefined;
    default:
      return undefined;
  }
}

/**
 * Returns the status with the gateway's reason, or only the error code if the connection failed.
 */
function retryCause({ status, reason, cause }: Extract<AttemptResult, { kind: 'retry' }>): string {
  if (status > 0) return withStatus(status, reason);
  return cause === undefined ? reason : connectionReason(cause);
}
