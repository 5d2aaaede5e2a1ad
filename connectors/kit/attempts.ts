/** What connectors tell of one recipient, in one place so that it reads alike everywhere. */
import type { HttpUnanswered } from '../../shared/http.ts';
import type { Attempt } from '../connector.ts';

export const sent: Attempt = { kind: 'sent' };

/** Nothing was sent, since this process stops or the push was stopped. */
export const stopping: Attempt = { kind: 'retry', status: 0, reason: 'stopping', afterMs: 0 };

export const expired: Attempt = { kind: 'rejected', outcome: 'expired', status: 0, reason: 'expired' };

export const failed = (status: number, reason: string): Attempt => ({
  kind: 'rejected',
  outcome: 'failed',
  status,
  reason,
});

/** A message that the gateway cannot be sent, as rendering told. */
export const unfit = (told: { problem: string; outcome?: 'failed' | 'dropped' }): Attempt => ({
  kind: 'rejected',
  outcome: told.outcome ?? 'failed',
  status: 0,
  reason: told.problem,
});

/** A quota of the gateway is used up. */
export const capped = (status: number, reason: string): Attempt => ({
  kind: 'rejected',
  outcome: 'capped',
  status,
  reason,
});

export const retry = (status: number, reason: string, afterMs: number | null = null): Attempt => ({
  kind: 'retry',
  status,
  reason,
  afterMs,
});

export const halt = (status: number, reason: string, sentence: string): Attempt => ({
  kind: 'halt',
  status,
  reason,
  sentence,
});

/**
 * The attempt of a request that got no answer. Certificates that cannot be trusted are a matter of configuration;
 * what was provably not processed is tried again; what was written may have arrived.
 */
export function unanswered({ kind, reason }: HttpUnanswered, isRepeatHidden: boolean): Attempt {
  if (kind === 'unknown') return { kind: 'unknown', reason, isRepeatHidden };
  if (reason === 'certificate_refused')
    return halt(0, reason, 'The certificate of the gateway is not trusted: check endpoint and ca.');
  if (reason === 'bad_request') return failed(0, reason);
  return retry(0, reason, reason === 'aborted' || reason === 'closed' ? 0 : null);
}
