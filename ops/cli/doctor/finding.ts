/** What one check found. */
export interface Finding {
  name: string;
  status: 'ok' | 'warn' | 'fail';
  /** What is the case. */
  detail: string;
  /** What to do about it; empty when all is well. */
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

/** The message of an error, with the one inside it where that says more (a refused connection). */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? reasonOf(error.cause) : error.message;
}
