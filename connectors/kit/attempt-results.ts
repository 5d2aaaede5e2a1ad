/** Attempt results that all connectors share. */
import { longerWait } from '../../shared/backoff.ts';
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

/** `wantedMs`: the shortest wait before another try, if there is one. */
export const retry = (status: number, reason: string, wantedMs: number | null = null): Retry => ({
  kind: 'retry',
  status,
  reason,
  afterMs: longerWait(wantedMs, null),
});

/** Not sent for a reason of this process, or of one connection among others. */
export const retryAtOnce = (status: number, reason: string): Retry => ({
  kind: 'retry',
  status,
  reason,
  afterMs: 0,
});

/** Not sent because the process stops or the push was stopped. */
export const stopping: AttemptResult = retryAtOnce(0, 'stopping');

/** Returns the result of a request that was certainly not processed. */
export const notProcessed = (reason: string, wantedMs: number | null = null): Retry =>
  reason === 'aborted' || reason === 'closed' ? retryAtOnce(0, reason) : retry(0, reason, wantedMs);

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
  return withCause(notProcessed(reason), cause);
}

/**
 * Hint about a profile whose URL leads to a private address (shared/http/outbound-addresses.ts).
 */
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
