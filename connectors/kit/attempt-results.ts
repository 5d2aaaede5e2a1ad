/** Attempt results that all connectors share. */
import type { HttpFailure } from '../../shared/http/result.ts';
import type { AttemptResult, SendRequest } from '../contract/connector.ts';

type Retry = Extract<AttemptResult, { kind: 'retry' }>;
type ProfileError = Extract<AttemptResult, { kind: 'profile_error' }>;

/** Reports the same result for all recipients of a request. */
export function reportAll(
  { recipients, report }: Pick<SendRequest, 'recipients' | 'report'>,
  attempt: AttemptResult,
): void {
  for (const { index } of recipients) report(index, attempt);
}

export const sent: AttemptResult = { kind: 'sent' };

/** Not sent because the process stops or the push was stopped. */
export const stopping: AttemptResult = { kind: 'retry', status: 0, reason: 'stopping', afterMs: 0 };

export const expired: AttemptResult = { kind: 'rejected', outcome: 'expired', status: 0, reason: 'expired' };

export const failed = (status: number, reason: string): AttemptResult => ({
  kind: 'rejected',
  outcome: 'failed',
  status,
  reason,
});

/** Result of a message that cannot be rendered for the gateway. */
export const unrenderable = (rendering: {
  error: string;
  outcome?: 'failed' | 'dropped';
}): AttemptResult => ({
  kind: 'rejected',
  outcome: rendering.outcome ?? 'failed',
  status: 0,
  reason: rendering.error,
});

/** A quota of the gateway is used up. */
export const capped = (status: number, reason: string): AttemptResult => ({
  kind: 'rejected',
  outcome: 'capped',
  status,
  reason,
});

export const retry = (status: number, reason: string, afterMs: number | null = null): Retry => ({
  kind: 'retry',
  status,
  reason,
  afterMs,
});

export const profileError = (status: number, reason: string, hint: string): ProfileError => ({
  kind: 'profile_error',
  status,
  reason,
  hint,
});

/**
 * Returns the result of a request without a response. An untrusted certificate is a configuration error; a request that
 * was certainly not processed is retried; a written one may have arrived.
 */
export function unanswered({ kind, reason, cause }: HttpFailure, isRepeatHidden: boolean): AttemptResult {
  if (kind === 'unknown') return withCause({ kind: 'unknown', reason, isRepeatHidden }, cause);
  if (reason === 'certificate_refused')
    return withCause(profileError(0, reason, untrustedHint(cause)), cause);
  if (reason === 'address_refused') return withCause(profileError(0, reason, refusedAddressHint), cause);
  if (reason === 'bad_request') return failed(0, reason);
  return withCause(retry(0, reason, reason === 'aborted' || reason === 'closed' ? 0 : null), cause);
}

/** Hint about a profile whose URL leads to a private address (shared/http/outbound-addresses.ts). */
export const refusedAddressHint =
  'The profile names a private address: list it in CARILLON_PRIVATE_HOSTS, or correct endpoint, authEndpoint or proxy.';

const untrustedHint = (cause: string | undefined): string => {
  const code = cause === undefined ? '' : ` (${cause})`;
  return `The certificate of the gateway is not trusted${code}: check endpoint and ca.`;
};

/** Adds the code of the failed connection, if known. */
export function withCause(
  attempt: Retry | ProfileError | Extract<AttemptResult, { kind: 'unknown' }>,
  cause: string | undefined,
): AttemptResult {
  return cause === undefined ? attempt : { ...attempt, cause };
}
