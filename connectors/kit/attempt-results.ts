/** What connectors tell of one recipient, in one place so that it reads alike everywhere. */
import type { HttpUnanswered } from '../../shared/http/client.ts';
import type { Attempt } from '../contract/connector.ts';

type Retry = Extract<Attempt, { kind: 'retry' }>;
type Halt = Extract<Attempt, { kind: 'halt' }>;

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

export const retry = (status: number, reason: string, afterMs: number | null = null): Retry => ({
  kind: 'retry',
  status,
  reason,
  afterMs,
});

export const halt = (status: number, reason: string, sentence: string): Halt => ({
  kind: 'halt',
  status,
  reason,
  sentence,
});

/**
 * The attempt of a request that got no answer. Certificates that cannot be trusted are a matter of configuration;
 * what was provably not processed is tried again; what was written may have arrived.
 */
export function unanswered({ kind, reason, cause }: HttpUnanswered, isRepeatHidden: boolean): Attempt {
  if (kind === 'unknown') return withCause({ kind: 'unknown', reason, isRepeatHidden }, cause);
  if (reason === 'certificate_refused') return withCause(halt(0, reason, untrusted(cause)), cause);
  if (reason === 'bad_request') return failed(0, reason);
  return withCause(retry(0, reason, reason === 'aborted' || reason === 'closed' ? 0 : null), cause);
}

const untrusted = (cause: string | undefined): string => {
  const code = cause === undefined ? '' : ` (${cause})`;
  return `The certificate of the gateway is not trusted${code}: check endpoint and ca.`;
};

/** Adds the code of the connection's failure, where there is one. */
export function withCause(
  attempt: Retry | Halt | Extract<Attempt, { kind: 'unknown' }>,
  cause: string | undefined,
): Attempt {
  return cause === undefined ? attempt : { ...attempt, cause };
}
