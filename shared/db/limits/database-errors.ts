import pg from 'pg';

const hasCode =
  (code: string) =>
  (error: unknown): boolean =>
    error instanceof pg.DatabaseError && error.code === code;

/**
 * Name of a constraint in the message of a sharded database. Citus does not set the constraint
 * field of the error, and it appends the number of the shard to the name.
 */
const constraintOfShard = /"(\w+)_\d{6,}"/;

/** Returns the unique constraint that a statement violated, if any. */
export function violatedConstraint(error: unknown): string | undefined {
  if (!(error instanceof pg.DatabaseError) || error.code !== '23505') return undefined;
  return error.constraint ?? constraintOfShard.exec(error.message)?.[1];
}

/**
 * Returns whether COPY failed at a worker of a sharded database. Citus uses this code for all its
 * errors.
 */
export const isFailedCopyToWorker = hasCode('XX000');

/** Returns whether a statement violated a foreign key. */
export const isMissingReference = hasCode('23503');

/** Returns whether a table is missing: the database is not migrated. */
export const isUndefinedTable = hasCode('42P01');

/** Returns whether PostgreSQL ended a deadlocked transaction, which can be retried. */
export const isDeadlock = hasCode('40P01');

/** Runs a transaction up to `tries` times, because PostgreSQL rolls it back after a deadlock. */
export const againAfterDeadlock = <T>(transaction: () => Promise<T>, tries = 2): Promise<T> =>
  transaction().catch((error: unknown) => {
    if (!isDeadlock(error) || tries <= 1) throw error;
    return againAfterDeadlock(transaction, tries - 1);
  });

/** Returns whether a standby cancelled a statement because the primary has removed its rows. */
export const isRecoveryConflict = hasCode('40001');

/** Returns whether a statement exceeded its timeout. */
export const isStatementTimeout = hasCode('57014');

/** Returns whether a statement did not get a lock within `lock_timeout`. */
export const isLockTimeout = hasCode('55P03');

/**
 * Returns whether PostgreSQL rejected a value: NUL in text, a number out of range or a malformed
 * regular expression.
 */
export function isInvalidValue(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(22|2201B)/.test(error.code ?? '');
}

/**
 * Returns whether the database is unavailable: it is down, lost, restarting, out of connections or
 * read-only. A former primary is read-only until the proxy in front of it notices (25006).
 */
export function isConnectionFailure(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return /^(08|57P0[1-3]|53|25006)/.test(error.code ?? '');
  if (!(error instanceof Error)) return false;
  const code = 'code' in error ? String(error.code) : '';
  return (
    /^(ECONN|ENOENT|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_)/.test(code) ||
    /timeout exceeded when trying to connect|Query read timeout|Connection terminated|Client has encountered a connection error/.test(
      error.message,
    )
  );
}

/** Kinds of failed statements, used as labels of a metric. */
export const failureKinds = ['unreachable', 'timeout', 'lock', 'deadlock', 'other'] as const;
export type FailureKind = (typeof failureKinds)[number];

/**
 * Returns the kind of a failed statement. Returns undefined if the database is not the cause, as
 * for a violated constraint.
 */
export function failureKind(error: unknown): FailureKind | undefined {
  if (isConnectionFailure(error)) return 'unreachable';
  if (isStatementTimeout(error)) return 'timeout';
  if (isLockTimeout(error)) return 'lock';
  if (isDeadlock(error)) return 'deadlock';
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  // Resources, system and internal errors. Classes 22 and 23 are rejected values.
  return /^(5[348]|XX|57)/.test(code) ? 'other' : undefined;
}
