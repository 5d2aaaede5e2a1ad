import { violatedConstraint } from '../../../shared/db/limits/database-errors.ts';
import type { Handle } from '../../../shared/db/pool.ts';
import {
  deleteInstallations,
  findInstallation,
  lockInstallations,
  selectInstallations,
} from '../../../shared/db/tables/installations.ts';
import { countRows, type RowCondition, rowMeets } from '../../../shared/db/tables/selection.ts';
import { shortenTokens } from '../../../shared/domain/admin/masking.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import { parseInstallationChanges } from '../../../shared/domain/installations/changes.ts';
import {
  deviceIdsOf,
  hasDeviceId,
  isPublicId,
} from '../../../shared/domain/installations/identity.ts';
import {
  aclOf,
  type Installation,
  installationDocument,
  pickMembers,
} from '../../../shared/domain/installations/installation.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import {
  parseInclude,
  resolveInclude,
  resolveIncludes,
} from '../../../shared/query/list/include.ts';
import { parseKeys, project } from '../../../shared/query/list/keys.ts';
import {
  compileList,
  compileRowCondition,
  parseListQuery,
} from '../../../shared/query/list/list.ts';
import { installationClass } from '../../../shared/query/schema.ts';
import { viewerOf } from '../../../shared/query/viewer.ts';
import { requireRead, requireWrite, type UserCaller, viewerFor } from '../accounts/caller.ts';
import type { ClientStorage, StorageAccount, StoringCaller } from '../client-storage.ts';
import type { ApiDeps } from '../deps.ts';
import { isAudited, recordChange } from '../operator/audit/audit.ts';
import { includeSourceFor } from '../queries/included-objects.ts';
import {
  type DeviceSave,
  InstallationWriter,
  type SavedInstallation,
} from './installation-writer.ts';
import { SaveGroups } from './save-groups.ts';
import type { WebPushKeys } from './web-push-keys.ts';

/** App of a call, and whether the call has the master key. */
export interface Caller {
  app: App;
  isMaster: boolean;
}

/** Caller of a write. */
type WritingCaller = StoringCaller & UserCaller;

/**
 * Returns a check that throws if the caller may not write to an installation
 * (protocol/installations.md#acl).
 */
const writeCheckFor =
  (caller: UserCaller) =>
  (current: Installation): void =>
    requireWrite(caller, { acl: aclOf(current) });

const includesAcl = (query: Record<string, unknown>): boolean => query.returnACL === true;

const maxIdsPerDelete = 1000;

/**
 * Registers, reads, changes and deletes installations
 * (protocol/installations.md#calls-for-installations).
 */
export class InstallationService {
  readonly #deps: ApiDeps;
  readonly #writer: InstallationWriter;
  readonly #groups: SaveGroups;
  readonly #storage: ClientStorage;
  readonly #keys: WebPushKeys;

  constructor(deps: ApiDeps, storage: ClientStorage, keys: WebPushKeys) {
    this.#deps = deps;
    this.#storage = storage;
    this.#keys = keys;
    this.#writer = new InstallationWriter(deps);
    this.#groups = new SaveGroups(deps);
  }

