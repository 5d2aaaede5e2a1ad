import { isConnectionFailure, isDeadlock, isLockTimeout, isStatementTimeout } from './database-errors.ts';

/** Kinds of failed statements, as labels of a metric. */
export const failureKinds = ['unreachable', 'timeout', 'lock', 'deadlock', 'other'] as const;
export type FailureKind = (typeof failureKinds)[number];

/** Returns the kind of a failed statement; undefined if the database is not at fault (a constraint). */
export function failureKind(error: unknown): FailureKind | undefined {
  if (isConnectionFailure(error)) return 'unreachable';
  if (isStatementTimeout(error)) return 'timeout';
  if (isLockTimeout(error)) return 'lock';
  if (isDeadlock(error)) return 'deadlock';
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  // Resources, system and internal errors; those of classes 22 and 23 are refused values.
  return /^(5[348]|XX|57)/.test(code) ? 'other' : undefined;
}
