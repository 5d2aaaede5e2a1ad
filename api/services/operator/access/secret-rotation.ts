import {
  countSealedSoon,
  findSecretRotation,
  type KeyMismatch,
  listKeyMismatches,
  oldValues,
  otherKey,
  requestSecretRotation,
  type SealedCounts,
  type SecretRotation,
  sum,
} from '../../../../shared/db/tables/secrets.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import { type Detail, detail } from '../../../../shared/domain/texts/texts.ts';
import type { ApiDeps } from '../../deps.ts';
import { recordChange } from '../audit/audit.ts';

/** Key of CARILLON_SECRET, and the number of values encrypted with it. */
export interface KeyUse {
  id: string;
  isFirst: boolean;
  /** Number of values by column. Null if the values are not counted. */
  values: Record<string, number> | null;
  /**
   * True if the key can be removed: no value is encrypted with it, and no process encrypts with it.
   */
  mayBeRemoved: boolean;
}

/** State of the keys and of the rotation to the first key (docs/operate/secret.md). */
export interface SecretState {
  keys: KeyUse[];
  /**
   * Number of values, by column, that no key of CARILLON_SECRET decrypts, or whose key has not been
   * determined.
   */
  other: Record<string, number> | null;
  countedAt: Date | null;
  rotation: SecretRotation | null;
  /** Number of values under old keys at the last count. */
  left: number | null;
  mismatches: KeyMismatch[];
}

/**
 * Returns the state of the rotation of CARILLON_SECRET and requests a rotation. A dispatcher
 * executes it (`dispatcher/background/secret-rotation.ts`).
 */
export class SecretRotationService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the state. If `isCounted` is true, counts all values now. Otherwise returns the last
   * count of the rotation.
   */
  async state(isCounted: boolean): Promise<SecretState> {
    const { db, vault, clock } = this.#deps;
    const rotation = (await findSecretRotation(db, vault.keyIds[0])) ?? null;
    const fresh = isCounted ? await countSealedSoon(db, vault.keyIds) : null;
    return this.#stateOf(rotation, {
      counts: fresh ?? rotation?.counts ?? null,
      countedAt: fresh ? new Date(clock.now()) : (rotation?.countedAt ?? null),
    });
  }

  /**
   * Requests a rotation to the first key. A rotation in progress continues. Throws error 409 if a
   * running process could not decrypt the result.
   */
  async request(): Promise<SecretState> {
    const { db, admissionDb, vault } = this.#deps;
    const [first] = vault.keyIds;
    const unable = (await listKeyMismatches(admissionDb, first)).filter(
      ({ problem }) => problem !== 'encryptsOtherwise',
    );
    if (unable.length > 0) throw refuse('conflict', unableText(unable));
    await db.transaction(async (tx) => {
      if (!(await requestSecretRotation(tx, first))) return;
      await recordChange(tx, {
        action: 'secret.rotate',
        target: first,
        after: { keys: vault.keyIds },
      });
    });
    return this.state(false);
  }

  async #stateOf(
    rotation: SecretRotation | null,
    { counts, countedAt }: Pick<SecretState, 'countedAt'> & { counts: SealedCounts | null },
  ): Promise<SecretState> {
    const { admissionDb, vault } = this.#deps;
    const { keyIds } = vault;
    const mismatches = await listKeyMismatches(admissionDb, keyIds[0]);
    const left = counts && sum(Object.values(oldValues(counts, keyIds[0], rotation?.unreadable)));
    const isDone = rotation?.finishedAt != null && left === 0 && mismatches.length === 0;
    const keys = keyIds.map((id, i) => ({
      id,
      isFirst: i === 0,
      values: counts && valuesOf(counts, id),
      mayBeRemoved: i > 0 && isDone,
    }));
    return {
      keys,
      other: counts && valuesOf(counts, otherKey),
      countedAt,
      rotation,
      left,
      mismatches,
    };
  }
}

const valuesOf = (counts: SealedCounts, key: string): Record<string, number> =>
  Object.fromEntries(
    Object.entries(counts).flatMap(([column, byKey]) => (byKey[key] ? [[column, byKey[key]]] : [])),
  );

/** Maximum number of processes that a refusal names. */
const maxNamed = 3;

function unableText(unable: readonly KeyMismatch[]): Detail {
  const names = unable
    .slice(0, maxNamed)
    .map(({ kind, host, pid }) => `the ${kind} on ${host} (pid ${pid})`);
  const more = unable.length > maxNamed ? `, and ${unable.length - maxNamed} more` : '';
  return detail('keyMismatch', { names: `${names.join(', ')}${more}` });
}
