import pg from 'pg';

/**
 * Name of a constraint in the message of a sharded database: Citus passes on no name, and appends
 * the number of the shard to it.
 */
const constraintOfShard = /"(\w+)_\d{6,}"/;

/** Returns the unique constraint that made a statement fail, if any. */
export function violatedConstraint(error: unknown): string | undefined {
  if (!(error instanceof pg.DatabaseError) || error.code !== '23505') return undefined;
  return error.constraint ?? constraintOfShard.exec(error.message)?.[1];
}

/**
 * Returns whether COPY to a table of a sharded database failed: Citus passes on the message of the
 * worker, and this code in place of its own.
 */
export function isFailedCopyToWorker(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === 'XX000';
}

/** Returns whether a foreign key made a statement fail. */
export function isMissingReference(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '23503';
}

/** Returns whether a table is missing: the database is not migrated. */
export function isUndefinedTable(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '42P01';
}

/** Returns whether PostgreSQL ended a deadlocked transaction, which can be retried. */
export function isDeadlock(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '40P01';
}

/** Returns whether a standby ended a statement whose rows the primary has removed. */
export function isRecoveryConflict(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '40001';
}

/** Returns whether a statement reached its time limit. */
export function isStatementTimeout(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '57014';
}

/** Returns whether a statement did not get a lock within `lock_timeout`. */
export function isLockTimeout(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '55P03';
}

/** Returns whether PostgreSQL rejected a value: NUL in text, a number out of range, a malformed regular expression. */
export function isInvalidValue(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(22|2201B)/.test(error.code ?? '');
}

/**
 * Returns whether the database is unreachable: down, restarting, out of connections, or a server that only reads, as a former
 * primary does until the proxy in front of it notices (25006).
 */
export function isConnectionFailure(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return /^(08|57P0[1-3]|53|25006)/.test(error.code ?? '');
  if (!(error instanceof Error)) return false;
  const code = 'code' in error ? String(error.code) : '';
  return (
    /^(ECONN|ENOENT|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_)/.test(code) ||
    /timeout exceeded when trying to connect|Connection terminated|Client has encountered a connection error/.test(
      error.message,
    )
  );
}
