import type { Clock } from '../../shared/clock.ts';
import type { Handle } from '../../shared/db/pool.ts';
import { listFreezes } from '../../shared/db/tables/apps.ts';
import type { Metrics } from '../../shared/metrics.ts';
import { changeMaxAgeMs, TtlCache } from '../../shared/ttl-cache.ts';

/** Scope of the whole service, beside the ids of apps. */
const service = '';

/**
 * The apps whose pushes are held, at most half a second old; a change is notified
 * (protocol/admin-api.md#freezes).
 */
export class Freezes {
  readonly #db: Handle;
  readonly #cache: TtlCache<'scopes', Promise<Set<string>>>;

  constructor(db: Handle, clock: Clock) {
    this.#db = db;
    this.#cache = new TtlCache({ clock, maxAgeMs: changeMaxAgeMs });
  }

  /** Tells whether pushes of the app are held. */
  async holds(appId: string): Promise<boolean> {
    const scopes = await this.#scopes();
    return scopes.size > 0 && (scopes.has(service) || scopes.has(appId));
  }

  /** Writes the number of freezes into the gauge. */
  async reportTo({ freezes }: Metrics): Promise<void> {
    const scopes = await this.#scopes();
    const ofService = scopes.has(service) ? 1 : 0;
    freezes.set({ scope: 'service' }, ofService);
    freezes.set({ scope: 'app' }, scopes.size - ofService);
  }

  #scopes(): Promise<Set<string>> {
    return this.#cache.getOrMake('scopes', async () => {
      const freezes = await listFreezes(this.#db);
      return new Set(freezes.map(({ appId }) => appId ?? service));
    });
  }

  /** Reads the freezes again with the next question. */
  refresh(): void {
    this.#cache.delete('scopes');
  }
}
