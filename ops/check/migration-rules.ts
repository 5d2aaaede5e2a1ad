import { type Effect, effectOf } from '../../shared/db/schema/effects.ts';
import type { MigrationFile } from '../../shared/db/schema/migrate.ts';

/** Line of a migration that accepts its rule violations after a review. */
const acceptance = /^\s*--\s*Accepted: \S.{20,}/m;

/** Tables that stay small even on a large service, so a full scan is fast. */
const smallTables = new Set([
  'app',
  'push_profile',
  'breaker',
  'breaker_state',
  'gateway_failure',
  'sms_template',
  'console_token',
]);

/**
 * Returns the reasons why a migration must not run on a large service during a rolling upgrade
 * (develop/decisions.md#why-expand-migrate-contract). Returns an empty list if no rule is broken,
 * or if the file names a reviewed exception.
 */
export function migrationProblems({ up, statements, isConcurrent }: MigrationFile): string[] {
  if (acceptance.test(up)) return [];
  const created = new Set<string>();
  const problems = statements.flatMap((statement) => {
    const effect = effectOf(statement);
    if (effect.creates !== undefined) created.add(effect.creates);
    const isNew = effect.table !== undefined && created.has(effect.table);
    const problem = isNew ? undefined : problemOf(effect);
    return problem === undefined ? [] : [`${problem}: ${statement}`];
  });
  const isMixed = isConcurrent && statements.some((statement) => !effectOf(statement).isConcurrent);
  return isMixed ? [...problems, 'CONCURRENTLY needs a file of its own'] : problems;
}

function problemOf({ table, lock, cost, breaks, isKnown }: Effect): string | undefined {
  if (!isKnown) return 'unknown statement, add it to shared/db/schema/effects.ts';
  if (breaks !== undefined) return breaks;
  if (table !== undefined && smallTables.has(table)) return undefined;
  if (cost === 'rows') return 'a background job must write rows, in small steps';
  if (cost === 'rewrite') return 'it writes the whole table under a lock';
  if (cost === 'scan' && lock !== 'SHARE UPDATE EXCLUSIVE')
    return lock === 'SHARE'
      ? 'it needs CONCURRENTLY'
      : 'it reads the whole table under a lock (NOT VALID, then VALIDATE)';
  return undefined;
}
