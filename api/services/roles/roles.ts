import type { RoleCache } from '../../../shared/db/cache/role-cache.ts';
import { type Handle, isDeadlock, isMissingReference, violatedConstraint } from '../../../shared/db/pool.ts';
import {
  addMembers,
  countRolesLocked,
  deleteRole,
  findRole,
  insertRole,
  removeMembers,
  updateRole,
} from '../../../shared/db/tables/roles/roles.ts';
import { type RowCondition, rowMeets } from '../../../shared/db/tables/selection.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import { newObjectId } from '../../../shared/domain/ids.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import {
  changedRole,
  newRole,
  type RoleChanges,
  readRoleChanges,
} from '../../../shared/domain/roles/changes.ts';
import type { MemberStep } from '../../../shared/domain/roles/members.ts';
import { type Role, roleDocument } from '../../../shared/domain/roles/role.ts';
import { compileRowCondition } from '../../../shared/query/list/list.ts';
import { roleClass } from '../../../shared/query/schema/classes.ts';
import { isObjectId, readerFor, requireWrite, type UserCaller } from '../accounts/caller.ts';
import type { ApiDeps } from '../deps.ts';

/** A saved role, and what the reply to a save is made of. */
export interface SavedRole {
  document: JsonObject;
  /** The members that the call wrote, with their new values (protocol/objects.md#replies-with-values). */
  changed: JsonObject;
}

const maxIdsPerDelete = 100;
/** How often a change that met another one is tried. */
const maxTries = 3;

/** Roles (protocol/roles.md#role-fields): who may write one says its ACL. */
export class RoleService {
  readonly #deps: Pick<ApiDeps, 'config' | 'db' | 'queries' | 'clock'>;
  readonly #roleCache: RoleCache;

  constructor(deps: Pick<ApiDeps, 'config' | 'db' | 'queries' | 'clock'>, roleCache: RoleCache) {
    this.#deps = deps;
    this.#roleCache = roleCache;
  }

  /**
   * POST. Throws 403 where the app's option `allowRoleCreate` is off, 137 when another role has the name, 154 beyond its
   * option `maxRoles`, 128 for members that are not there, and as `readRoleChanges` and `newRole`.
   */
  async create(caller: UserCaller, body: JsonObject): Promise<SavedRole> {
    const { app, isMaster } = caller;
    if (!isMaster && !app.options.allowRoleCreate) throw refuse('forbiddenCreate');
    const changes = readRoleChanges(body);
    const draft = newRole(changes, { isMaster });
    return this.#change(caller, undefined, async (tx) => {
      if ((await countRolesLocked(tx, app.appId)) >= app.options.maxRoles)
        throw refuse('thresholdExceeded', `The app has ${app.options.maxRoles} roles (option maxRoles).`);
      const role = await insertRole(tx, app.appId, { objectId: newObjectId(), draft, now: this.#now() });
      await writeMembers(tx, app, role, changes.members);
      return replyParts(role, changes);
    });
  }

  /**
   * PUT. Throws 1 for an id that no role has, 403 when its ACL does not let the caller write it, 305 when `where` is
   * given and not met, 117 for another name, and as `create`.
   */
  async update(
    caller: UserCaller,
    objectId: string,
    { body, where }: { body: JsonObject; where: unknown },
  ): Promise<SavedRole> {
    const { app } = caller;
    const changes = readRoleChanges(body);
    const condition = compileRowCondition(where, roleClass, readerFor(caller));
    return this.#change(caller, condition, async (tx) => {
      const current = await lock(tx, app, objectId);
      if (!current)
        throw refuse(
          'noSuchObject',
          `Could not find object by id '${isObjectId(objectId) ? objectId : '?'}' for class '_Role'.`,
        );
      requireWrite(caller, current);
      await requireCondition(tx, current, condition);
      const draft = changedRole(current, changes);
      const role = await updateRole(tx, app.appId, { id: current.id, draft, now: this.#now() });
      await writeMembers(tx, app, role, changes.members);
      return replyParts(role, changes);
    });
  }

  /**
   * DELETE of one id or of several, comma-joined (protocol/objects.md#create-and-update), one after the other; an id that no role has is
   * deleted already. Throws as `update`, and 116 for too many ids.
   */
  async delete(caller: UserCaller, objectIds: string, where: unknown): Promise<void> {
    const { app } = caller;
    const ids = new Set(objectIds.split(','));
    if (ids.size > maxIdsPerDelete) throw refuse('tooLarge', `At most ${maxIdsPerDelete} ids at once.`);
    const condition = compileRowCondition(where, roleClass, readerFor(caller));
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

  /** Where a role is found (protocol/admin-api.md#links: links come from PUBLIC_URL, never from a request). */
  urlOf({ objectId }: JsonObject): string {
    return `${this.#deps.config.publicUrl}/1.1/roles/${objectId}`;
  }

  /**
   * Runs `work` in one transaction, with a condition in the app's share of those; again when it met the deletion of
   * a member. This process knows the result at once, the others within a second.
   */
  async #change<T>(
    caller: UserCaller,
    condition: RowCondition | undefined,
    work: (tx: Handle) => Promise<T>,
    triesLeft = maxTries,
  ): Promise<T> {
    const { db, queries } = this.#deps;
    try {
      return await (condition ? queries.change(caller, work) : db.transaction(work));
    } catch (error) {
      if (isDeadlock(error)) {
        if (triesLeft > 1) return this.#change(caller, condition, work, triesLeft - 1);
        throw refuse('conflict');
      }
      if (isMissingReference(error)) throw memberMissing();
      throw violatedConstraint(error) === 'role_name' ? refuse('duplicate') : error;
    } finally {
      this.#roleCache.forget(caller.app.appId);
    }
  }

  #now(): Date {
    return new Date(this.#deps.clock.now());
  }
}

async function lock(tx: Handle, { appId }: App, objectId: string): Promise<Role | undefined> {
  return isObjectId(objectId) ? findRole(tx, appId, { objectId, isLocked: true }) : undefined;
}

async function requireCondition(
  tx: Handle,
  { id }: Role,
  condition: RowCondition | undefined,
): Promise<void> {
  if (condition && !(await rowMeets(tx, { table: 'role', id }, condition))) throw refuse('noEffect');
}

/** Does the steps in their order. Throws 128 when a member that is to be added is not there. */
async function writeMembers(tx: Handle, { appId }: App, { id }: Role, steps: MemberStep[]): Promise<void> {
  for (const { relation, isAdded, objectIds } of steps) {
    const members = { roleId: id, relation, objectIds };
    if (!isAdded) await removeMembers(tx, appId, members);
    else if ((await addMembers(tx, appId, members)) < objectIds.length) throw memberMissing();
  }
}

const memberMissing = () => refuse('invalidRelation', 'Invalid relation data: a member does not exist.');

function replyParts(role: Role, { touched }: RoleChanges): SavedRole {
  const document = roleDocument(role, { hasAcl: true });
  const changed = Object.fromEntries(Object.entries(document).filter(([name]) => touched.has(name)));
  return { document, changed };
}
