import type { Clock } from '../../shared/clock.ts';
import { ShortCache } from '../../shared/db/cache/short-cache.ts';
import type { Handle } from '../../shared/db/pool.ts';
import { listFreezes } from '../../shared/db/tables/apps/freezes.ts';
import type { Metrics } from '../../shared/metrics.ts';

/** Scope of the whole service, beside the ids of apps. */
const service = '';

/** The apps whose pushes are held, at most half a second old; a change is notified (protocol/admin-api.md#freezes). */
export class Freezes {
  readonly #scopes: ShortCache<Set<string>>;

  constructor(db: Handle, clock: Clock) {
    this.#scopes = new ShortCache(clock, async () => {
      const freezes = await listFreezes(db);
      return new Set(freezes.map(({ appId }) => appId ?? service));
    });
  }

  /** Tells whether pushes of the app are held. */
  async holds(appId: string): Promise<boolean> {
    const scopes = await this.#scopes.get('');
    return scopes.size > 0 && (scopes.has(service) || scopes.has(appId));
  }

  /** Writes the number of freezes into the gauge. */
  async reportTo({ freezes }: Metrics): Promise<void> {
    const scopes = await this.#scopes.get('');
    const ofService = scopes.has(service) ? 1 : 0;
    freezes.set({ scope: 'service' }, ofService);
    freezes.set({ scope: 'app' }, scopes.size - ofService);
  }

  /** Reads the freezes again with the next question. */
  refresh(): void {
    this.#scopes.forget('');
  }
}
