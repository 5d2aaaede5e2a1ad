import type { Vault } from '../../shared/crypto.ts';
import type { Database, Handle } from '../../shared/db/pool.ts';
import {
  countSealedValues,
  findSecretRotation,
  lockSecretRotation,
  nameOf,
  nextAppId,
  oldValues,
  readSealedPage,
  resealRows,
  type SecretRotation,
  saveSecretRotation,
  sealedColumns,
  sum,
} from '../../shared/db/tables/secrets.ts';
import { serviceOwner } from '../../shared/domain/webhooks/endpoint.ts';
import type { DispatcherDeps } from '../deps.ts';

/** Rows of a page, and pages of a transaction. Many apps have only a few rows. */
const rowsPerPage = 200;
const pagesAtOnce = 20;
/**
 * Maximum passes. A rotation ends then even if values remain, because a process with another first
 * key may keep writing them.
 */
const maxPasses = 5;

/** Maximum time of one run, in ms. A dispatcher that stops waits for it. */
const runMs = 2000;
/** Timeout of the statement that counts all values, in ms. It reads every user and message. */
const countTimeoutMs = 10 * 60_000;

type RotationDeps = Pick<DispatcherDeps, 'vault' | 'log'> & { db: Pick<Database, 'transaction'> };

/**
 * Continues a requested rotation for some seconds. Returns the number of values that it encrypted.
 * Without a request it runs one small query.
 */
export async function rotateForAWhile(deps: DispatcherDeps): Promise<number> {
  const requested = await findSecretRotation(deps.db, deps.vault.keyIds[0]);
  if (!requested || requested.finishedAt) return 0;
  const endMs = deps.clock.monotonicMs() + runMs;
  let changed = 0;
  while (deps.clock.monotonicMs() < endMs) {
    const step = await rotateOnce(deps);
    changed += step.changed;
    if (!step.isMore) break;
  }
  return changed;
}

/**
 * Continues a requested rotation of CARILLON_SECRET to the first key of this dispatcher
 * (docs/operate/secret.md). One dispatcher at a time locks its row. The position commits together
 * with the encrypted rows, so that another dispatcher continues there after a crash. Returns the
 * number of values that it encrypted, and whether there is more to do.
 */
export async function rotateOnce({
  db,
  vault,
  log,
}: RotationDeps): Promise<{ changed: number; isMore: boolean }> {
  const [first] = vault.keyIds;
  const step = await db.transaction(
    async (tx) => {
      const rotation = await lockSecretRotation(tx, first);
      if (!rotation) return undefined;
      const taken =
        rotation.pass === 0 ? await begin(tx, vault, rotation) : await advance(tx, vault, rotation);
      return { ...taken, changed: taken.rotation.changed - rotation.changed };
    },
    { statementTimeoutMs: countTimeoutMs },
  );
  if (!step) return { changed: 0, isMore: false };
  if (step.isFinished)
    log.info(
      { key: first, changed: step.rotation.changed },
      'the rotation of CARILLON_SECRET has ended',
    );
  return { changed: step.changed, isMore: !step.isFinished };
}

interface Step {
  rotation: SecretRotation;
  isFinished: boolean;
}

async function begin(tx: Handle, vault: Vault, rotation: SecretRotation): Promise<Step> {
  const counts = await countSealedValues(tx, vault.keyIds);
  const expected = sum(Object.values(oldValues(counts, rotation.keyId)));
  const begun = { ...rotation, counts, expected, pass: 1 };
  await saveSecretRotation(tx, begun, { isCounted: true });
  return { rotation: begun, isFinished: false };
}

async function advance(tx: Handle, vault: Vault, from: SecretRotation): Promise<Step> {
  let rotation = from;
  let rows = 0;
  for (let pages = 0; pages < pagesAtOnce; pages += 1) {
    // A pass begins with the rows of the service itself. Their id comes before those of all apps.
    const appId = rotation.appId ?? serviceOwner;
    const { page, next } = await takePage(tx, vault, { ...rotation, appId });
    rotation = next;
    if (rotation.place === sealedColumns.length) {
      const following = await nextAppId(tx, appId);
      if (following === undefined) return endPass(tx, vault, rotation);
      rotation = { ...rotation, appId: following, place: 0 };
    }
    rows += page;
    if (rows >= rowsPerPage) break;
  }
  await saveSecretRotation(tx, rotation);
  return { rotation, isFinished: false };
}

/** Encrypts one page of an app. Returns the number of values in the page, and the next state. */
async function takePage(
  tx: Handle,
  vault: Vault,
  rotation: SecretRotation & { appId: string },
): Promise<{ page: number; next: SecretRotation }> {
  const { appId, position, keyId: first } = rotation;
  const column = sealedColumns[rotation.place];
  if (!column)
    return { page: 0, next: { ...rotation, place: sealedColumns.length, position: null } };
  const pageOptions = { appId, after: position ?? undefined, first, limit: rowsPerPage };
  const { old, last } = await readSealedPage(tx, column, pageOptions);
  const { changed, unreadable } = await resealRows(tx, vault, column, old);
  const name = nameOf(column);
  const next = {
    ...rotation,
    place: last ? rotation.place : rotation.place + 1,
    position: last ?? null,
    changed: rotation.changed + changed,
    unreadable: { ...rotation.unreadable, [name]: (rotation.unreadable[name] ?? 0) + unreadable },
  };
  return { page: old.length, next };
}

/**
 * Counts the remaining values. Begins another pass if rows were locked, or were written with an old
 * key during this pass.
 */
async function endPass(tx: Handle, vault: Vault, rotation: SecretRotation): Promise<Step> {
  const counts = await countSealedValues(tx, vault.keyIds);
  const left = sum(Object.values(oldValues(counts, rotation.keyId, rotation.unreadable)));
  const isFinished = left === 0 || rotation.pass >= maxPasses;
  const start = { appId: null, place: 0, position: null };
  const nextPass = isFinished ? {} : { pass: rotation.pass + 1, unreadable: {} };
  const ended = { ...rotation, ...start, ...nextPass, counts };
  await saveSecretRotation(tx, ended, { isFinished, isCounted: true });
  return { rotation: ended, isFinished };
}
