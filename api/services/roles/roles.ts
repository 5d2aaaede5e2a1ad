import type { Clock } from '../../../shared/clock.ts';
import {
  isDeadlock,
  isMissingReference,
  violatedConstraint,
} from '../../../shared/db/limits/database-errors.ts';
import type { Handle } from '../../../shared/db/pool.ts';
import {
  addMembers,
  countRolesLocked,
  deleteRole,
  findRole,
  findRolesOfUser,
  hasAnyRole,
  insertRole,
  removeMembers,
  updateRole,
} from '../../../shared/db/tables/roles.ts';
import { type RowCondition, rowMeets } from '../../../shared/db/tables/selection.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import { newObjectId } from '../../../shared/domain/ids.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import {
  changedRole,
  type MemberStep,
  newRole,
  type Role,
  type RoleChanges,
  type RoleDraft,
  readRoleChanges,
  roleDocument,
} from '../../../shared/domain/roles/role.ts';
import { compileRowCondition } from '../../../shared/query/list/list.ts';
import { roleClass } from '../../../shared/query/schema.ts';
import { changeMaxAgeMs, TtlCache } from '../../../shared/ttl-cache.ts';
import { isObjectId, requireWrite, type UserCaller, viewerFor } from '../accounts/caller.ts';
import type { ClientStorage, StorageAccount, StoringCaller } from '../client-storage.ts';
import type { ApiDeps } from '../deps.ts';

/** Saved role, with the data for the reply. */
export interface SavedRole {
  document: JsonObject;
  /**
   * Members that the call wrote, with their new values (protocol/objects.md#replies-with-values).
   */
  changed: JsonObject;
}

/** Caller of a write. */
type RoleCaller = UserCaller & StoringCaller;

const maxIdsPerDelete = 100;
/** Size of a member's row with its index entries. */
const memberRowBytes = 96;
/** Maximum number of tries after deadlocks. */
const maxTries = 3;

/** Maximum number of cached users. Each has up to a thousand role names. */
const maxCachedUsers = 2000;

/** Cache of the roles of users. Entries are at most half a second old. */
export class RoleCache {
  readonly #db: Handle;
  readonly #apps: TtlCache<string, Promise<boolean>>;
  readonly #users: TtlCache<string, Promise<readonly string[]>>;

  constructor(db: Handle, clock: Clock, maxUsers = maxCachedUsers) {
    this.#db = db;
    this.#apps = new TtlCache({ clock, maxAgeMs: changeMaxAgeMs });
    this.#users = new TtlCache({ clock, maxAgeMs: changeMaxAgeMs, maxEntries: maxUsers });
  }

  /** Number of cached users. */
  get size(): number {
    return this.#users.size;
  }

  /** Returns the role names of a user. In an app without roles, needs no query per user. */
  async rolesOf(appId: string, userId: number): Promise<readonly string[]> {
    if (!(await this.#apps.getOrMake(appId, () => hasAnyRole(this.#db, appId)))) return [];
    return this.#users.getOrMake(`${appId} ${userId}`, () =>
      findRolesOfUser(this.#db, appId, userId),
    );
  }

  /**
   * Drops the cached users of an app. The process that changes the app's roles calls this, so that
   * it sees the change at once.
   */
  forget(appId: string): void {
    this.#apps.delete(appId);
    this.#users.deleteWhere((key) => key.startsWith(`${appId} `));
  }
}

/** Creates, changes and deletes roles, if their ACLs allow it (protocol/roles.md#role-fields). */
export class RoleService {
  readonly #deps: Pick<ApiDeps, 'config' | 'db' | 'queries' | 'clock'>;
  readonly #roleCache: RoleCache;
  readonly #storage: ClientStorage;

  constructor(
    deps: Pick<ApiDeps, 'config' | 'db' | 'queries' | 'clock'>,
    { roleCache, storage }: { roleCache: RoleCache; storage: ClientStorage },
  ) {
    this.#deps = deps;
    this.#roleCache = roleCache;
    this.#storage = storage;
  }

  /**
   * Creates a role (POST). Throws error 403 if the app's option `allowRoleCreate` is off, error 137
   * if the name is taken, error 154 if the option `maxRoles` is reached, errors 116 and 429 for the
   * storage limits of an app key, and as `readRoleChanges` and `newRole`.
   */
  async create(caller: RoleCaller, body: JsonObject): Promise<SavedRole> {
    const { app, isMaster } = caller;
    if (!isMaster && !app.options.allowRoleCreate) throw refuse('forbiddenCreate');
    const changes = readRoleChanges(body);
    const draft = newRole(changes, { isMaster });
    return this.#change(caller, undefined, async (tx, storage) => {
      storage?.create(roleBytes(draft), addedBytes(changes));
      if ((await countRolesLocked(tx, app.appId)) >= app.options.maxRoles)
        throw refuse(
          'thresholdExceeded',
          `The app has ${app.options.maxRoles} roles (option maxRoles).`,
        );
      const role = await insertRole(tx, app.appId, {
        objectId: newObjectId(),
        draft,
        now: this.#now(),
      });
      await writeMembers(tx, app, role, changes.members);
      return savedRole(role, changes);
    });
  }

