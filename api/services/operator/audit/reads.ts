import { hourMs } from '../../../../shared/clock.ts';
import { TtlCache } from '../../../../shared/ttl-cache.ts';
import type { ApiDeps } from '../../deps.ts';
import { currentActor, recordChange } from './actor.ts';

/** Time in which the same read of the same reader is recorded once. */
const onceInMs = hourMs;
/** Reads that are remembered; a further one replaces the oldest. */
const maxRemembered = 10_000;

/** Read of secrets or of data of people. */
export interface Read {
  /** `<noun>.<verb>`. */
  action: string;
  appId?: string | undefined;
  target: string;
  /** Members that a condition named; undefined for other reads. */
  members?: Iterable<string>;
}

/**
 * Records who read secrets or asked for data of people (protocol/admin-api.md#audit). Scripts and
 * pages repeat their reads, so each process records one read of one token once an hour: the audit
 * cannot be flooded.
 */
export class ReadAudit {
  readonly #deps: Pick<ApiDeps, 'db' | 'clock'>;
  readonly #recorded: TtlCache<string, true>;

  constructor(deps: Pick<ApiDeps, 'db' | 'clock'>) {
    this.#deps = deps;
    this.#recorded = new TtlCache({ clock: deps.clock, maxAgeMs: onceInMs, maxEntries: maxRemembered });
  }

  /** Records a read before its reply is sent; with `members`, those that are new. */
  async note({ action, appId, target, members }: Read): Promise<void> {
    const actor = currentActor();
    if (!actor) return;
    const keyOf = (member: string) => JSON.stringify([actor.tokenId, action, appId, target, member]);
    const isNew = (member: string) => !this.#recorded.get(keyOf(member));
    const found = [...(members ?? [''])].filter(isNew).sort();
    if (found.length === 0) return;
    for (const member of found) this.#recorded.set(keyOf(member), true);
    try {
      const after = members ? { members: found } : undefined;
      await recordChange(this.#deps.db, { action, appId, target, after });
    } catch (error) {
      for (const member of found) this.#recorded.delete(keyOf(member));
      throw error;
    }
  }
}
