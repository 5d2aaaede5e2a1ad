import type { Vault } from '../../../../shared/crypto.ts';
import { isStatementTimeout } from '../../../../shared/db/limits/database-errors.ts';
import type { Database } from '../../../../shared/db/pool.ts';
import {
  countSealedSoon,
  findSecretRotation,
  listKeyMismatches,
  oldValues,
} from '../../../../shared/db/tables/secrets.ts';
import { type Finding, found } from './finding.ts';

const name = 'secret keys';

/** Counts the values that are not under the first key of CARILLON_SECRET; says nothing while it has a single key. */
export async function checkSecretKeys({ db, vault }: { db: Database; vault: Vault }): Promise<Finding[]> {
  const [first, ...others] = vault.keyIds;
  if (others.length === 0) return [];
  const mismatches = (await listKeyMismatches(db, first)).map(({ kind, host, pid }) =>
    found({ name, status: 'warn', code: 'otherSecretKeys', params: { kind, host, pid } }),
  );
  const rotation = await findSecretRotation(db, first);
  const counts = await countSealedSoon(db, vault.keyIds).catch((error: unknown) => {
    if (isStatementTimeout(error)) return rotation?.counts;
    throw error;
  });
  if (!counts) return [...mismatches, found({ name, status: 'warn', code: 'secretsUncounted' })];
  const old = Object.entries(oldValues(counts, first, rotation?.unreadable))
    .filter(([, values]) => values > 0)
    .map(([column, values]) =>
      found({ name, status: 'warn', code: 'oldSecretValues', params: { column, values } }),
    );
  const findings = [...mismatches, ...old];
  return findings.length > 0
    ? findings
    : [found({ name, status: 'ok', code: 'secretKeysFine', params: { first } })];
}
