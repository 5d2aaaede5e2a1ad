import { deleteApp, findApp, insertApp, listApps, updateApp } from '../../../shared/db/tables/apps/apps.ts';
import { mayUseApp, type Operator } from '../../../shared/domain/admin/operator.ts';
import type { App, AppOptionsPatch, Edition, Plan } from '../../../shared/domain/apps/app.ts';
import { movedInOptions, planProblem } from '../../../shared/domain/apps/app.ts';
import { type AppKeys, areDistinct } from '../../../shared/domain/apps/identity.ts';
import { Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import { newAppId, newKey } from '../../../shared/domain/ids.ts';
import { authPlatformHint } from '../../../shared/domain/users/auth-platforms.ts';
import type { ApiDeps } from '../deps.ts';
import { mailTemplateHint } from '../verification/mails.ts';

export interface NewAppRequest {
  name: string;
  edition?: Edition | undefined;
  plan?: Plan | undefined;
  options?: AppOptionsPatch | undefined;
  /** Id and keys of an app that moves in; a missing one is generated. */
  appId?: string | undefined;
  appKey?: string | undefined;
  masterKey?: string | undefined;
  hookKey?: string | undefined;
}

/** Creates, changes and deletes apps with their keys and options (protocol/admin-api.md#apps). */
export class AppService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /**
   * Creates an app. With an id in the request, `movedInOptions` are its defaults. Throws 400 for options that the plan
   * forbids and for equal keys, 409 when the id is taken, 503 when CARILLON_SECRET is not the one of the database.
   */
  async create(request: NewAppRequest): Promise<App> {
    const { appId = newAppId(), plan = 'commercial' } = request;
    const options = { ...(request.appId === undefined ? {} : movedInOptions), ...request.options };
    const message = optionError(plan, options);
    if (message) throw refuse('invalidParameter', message);
    const { db, vault, appCache, readiness } = this.#deps;
    // Keys encrypted with a wrong CARILLON_SECRET would be unreadable once the right one is set.
    if ((await readiness.hint()) !== undefined) throw new Refusal('misconfigured', { retryAfterSeconds: 60 });
    const edition = request.edition ?? 'home';
    const app = { appId, name: request.name, edition, plan, keys: keysOf(request), options };
    const created = await insertApp(db, vault, app);
    if (!created) throw refuse('conflict', 'There is an app with this id already.');
    appCache.forget(appId);
    return created;
  }

  /** Lists the operator's apps. */
  async list(operator: Operator): Promise<App[]> {
    const all = await listApps(this.#deps.db, this.#deps.vault);
    return all.filter(({ appId }) => mayUseApp(operator, appId));
  }

  /** Throws 404 when there is no such app. */
  get(appId: string): Promise<App> {
    return requireApp(this.#deps, appId);
  }

  async change(appId: string, patch: { name?: string; options?: AppOptionsPatch }): Promise<App> {
    const { db, vault, appCache } = this.#deps;
    const changed = await db.transaction((tx) =>
      updateApp(tx, vault, appId, (app) => {
        const message = optionError(app.plan, patch.options ?? {});
        if (message) throw refuse('invalidParameter', message);
        return patch;
      }),
    );
    appCache.forget(appId);
    return changed ?? noSuchApp();
  }

  async delete(appId: string): Promise<void> {
    const isDeleted = await this.#deps.db.transaction((tx) => deleteApp(tx, appId));
    this.#deps.appCache.forget(appId);
    if (!isDeleted) noSuchApp();
  }
}

/** Returns the keys of a request, and generates the others. Throws 400 for equal keys. */
function keysOf({ appKey, masterKey, hookKey }: NewAppRequest): AppKeys {
  if (!areDistinct({ appKey, masterKey, hookKey }))
    throw refuse('invalidParameter', 'appKey, masterKey and hookKey must differ from each other.');
  return { appKey: appKey ?? newKey(), masterKey: masterKey ?? newKey(), hookKey: hookKey ?? newKey() };
}

const optionError = (plan: Plan, options: AppOptionsPatch): string | undefined =>
  planProblem(plan, options) ?? authPlatformHint(options.authPlatforms ?? {}) ?? mailTemplateHint(options);

/** Reads an app from the database. Throws 404 when there is no such app. */
export async function requireApp({ db, vault }: ApiDeps, appId: string): Promise<App> {
  return (await findApp(db, vault, appId)) ?? noSuchApp();
}

export function noSuchApp(): never {
  throw refuse('notFound', 'There is no such app.');
}
