import { forceBreaker, listBreakers } from '../../shared/db/tables/breakers.ts';
import { type BreakerView, type ForcedState, parseBreakerId } from '../../shared/domain/breaker.ts';
import { refuse } from '../../shared/domain/errors.ts';
import type { Means } from './means.ts';

/** Circuit breakers as an operator sees them, over all dispatchers (protocol/admin-api.md#breakers). */
export class BreakerService {
  readonly #means: Means;

  constructor(means: Means) {
    this.#means = means;
  }

  list(): Promise<BreakerView[]> {
    return listBreakers(this.#means.db);
  }

  /** Forces a breaker, or releases it with null. Throws 404 when no profile has this breaker. */
  async force(id: string, forced: ForcedState | null): Promise<BreakerView> {
    const key = parseBreakerId(id);
    const isKnown = key && (await this.#means.db.transaction((tx) => forceBreaker(tx, key, forced)));
    if (!isKnown) throw refuse('notFound', sentence);
    const [view] = await listBreakers(this.#means.db, key);
    if (!view) throw refuse('notFound', sentence);
    return view;
  }
}

const sentence = 'There is no such breaker: its id is <connector>:<appId>:<profile> of a push profile.';
