import { deleteApp, findApp, insertApp, listApps, updateApp } from '../../shared/db/tables/apps.ts';
import type { App, AppOptionsPatch, Edition, Plan } from '../../shared/domain/app.ts';
import { planProblem } from '../../shared/domain/app.ts';
import { authPlatformProblem } from '../../shared/domain/auth-platforms.ts';
import { refuse } from '../../shared/domain/errors.ts';
import { newAppId, newKey } from '../../shared/domain/ids.ts';
import type { Means } from './means.ts';
import { mailTemplateProblem } from './verification/mails.ts';

export interface NewAppRequest {
  name: string;
  edition?: Edition | undefined;
  plan?: Plan | undefined;
  options?: AppOptionsPatch | undefined;
}

/** Applications: their keys and options (contract.md "Admin API"). */
export class AppService {
  readonly #means: Means;

  constructor(means: Means) {
    this.#means = means;
  }

  async create(request: NewAppRequest): Promise<App> {
    const plan = request.plan ?? 'commercial';
    const options = request.options ?? {};
    const problem = optionProblem(plan, options);
    if (problem) throw refuse('invalidParameter', problem);
    return insertApp(this.#means.db, this.#means.vault, {
      appId: newAppId(),
      name: request.name,
      edition: request.edition ?? 'home',
      plan,
      keys: { appKey: newKey(), masterKey: newKey(), hookKey: newKey() },
      options,
    });
  }

  list(): Promise<App[]> {
    return listApps(this.#means.db, this.#means.vault);
  }

  /** Throws 404 when there is no such app. */
  get(appId: string): Promise<App> {
    return requireApp(this.#means, appId);
  }

  async change(appId: string, patch: { name?: string; options?: AppOptionsPatch }): Promise<App> {
    const { db, vault, directory } = this.#means;
    const changed = await db.transaction((tx) =>
      updateApp(tx, vault, appId, (app) => {
        const problem = optionProblem(app.plan, patch.options ?? {});
        if (problem) throw refuse('invalidParameter', problem);
        return patch;
      }),
    );
    directory.forget(appId);
    return changed ?? noSuchApp();
  }

  async delete(appId: string): Promise<void> {
    const isDeleted = await this.#means.db.transaction((tx) => deleteApp(tx, appId));
    this.#means.directory.forget(appId);
    if (!isDeleted) noSuchApp();
  }
}

const optionProblem = (plan: Plan, options: AppOptionsPatch): string | undefined =>
  planProblem(plan, options) ??
  authPlatformProblem(options.authPlatforms ?? {}) ??
  mailTemplateProblem(options);

/** The app as it is stored now. Throws 404 when there is none. */
export async function requireApp({ db, vault }: Means, appId: string): Promise<App> {
  return (await findApp(db, vault, appId)) ?? noSuchApp();
}

export function noSuchApp(): never {
  throw refuse('notFound', 'There is no such app.');
}
