import { type Freeze, insertFreeze, listFreezes, releaseFreeze } from '../../../../shared/db/tables/apps.ts';
import { mayUseApp, type Operator } from '../../../../shared/domain/admin/operator.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import type { ApiDeps } from '../../deps.ts';
import { recordChange } from '../audit/actor.ts';

/** Freezes an app, or the whole service: its pushes are accepted and held (protocol/admin-api.md#freezes). */
export class FreezeService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /** Lists the freeze of the service and those of the operator's apps. */
  async list(operator: Operator): Promise<Freeze[]> {
    const all = await listFreezes(this.#deps.db);
    return all.filter(({ appId }) => appId === null || mayUseApp(operator, appId));
  }

  /** Freezes an app, or the service (null); a second freeze changes the reason. Throws 404 for an unknown app. */
  async freeze(operator: Operator, appId: string | null, reason: string): Promise<Freeze> {
    return this.#deps.db.transaction(async (tx) => {
      const freeze = await insertFreeze(tx, { appId, reason, by: operator.name });
      if (!freeze) throw refuse('notFound', detail('noApp'));
      await recordChange(tx, { ...changeOf('push.freeze', appId), after: { reason } });
      return freeze;
    });
  }

  /** Ends a freeze and returns it; the held pushes go on. Throws 404 if there is no such freeze. */
  async release(appId: string | null): Promise<Freeze> {
    return this.#deps.db.transaction(async (tx) => {
      const freeze = await releaseFreeze(tx, appId);
      if (!freeze) throw refuse('notFound', detail(appId === null ? 'serviceNotFrozen' : 'appNotFrozen'));
      await recordChange(tx, { ...changeOf('push.release', appId), before: { reason: freeze.reason } });
      return freeze;
    });
  }
}

const changeOf = (action: string, appId: string | null) => ({
  action,
  target: appId ?? 'service',
  ...(appId === null ? {} : { appId }),
});
