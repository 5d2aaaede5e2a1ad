/** What attempts show of a gateway: whether it can be asked now, and why not. */
import type { AttemptResult } from './connector.ts';

/** Without an answer: reasons that say nothing of the gateway, since we broke off, wait ourselves or were moved on. */
const ignoredReasons = new Set([
  'aborted',
  'closed',
  'stopped',
  'stopping',
  'goaway',
  'TooManyProviderTokenUpdates',
  'outside_sending_hours',
]);

/**
 * What an attempt shows of the gateway: true, it cannot be asked now (no answer, or a 5xx); false, it
 * answered, whatever it said of this recipient; null, nothing. The breakers are fed with this.
 */
export function isFailure(attempt: AttemptResult): boolean | null {
  switch (attempt.kind) {
    case 'sent':
      return false;
    case 'unknown':
      return true;
    case 'retry':
      if (attempt.status > 0) return attempt.status >= 500;
      return ignoredReasons.has(attempt.reason) ? null : true;
    default:
      return attempt.status > 0 ? false : null;
  }
}

/** Why a gateway could not be asked, in words for people; undefined where the attempt shows no such trouble. */
export function failureCause(attempt: AttemptResult): string | undefined {
  switch (attempt.kind) {
    case 'retry':
      return isFailure(attempt) ? retryCause(attempt) : undefined;
    case 'unknown':
      return attempt.cause ?? attempt.reason;
    case 'profile_error':
      // Credentials that are refused are an answer; a certificate that is not trusted is not.
      return attempt.status === 0 ? attempt.cause : undefined;
    default:
      return undefined;
  }
}

/** A status is told with the gateway's reason, a connection that failed by its code alone. */
function retryCause({ status, reason, cause }: Extract<AttemptResult, { kind: 'retry' }>): string {
  return status > 0 ? `${status} ${reason}` : (cause ?? reason);
}
