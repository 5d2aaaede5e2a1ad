/** Result of one check. */
export interface Finding {
  name: string;
  status: 'ok' | 'warn' | 'fail';
  /** Present state. */
  detail: string;
  /** Action to take; empty when the check succeeded. */
  advice: string;
}

export const ok = (name: string, detail: string): Finding => ({ name, status: 'ok', detail, advice: '' });

export const warn = (name: string, detail: string, advice: string): Finding => ({
  name,
  status: 'warn',
  detail,
  advice,
});

export const fail = (name: string, detail: string, advice: string): Finding => ({
  name,
  status: 'fail',
  detail,
  advice,
});

/** Returns the message of the innermost error, which has more detail (such as a refused connection). */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? reasonOf(error.cause) : error.message;
}
