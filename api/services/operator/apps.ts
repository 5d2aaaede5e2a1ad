import { isDeepStrictEqual } from 'node:util';
import { sleep } from '../../../shared/clock.ts';
import {
  deleteApp,
  findApp,
  insertApp,
  listApps,
  updateApp,
} from '../../../shared/db/tables/apps.ts';
import { addressesIn } from '../../../shared/domain/addresses.ts';
import { masked } from '../../../shared/domain/admin/masking.ts';
import {
  hasRole,
  mayUseApp,
  type Operator,
  type OperatorRole,
} from '../../../shared/domain/admin/operator.ts';
import {
  type App,
  type AppKeys,
  type AppOptionsPatch,
  areDistinct,
  type Edition,
  type KeyName,
  movedInOptions,
  operatorOptions,
  type Plan,
  planProblem,
} from '../../../shared/domain/apps/app.ts';
import { Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import { newAppId, newKey } from '../../../shared/domain/ids.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { jsonObject } from '../../../shared/domain/json-schema.ts';
import { detail } from '../../../shared/domain/texts/texts.ts';
import { authPlatformHint } from '../../../shared/domain/users/auth-platforms.ts';
import type { ApiDeps } from '../deps.ts';
import { mailTemplateHint } from '../verification/mails.ts';
import { requirePublicAddresses } from './access/member-rights.ts';
import { type ReadAudit, recordChange } from './audit/audit.ts';

/**
 * Time for which processes cache an app, including the time of its query
 * (protocol/admin-api.md#changes).
 */
const rememberedMs = 1000;

export interface NewAppRequest {
  name: string;
  edition?: Edition | undefined;
  plan?: Plan | undefined;
  options?: AppOptionsPatch | undefined;
  /** Id and keys of an app that moves in from another service. Missing keys are generated. */
  appId?: string | undefined;
  appKey?: string | undefined;
  masterKey?: string | undefined;
  hookKey?: string | undefined;
}

/** Changed members of an app. */
export interface AppPatch {
  name?: string;
  options?: AppOptionsPatch;
}

/** Creates, changes and deletes apps with their keys and options (protocol/admin-api.md#apps). */
export class AppService {
  readonly #deps: ApiDeps;
  readonly #reads: ReadAudit;

  constructor(deps: ApiDeps, reads: ReadAudit) {
    this.#deps = deps;
    this.#reads = reads;
  }

  /**
   * Creates an app. If the request contains an id, `movedInOptions` are the defaults. Throws error
   * 400 if the plan forbids an option or keys are equal, error 409 if the id is taken, error 503 if
   * CARILLON_SECRET does not match the database.
   */
  async create(request: NewAppRequest): Promise<App> {
    const { appId = newAppId(), plan = 'commercial' } = request;
    const options = { ...(request.appId === undefined ? {} : movedInOptions), ...request.options };
    const message = optionError(plan, options);
    if (message) throw refuse('invalidParameter', message);
    requirePublicAddresses(addressesIn(options));
    const { db, vault, appCache, readiness } = this.#deps;
    // Keys encrypted with a wrong CARILLON_SECRET would be unreadable with the correct one.
    if ((await readiness.hint()) !== undefined)
      throw new Refusal('misconfigured', { retryAfterSeconds: 60 });
    const edition = request.edition ?? 'home';
    const app = { appId, name: request.name, edition, plan, keys: keysOf(request), options };
    const created = await db.transaction(async (tx) => {
      const inserted = await insertApp(tx, vault, app);
      const after = { name: app.name, edition, plan, options: maskedOptions(options) };
      if (inserted) await recordChange(tx, { action: 'app.create', appId, target: appId, after });
      return inserted;
    });
    if (!created) throw refuse('conflict', detail('appExists'));
    appCache.forget(appId);
    return created;
  }

  /** Lists the operator's apps. If an owner reads them, the read of their keys is audited. */
  async list(operator: Operator): Promise<App[]> {
    const all = await listApps(this.#deps.db, this.#deps.vault);
    await this.#recordKeyRead(operator, undefined);
    return all.filter(({ appId }) => mayUseApp(operator, appId));
  }

  /** Returns an app. Throws error 404 if it does not exist. */
  find(appId: string): Promise<App> {
    return requireApp(this.#deps, appId);
  }

  /**
   * Returns an app to an operator. If an owner reads it, the read of its keys is audited. Throws
   * error 404 if the app does not exist.
   */
  async read(operator: Operator, appId: string): Promise<App> {
    const app = await requireApp(this.#deps, appId);
    await this.#recordKeyRead(operator, appId);
    return app;
  }

  async #recordKeyRead({ role }: Operator, appId: string | undefined): Promise<void> {
    if (!hasRole(role, 'owner')) return;
    await this.#reads.record({ action: 'app.read-keys', appId, target: appId ?? 'all apps' });
  }

  /** Returns an app. Throws error 404 if it does not exist. */
  get(appId: string): Promise<App> {
    return requireApp(this.#deps, appId);
  }

  /**
   * Changes an app. Throws error 404 if the app does not exist, error 400 for options that its plan
   * forbids and for private addresses, error 403 for options that only an owner may change.
   */
  async change(appId: string, patch: AppPatch, role: OperatorRole = 'owner'): Promise<App> {
    const { db, vault, appCache } = this.#deps;
    requirePublicAddresses(addressesIn(patch.options ?? {}));
    const changed = await db.transaction(async (tx) => {
      let before: JsonObject = {};
      let applied = patch;
      const updated = await updateApp(tx, vault, appId, (app) => {
        const message = optionError(app.plan, patch.options ?? {});
        if (message) throw refuse('invalidParameter', message);
        applied = patchOf(app, patch, role);
        before = auditedMembers(app, applied);
        return applied;
      });
      const change = { action: 'app.update', appId, target: appId, before };
      if (updated) await recordChange(tx, { ...change, after: auditedMembers(updated, applied) });
      return updated;
    });
    appCache.forget(appId);
    return changed ?? noSuchApp();
  }

  /**
   * Replaces a key. The old key stays valid for `graceSeconds`. Processes cache an app for half a
   * second, so this resolves when every process accepts the new key. Throws error 404 if the app
   * does not exist.
   */
  async rotateKey(appId: string, name: KeyName, graceSeconds: number) {
    const { appCache, clock, db, vault } = this.#deps;
    const value = newKey();
    const oldValidUntilMs = clock.now() + graceSeconds * 1000;
    const oldValidUntil = graceSeconds > 0 ? new Date(oldValidUntilMs) : null;
    const rotated = await db.transaction(async (tx) => {
      const app = await updateApp(tx, vault, appId, ({ oldKeys, [name]: replaced }) => ({
        keys: {
          ...{ [name]: value },
          oldKeys: { ...oldKeys, [name]: { value: replaced, validUntilMs: oldValidUntilMs } },
        },
      }));
      const after = { key: name, oldValidUntil: oldValidUntil?.toISOString() ?? null };
      if (app) await recordChange(tx, { action: 'app.rotate-key', appId, target: appId, after });
      return app;
    });
    appCache.forget(appId);
    if (!rotated) noSuchApp();
    await sleep(rememberedMs);
    return { key: name, value, oldValidUntil };
  }

  async delete(appId: string): Promise<void> {
    const isDeleted = await this.#deps.db.transaction(async (tx) => {
      const hasDeleted = await deleteApp(tx, appId);
      if (hasDeleted) await recordChange(tx, { action: 'app.delete', appId, target: appId });
      return hasDeleted;
    });
    this.#deps.appCache.forget(appId);
    if (!isDeleted) noSuchApp();
  }
}

/** Returns options for the audit, with masked credentials of platforms. */
const maskedOptions = ({ authPlatforms, ...options }: AppOptionsPatch): JsonObject => ({
  ...jsonObject.parse(options),
  ...(authPlatforms ? { authPlatforms: masked(authPlatforms) } : {}),
});

/**
 * Returns a patch without unchanged owner options, including unchanged masked values. Throws error
 * 403 if a caller other than an owner changes such an option.
 */
function patchOf({ options }: App, patch: AppPatch, role: OperatorRole): AppPatch {
  if (!patch.options || hasRole(role, 'owner')) return patch;
  const current = new Map<string, unknown>(Object.entries(options));
  const kept = Object.entries(patch.options).filter(([name, value]) => {
    if (operatorOptions.has(name)) return true;
    const isMasked =
      name === 'authPlatforms' && isDeepStrictEqual(value, masked(options.authPlatforms));
    if (isMasked || isDeepStrictEqual(value, current.get(name))) return false;
    throw refuse('forbidden', detail('ownerOption', { option: name }));
  });
  return { ...patch, options: Object.fromEntries(kept) };
}

/** Returns the members of an app that a patch changes. */
function auditedMembers(app: App, patch: AppPatch): JsonObject {
  const changed = Object.entries(app.options).filter(([name]) =>
    Object.hasOwn(patch.options ?? {}, name),
  );
  return {
    ...(patch.name === undefined ? {} : { name: app.name }),
    ...(changed.length === 0 ? {} : { options: maskedOptions(Object.fromEntries(changed)) }),
  };
}

/** Returns the keys of a request and generates missing keys. Throws error 400 if keys are equal. */
function keysOf({ appKey, masterKey, hookKey }: NewAppRequest): AppKeys {
  if (!areDistinct({ appKey, masterKey, hookKey }))
    throw refuse('invalidParameter', detail('keysDiffer'));
  return {
    appKey: appKey ?? newKey(),
    masterKey: masterKey ?? newKey(),
    hookKey: hookKey ?? newKey(),
  };
}

const optionError = (plan: Plan, options: AppOptionsPatch): string | undefined =>
  planProblem(plan, options) ??
  authPlatformHint(options.authPlatforms ?? {}) ??
  mailTemplateHint(options);

/** Reads an app from the database. Throws error 404 if the app does not exist. */
export async function requireApp({ db, vault }: ApiDeps, appId: string): Promise<App> {
  return (await findApp(db, vault, appId)) ?? noSuchApp();
}

export function noSuchApp(): never {
  throw refuse('notFound', detail('noApp'));
}
