import type { Clock } from '../../shared/clock.ts';
import type { Handle } from '../../shared/db/pool.ts';
import { listFreezes } from '../../shared/db/tables/apps.ts';
import type { Metrics } from '../../shared/metrics.ts';
import { changeMaxAgeMs, TtlCache } from '../../shared/ttl-cache.ts';

/**
 * Caches which apps are frozen, for at most half a second. A notification refreshes the cache
 * earlier (protocol/admin-api.md#freezes).
 */
export class Freezes {
  readonly #db: Handle;
  /** Ids of the frozen apps, and null while the service is frozen. */
  readonly #cache: TtlCache<'scopes', Promise<Set<string | null>>>;

  constructor(db: Handle, clock: Clock) {
    this.#db = db;
    this.#cache = new TtlCache({ clock, maxAgeMs: changeMaxAgeMs });
  }

  /** Returns whether the app or the service is frozen. */
  async isFrozen(appId: string): Promise<boolean> {
    const scopes = await this.#scopes();
    return scopes.size > 0 && (scopes.has(null) || scopes.has(appId));
  }

  /** Sets the gauge to the number of freezes. */
  async reportTo({ freezes }: Metrics): Promise<void> {
    const scopes = await this.#scopes();
    const ofService = scopes.has(null) ? 1 : 0;
    freezes.set({ scope: 'service' }, ofService);
    freezes.set({ scope: 'app' }, scopes.size - ofService);
  }

  #scopes(): Promise<Set<string | null>> {
    return this.#cache.getOrMake('scopes', async () => {
      const freezes = await listFreezes(this.#db);
      return new Set(freezes.map(({ appId }) => appId));
    });
  }

  /** Drops the cache, so that the next call reads the freezes again. */
  refresh(): void {
    this.#cache.delete('scopes');
  }
}