  /**
   * Updates a role (PUT). Throws error 1 if the id is unknown, error 403 if the ACL denies it,
   * error 305 if the role does not match `where`, error 117 if the name changes, and as `create`.
   */
  async update(
    caller: RoleCaller,
    objectId: string,
    { body, where }: { body: JsonObject; where: unknown },
  ): Promise<SavedRole> {
    const { app } = caller;
    const changes = readRoleChanges(body);
    const condition = compileRowCondition(where, roleClass, viewerFor(caller));
    return this.#change(caller, condition, async (tx, storage) => {
      const current = await lock(tx, app, objectId);
      if (!current)
        throw refuse(
          'noSuchObject',
          `Could not find object by id '${isObjectId(objectId) ? objectId : '?'}' for class '_Role'.`,
        );
      requireWrite(caller, current);
      await requireCondition(tx, current, condition);
      const draft = changedRole(current, changes);
      storage?.change(roleBytes(draft), roleBytes(current), addedBytes(changes));
      const role = await updateRole(tx, app.appId, { id: current.id, draft, now: this.#now() });
      await writeMembers(tx, app, role, changes.members);
      return savedRole(role, changes);
    });
  }

  /**
   * Deletes the roles of one id, or of several comma-joined ids in sequence
   * (protocol/objects.md#create-and-update). Ignores unknown ids. Throws as `update`, and 116 if
   * there are too many ids.
   */
  async delete(caller: RoleCaller, objectIds: string, where: unknown): Promise<void> {
    const { app } = caller;
    const ids = new Set(objectIds.split(','));
    if (ids.size > maxIdsPerDelete)
      throw refuse('tooLarge', `At most ${maxIdsPerDelete} ids at once.`);
    const condition = compileRowCondition(where, roleClass, viewerFor(caller));
    for (const objectId of ids)
      await this.#change(caller, condition, async (tx) => {
        const role = await lock(tx, app, objectId);
        if (role) {
          requireWrite(caller, role);
          await requireCondition(tx, role, condition);
          await deleteRole(tx, app.appId, role.id);
        } else if (condition) throw refuse('noEffect');
      });
  }

  /**
   * Returns the URL of a role. It is built from PUBLIC_URL and never from a request
   * (protocol/admin-api.md#links).
   */
  urlOf({ objectId }: JsonObject): string {
    return `${this.#deps.config.publicUrl}/1.1/roles/${objectId}`;
  }

  /**
   * Runs `work` in one transaction. Retries if a member is deleted concurrently. A call with a
   * condition counts against the app's query capacity. This process sees the new roles at once,
   * other processes within a second.
   */
  async #change<T>(
    caller: RoleCaller,
    condition: RowCondition | undefined,
    work: (tx: Handle, storage: StorageAccount | undefined) => Promise<T>,
    triesLeft = maxTries,
  ): Promise<T> {
    const { db, queries } = this.#deps;
    const storage = this.#storage.accountOf('roles', caller);
    const write = (tx: Handle) => work(tx, storage);
    try {
      return await (condition ? queries.change(caller, write) : db.transaction(write));
    } catch (error) {
      storage?.refund();
      // A member that is deleted concurrently is no member. The next try does not find it.
      if (isDeadlock(error) || isMissingReference(error)) {
        if (triesLeft > 1) return this.#change(caller, condition, work, triesLeft - 1);
        throw refuse('conflict');
      }
      throw violatedConstraint(error) === 'role_name' ? refuse('duplicate') : error;
    } finally {
      this.#roleCache.forget(caller.app.appId);
    }
  }

  #now(): Date {
    return new Date(this.#deps.clock.now());
  }
}

const roleBytes = ({ acl, fields }: RoleDraft): number =>
  Buffer.byteLength(JSON.stringify([acl, fields]));

/** Returns the size of the member rows that a change adds. */
const addedBytes = ({ members }: RoleChanges): number =>
  members.reduce(
    (sum, { isAdded, objectIds }) => sum + (isAdded ? objectIds.length * memberRowBytes : 0),
    0,
  );

async function lock(tx: Handle, { appId }: App, objectId: string): Promise<Role | undefined> {
  return isObjectId(objectId) ? findRole(tx, appId, { objectId, isLocked: true }) : undefined;
}

async function requireCondition(
  tx: Handle,
  { id }: Role,
  condition: RowCondition | undefined,
): Promise<void> {
  if (condition && !(await rowMeets(tx, { table: 'role', id }, condition)))
    throw refuse('noEffect');
}

/** Applies the steps in order. Ignores members that do not exist. */
async function writeMembers(
  tx: Handle,
  { appId }: App,
  { id }: Role,
  steps: MemberStep[],
): Promise<void> {
  for (const { relation, isAdded, objectIds } of steps) {
    const members = { roleId: id, relation, objectIds };
    await (isAdded ? addMembers : removeMembers)(tx, appId, members);
  }
}

function savedRole(role: Role, { touched }: RoleChanges): SavedRole {
  const document = roleDocument(role, { hasAcl: true });
  const changed = Object.fromEntries(
    Object.entries(document).filter(([name]) => touched.has(name)),
  );
  return { document, changed };
}