  /**
   * Handles POST. Updates the installation that the body names, or creates one
   * (protocol/installations.md#registration). The body's objectId has priority, then its
   * installationId, then its device token. `bodyBytes` is the size of the body. Concurrent calls
   * with the same ids result in one installation. Throws errors 105, 111, 112, 114, 116, 117, 137,
   * 429.
   */
  async register(
    caller: WritingCaller,
    body: JsonObject,
    bodyBytes: number,
  ): Promise<SavedInstallation> {
    const { app } = caller;
    const parsed = parseInstallationChanges(body, { isRegistration: true });
    const changes = await this.#keys.withKeyId(app.appId, parsed);
    const storage = this.#storage.accountOf('installations', caller);
    const requireWrite = writeCheckFor(caller);
    const device = { ids: deviceIdsOf(changes), changes, storage, requireWrite };
    const saved = await refundingFailure(
      storage,
      async () =>
        (await this.#groups.save(app.appId, device, bodyBytes)) ??
        refusingDuplicates(() => this.#saveAlone(app, device)),
    );
    this.#deps.absentKinds.forget(app.appId, saved.installation);
    return saved;
  }

  async #saveAlone(app: App, device: DeviceSave): Promise<SavedInstallation> {
    const { db } = this.#deps;
    const saved = await this.#writer.saveAtOnce(db, app, device);
    if (saved) return saved;
    device.storage?.refund();
    return db.transaction((tx) => this.#writer.save(tx, app, device));
  }

  /**
   * Handles PUT. Returns the new document and the members that the call wrote
   * (protocol/objects.md#replies-with-values). Devices keep their object id for years. If the id is
   * unknown and the body identifies a device, the device is registered again under this id, unless
   * it has another id (`InstallationWriter.save`). Throws error 1 for any other unknown id, error
   * 305 if the installation does not match `where`, and as `register`.
   */
  async update(
    caller: WritingCaller,
    objectId: string,
    { body, where }: { body: JsonObject; where: unknown },
  ): Promise<{ document: JsonObject; changed: JsonObject }> {
    const { app } = caller;
    const storage = this.#storage.accountOf('installations', caller);
    const changes = await this.#keys.withKeyId(app.appId, parseInstallationChanges(body));
    const requireWrite = writeCheckFor(caller);
    const condition = compileRowCondition(where, installationClass, viewerOf(app, caller));
    const change = () =>
      this.#change(caller, condition, async (tx) => {
        storage?.refund();
        const current = await lock(tx, app, objectId);
        if (current) {
          requireWrite(current);
          await requireCondition(tx, current.id, condition);
          const saved = await this.#writer.change(tx, app, {
            current,
            changes,
            storage,
            requireWrite,
            isRegistration: false,
          });
          if (isAudited())
            await recordUpdate(tx, app, { current, saved, touched: changes.touched });
          return saved;
        }
        const ids = { ...deviceIdsOf(changes), objectId };
        // An installation that does not exist matches no condition.
        if (condition || !isPublicId(objectId) || !hasDeviceId(ids))
          throw noSuchInstallation(objectId);
        return this.#writer.save(tx, app, {
          ids,
          changes,
          storage,
          requireWrite,
          isReturning: true,
        });
      });
    const { installation } = await refundingFailure(storage, () => refusingDuplicates(change));
    this.#deps.absentKinds.forget(app.appId, installation);
    const document = installationDocument(installation, {
      hasAcl: true,
      hasSubscription: caller.isMaster,
    });
    return { document, changed: pickMembers(document, changes.touched) };
  }

  /**
   * Returns an installation. Returns `{}` if the id is unknown (protocol/queries.md#reads-by-id).
   * Throws error 102 or 105 if `keys` or `include` is invalid, error 116 if the reply is too large.
   */
  async get(
    caller: UserCaller,
    objectId: string,
    query: Record<string, unknown>,
  ): Promise<JsonObject> {
    const keys = parseKeys(query.keys);
    const include = parseInclude(query.include, installationClass);
    const hasAcl = includesAcl(query);
    if (!isPublicId(objectId)) return {};
    const { db } = this.#deps;
    const found = await findInstallation(db, { appId: caller.app.appId, objectId });
    if (!found) return {};
    requireRead(caller, { acl: aclOf(found) });
    const document = installationDocument(found, { hasAcl, hasSubscription: caller.isMaster });
    if (include.size === 0) return project(document, keys, installationClass);
    const full = await this.#deps.queries.readFresh(caller, (tx) =>
      resolveInclude(document, include, includeSourceFor(caller, { db: tx, hasAcl })),
    );
    return project(full, keys, installationClass);
  }

  /**
   * Handles GET of the collection. Throws error 403 without permission, error 102, 105, 106 or 111
   * for the query, error 116 if the reply is too large, error 124 after a timeout.
   */
  async list(
    caller: UserCaller,
    query: Record<string, unknown>,
  ): Promise<{ results: JsonObject[]; count?: number }> {
    if (!caller.isMaster && !caller.app.options.allowInstallationQuery)
      throw refuse('forbiddenFind');
    const reader = viewerFor(caller);
    const hasAcl = includesAcl(query);
    return this.#deps.queries.readPrepared(caller, () => {
      const list = parseListQuery(query, installationClass, reader);
      const selection = compileList(list, installationClass, reader);
      return async (tx) => {
        const found = list.limit === 0 ? [] : await selectInstallations(tx, selection);
        const source = includeSourceFor(caller, { db: tx, hasAcl });
        const documents = await resolveIncludes(
          found.map((row) =>
            installationDocument(row, { hasAcl, hasSubscription: caller.isMaster }),
          ),
          list.include,
          source,
        );
        const results = documents.map((document) =>
          project(document, list.keys, installationClass),
        );
        return list.hasCount
          ? { results, count: await countRows(tx, 'installation', selection) }
          : { results };
      };
    });
  }

  /**
   * Deletes the installations of one id, or of several comma-separated ids. An unknown id counts as
   * deleted (protocol/objects.md#create-and-update). Throws error 403 without permission or if an
   * ACL denies it, error 305 if an installation does not match `where`.
   */
  async delete(caller: UserCaller, objectIds: string, where: unknown): Promise<void> {
    const { app, isMaster } = caller;
    if (!isMaster && !app.options.allowInstallationDelete) throw refuse('forbiddenDelete');
    const requestedIds = [...new Set(objectIds.split(',').filter(isPublicId))];
    if (requestedIds.length > maxIdsPerDelete)
      throw refuse('tooLarge', `At most ${maxIdsPerDelete} ids at once.`);
    const condition = compileRowCondition(where, installationClass, viewerOf(app, caller));
    await this.#change(caller, condition, async (tx) => {
      const locked = await lockInstallations(tx, app.appId, requestedIds);
      for (const { acl } of locked) requireWrite(caller, { acl: aclOf({ fields: { ACL: acl } }) });
      const ids = locked.map(({ id }) => id);
      // Unknown ids match no condition.
      if (condition && ids.length < requestedIds.length) throw refuse('noEffect');
      for (const id of ids) await requireCondition(tx, id, condition);
      await deleteInstallations(tx, app.appId, ids);
      const { appId } = app;
      if (ids.length > 0)
        await recordChange(tx, {
          action: 'installation.delete',
          appId,
          target: requestedIds.join(','),
        });
    });
  }

  /**
   * Runs `work` in a transaction. With a condition, uses the connections for client queries,
   * otherwise the connections for fast statements.
   */
  #change<T>(
    caller: Caller,
    condition: RowCondition | undefined,
    work: (tx: Handle) => Promise<T>,
  ): Promise<T> {
    const { db, queries } = this.#deps;
    return condition ? queries.change(caller, work) : db.transaction(work);
  }

  /** Returns the URL of an installation, built from PUBLIC_URL (protocol/admin-api.md#links). */
  urlOf({ objectId }: { objectId: string }): string {
    return `${this.#deps.config.publicUrl}/1.1/installations/${objectId}`;
  }
}

