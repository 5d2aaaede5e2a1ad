import { listAppIds } from '../../../../shared/db/tables/apps.ts';
import {
  type Hit,
  searchApps,
  searchInstallations,
  searchPushes,
  searchUsers,
} from '../../../../shared/db/tables/console.ts';
import { hasRole, mayUseApp, type Operator } from '../../../../shared/domain/admin/operator.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import type { ApiDeps } from '../../deps.ts';

/** Apps in which ids are looked up: each costs look-ups in several indexes. */
const maxApps = 1000;

/** Finds apps, pushes, installations and users by their ids (protocol/admin-api.md#search). */
export class SearchService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /**
   * Searches one app, or the first 1,000 of the operator. Users are for the role operator on.
   * Throws 403 for another app.
   */
  async search(operator: Operator, q: string, app: string | undefined): Promise<Hit[]> {
    if (app !== undefined && !mayUseApp(operator, app)) throw refuse('forbidden', detail('otherApps'));
    // PostgreSQL refuses NUL, so nothing has such a name.
    if (q.includes('\0')) return [];
    const { db } = this.#deps;
    const all = app === undefined ? (operator.apps ?? (await listAppIds(db))) : [app];
    const apps = all.slice(0, maxApps);
    const found = await Promise.all([
      app === undefined ? searchApps(db, operator.apps, q) : [],
      searchPushes(db, apps, q),
      searchInstallations(db, apps, q),
      hasRole(operator.role, 'operator') ? searchUsers(db, apps, q) : [],
    ]);
    return found.flat();
  }
}
