import type { Handle } from '../../../shared/db/pool.ts';
import { listBreakers, overrideBreaker } from '../../../shared/db/tables/gateways.ts';
import { mayUseApp, type Operator } from '../../../shared/domain/admin/operator.ts';
import { type Meaning, meaningOf } from '../../../shared/domain/admin/reasons/meaning.ts';
import {
  type BreakerKey,
  type BreakerView,
  breakerIdOf,
  type GatewayFailure,
  type OverrideState,
  parseBreakerId,
} from '../../../shared/domain/breaker.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import { reasonText } from '../../../shared/domain/reasons.ts';
import { detail } from '../../../shared/domain/texts/texts.ts';
import type { ApiDeps } from '../deps.ts';
import { recordChange } from './audit/audit.ts';

/** Breaker in the form of the admin API. */
export type BreakerReply = Omit<BreakerView, 'lastFailure'> & {
  lastFailure: (GatewayFailure & { meaning: Meaning }) | null;
};

/** Adds the meaning of a breaker's last failure. */
export const toBreakerReply = (view: BreakerView): BreakerReply => ({
  ...view,
  lastFailure: view.lastFailure && {
    reason: reasonText(view.lastFailure.reason),
    meaning: meaningOf(view.lastFailure.reason),
    at: view.lastFailure.at,
  },
});

/** Lists and forces the circuit breakers of all dispatchers (protocol/admin-api.md#breakers). */
export class BreakerService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /** Lists the breakers of the operator's apps. */
  async list(operator: Operator): Promise<BreakerReply[]> {
    const all = await listBreakers(this.#deps.db);
    return all.filter(({ appId }) => mayUseApp(operator, appId)).map(toBreakerReply);
  }

  /**
   * Forces a breaker open or closed. Null ends the override. Throws error 404 if no profile has
   * this breaker.
   */
  async force(operator: Operator, id: string, forced: OverrideState | null): Promise<BreakerReply> {
    const key = parseBreakerId(id);
    if (key && !mayUseApp(operator, key.appId)) throw refuse('forbidden', detail('otherApps'));
    const isKnown = key && (await this.#override(key, forced));
    if (!isKnown) throw refuse('notFound', noSuchBreaker);
    const [view] = await listBreakers(this.#deps.db, key);
    if (!view) throw refuse('notFound', noSuchBreaker);
    return toBreakerReply(view);
  }

  /** Reports to webhooks that an override has opened or closed a breaker. */
  #emit(tx: Handle, { id, appId, connector, profile, state }: BreakerView): Promise<void> {
    const type = state === 'open' ? 'breaker.opened' : 'breaker.closed';
    const data = { breaker: id, connector, profile, reason: null, isForced: true };
    return this.#deps.webhooks.emit(tx, { appId, type, data });
  }

  #override(key: BreakerKey, forced: OverrideState | null): Promise<boolean> {
    return this.#deps.db.transaction(async (tx) => {
      const [before] = await listBreakers(tx, key);
      const isKnown = await overrideBreaker(tx, key, forced);
      const change = { action: 'breaker.force', appId: key.appId, target: breakerIdOf(key) };
      const old = { forced: before?.forced ?? null };
      if (!isKnown) return false;
      await recordChange(tx, { ...change, before: old, after: { forced } });
      const [after] = await listBreakers(tx, key);
      const wasOpen = before?.state === 'open';
      if (after && (after.state === 'open') !== wasOpen) await this.#emit(tx, after);
      return true;
    });
  }
}

const noSuchBreaker = detail('noBreaker');