/** Undoes the counts of a write that fails. */
async function refundingFailure<T>(
  storage: StorageAccount | undefined,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    storage?.refund();
    throw error;
  }
}

/** Throws error 137 if another installation has the same unique id. */
async function refusingDuplicates<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw violatedConstraint(error) ? refuse('duplicate') : error;
  }
}

/** Audits a change that an operator makes, with shortened tokens. */
async function recordUpdate(
  tx: Handle,
  { appId }: App,
  {
    current,
    saved,
    touched,
  }: { current: Installation; saved: SavedInstallation; touched: ReadonlySet<string> },
): Promise<void> {
  const masked = (document: JsonObject) => shortenTokens(pickMembers(document, touched));
  await recordChange(tx, {
    action: 'installation.update',
    appId,
    target: current.objectId,
    before: masked(installationDocument(current, { hasAcl: true, hasSubscription: false })),
    after: masked(
      installationDocument(saved.installation, { hasAcl: true, hasSubscription: false }),
    ),
  });
}

async function requireCondition(
  tx: Handle,
  id: number,
  condition: RowCondition | undefined,
): Promise<void> {
  if (!condition) return;
  if (!(await rowMeets(tx, { table: 'installation', id }, condition))) throw refuse('noEffect');
}

async function lock(tx: Handle, app: App, objectId: string): Promise<Installation | undefined> {
  return isPublicId(objectId)
    ? findInstallation(tx, { appId: app.appId, objectId, isLocked: true })
    : undefined;
}

/** Returns the refusal of an unknown id. Quotes the id only if it has the form of an id. */
function noSuchInstallation(objectId: string): Error {
  const quotedId = isPublicId(objectId) ? objectId : '?';
  return refuse(
    'noSuchObject',
    `Could not find object by id '${quotedId}' for class '_Installation'.`,
  );
}
