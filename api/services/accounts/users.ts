import type { Handle } from '../../../shared/db/pool.ts';
import { type RowCondition, rowMeets } from '../../../shared/db/tables/selection.ts';
import { deleteUser, findUser, setPassword } from '../../../shared/db/tables/users.ts';
import { maskText } from '../../../shared/domain/admin/masking.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { stableText } from '../../../shared/domain/objects/operations.ts';
import { openedEntry, withSentEntries } from '../../../shared/domain/users/auth-data.ts';
import {
  type CheckedUserChanges,
  changedUser,
  readUserChanges,
  type UserChanges,
  type UserRules,
} from '../../../shared/domain/users/changes.ts';
import {
  pickUserMembers,
  type User,
  type UserDraft,
  userDocument,
} from '../../../shared/domain/users/user.ts';
import { compileRowCondition } from '../../../shared/query/list/list.ts';
import { userClass } from '../../../shared/query/schema.ts';
import type { StoringCaller } from '../client-storage.ts';
import type { ApiDeps } from '../deps.ts';
import { isAudited, recordChange } from '../operator/audit/audit.ts';
import type { PhoneCodes } from '../verification/phone-codes.ts';
import {
  isObjectId,
  requireCurrentSession,
  requireSelf,
  requireWrite,
  rulesOf,
  type UserCaller,
  viewerFor,
} from './caller.ts';
import type { LoginLocks } from './login/login.ts';
import type { Passwords } from './passwords/passwords.ts';
import type { Sessions } from './sessions/sessions.ts';
import type { AuthPlatforms } from './third-party/platforms.ts';
import type { UserHookCaller, UserHooks } from './user-hooks.ts';
import type { UserStore } from './user-store.ts';

/** User after a change, with the data for the reply. */
export interface ChangedUser {
  document: JsonObject;
  /**
   * Members that the call wrote, with their new values (protocol/objects.md#replies-with-values).
   */
  changed: JsonObject;
  /** New token, if the session ended because a password was changed with the master key. */
  sessionToken?: string;
}

/** What a deletion depends on. `beforeRemoval` runs after the hooks have allowed the deletion. */
interface Removal {
  body: JsonObject;
  where: unknown;
  beforeRemoval?: (() => Promise<void>) | undefined;
}

/**
 * Error for an entry that a concurrent call has unlinked. The entry was stored when the call began,
 * so its platform was not asked.
 */
class UncheckedEntry extends Error {
  override name = 'UncheckedEntry';
}

/** Maximum number of ids per DELETE. Each id may wait for a hook. */
const maxIdsPerDelete = 100;

interface Parts {
  passwords: Passwords;
  sessions: Sessions;
  locks: LoginLocks;
  platforms: AuthPlatforms;
  store: UserStore;
  hooks: UserHooks;
  phoneCodes: PhoneCodes;
}

type Caller = UserCaller & UserHookCaller & StoringCaller;

/** Updates and deletes users (protocol/users.md#calls-for-users). */
export class UserService {
  readonly #deps: ApiDeps;
  readonly #parts: Parts;

  constructor(deps: ApiDeps, parts: Parts) {
    this.#deps = deps;
    this.#parts = parts;
  }

  /**
   * Updates a user (PUT), for the user or the master key. Throws error 206 for any other caller,
   * error 403 if the ACL denies it, error 1 if the id is unknown or the password differs, error 219
   * if the account is locked, error 305 if the user does not match `where`, and as
   * `SignUpService.signUp`.
   */
  async update(
    caller: Caller,
    objectId: string,
    { body, where }: { body: JsonObject; where: unknown },
  ): Promise<ChangedUser> {
    requireSelf(caller, objectId);
    const { hooks, platforms } = this.#parts;
    const condition = compileRowCondition(where, userClass, viewerFor(caller));
    const read = await hooks.onAuthData(caller, body, readUserChanges(body));
    const before = await this.#require(this.#deps.db, caller, objectId);
    const sent = await this.#withoutOwnPassword(caller, before, read);
    const storedPlatforms = this.#storedPlatforms(caller.app, before, sent);
    const changes = await platforms.check(caller.app, sent, (platform) =>
      storedPlatforms.has(platform),
    );
    const hash = await this.#hash(caller.app, changes);
    const { touched } = changes;
    const draft = () => changedUser(before, changes, this.#rulesOf(caller));
    await hooks.beforeUpdate(caller, before, { body, touched, draft });
    const change = async (tx: Handle) => {
      const current = await this.#require(tx, caller, objectId, true);
      requireCurrentSession(caller, current);
      requireMaySetPassword(caller, current, changes);
      const stored = this.#storedPlatforms(caller.app, current, changes);
      for (const platform of storedPlatforms) if (!stored.has(platform)) throw new UncheckedEntry();
      await this.#requireCondition(tx, current, condition);
      const written = await this.#write(tx, caller, { current, changes, hash });
      if (isAudited())
        await recordUpdate(tx, caller.app, { current, changes, changed: written.changed });
      return written;
    };
    const run = () => this.#parts.store.transaction(change, condition && caller);
    const changed = await run().catch(async (error: unknown) => {
      if (!(error instanceof UncheckedEntry)) throw error;
      const wasChecked = (platform: string) => !storedPlatforms.has(platform);
      await platforms.check(caller.app, changes, wasChecked);
      storedPlatforms.clear();
      return run();
    });
    hooks.afterUpdate(caller, changed.document, { body, touched });
    if (before.mobilePhoneNumber !== changed.document.mobilePhoneNumber)
      await this.#parts.phoneCodes.sendToNewNumber(caller, changed.document);
    // Add the tokens last, so that neither the audit nor a hook gets them.
    const reply = withSentEntries(changed.changed, changes.sentAuthData, changes.authData);
    return { ...changed, changed: reply };
  }

  /**
   * Removes a password from the changes that equals the user's current password, because SDKs send
   * whole users. A wrong password counts as a failed login, because the reply reveals whether the
   * guess was right. Throws error 1 if the password differs (`requireMaySetPassword`), error 219 if
   * the account is locked.
   */
  async #withoutOwnPassword(
    caller: Caller,
    user: User,
    changes: UserChanges,
  ): Promise<UserChanges> {
    const { password, ...others } = changes;
    if (password === undefined || user.passwordHash === null || caller.isMaster) return changes;
    const { app } = caller;
    const { locks, passwords } = this.#parts;
    const target = { user, submitted: { kind: 'username', value: user.username } } as const;
    await locks.requireUnlocked(app, target);
    const { isMatch } = await passwords.verify(app.appId, password, user.passwordHash);
    if (!isMatch) {
      await locks.countFailure(app, target);
      requireMaySetPassword(caller, user, changes);
    }
    await locks.requireUnlocked(app, target);
    const touched = new Set([...changes.touched].filter((name) => name !== 'password'));
    return { ...others, touched };
  }

  async #hash({ appId }: App, { password }: UserChanges): Promise<string | undefined> {
    return password === undefined ? undefined : this.#parts.passwords.hash(appId, password);
  }

  #rulesOf(caller: Caller): UserRules {
    const stored = (draft: UserDraft) => this.#parts.store.sealed(caller.app.appId, draft);
    return { ...rulesOf(caller), stored };
  }

  async #write(
    tx: Handle,
    caller: Caller,
    {
      current,
      changes,
      hash,
    }: { current: User; changes: CheckedUserChanges; hash: string | undefined },
  ): Promise<ChangedUser> {
    const { app } = caller;
    const { store, sessions } = this.#parts;
    const draft = changedUser(current, changes, this.#rulesOf(caller));
    let user = await store.save(tx, app, { current, draft, by: caller });
    let token: string | undefined;
    if (hash !== undefined) {
      user = await setPassword(tx, app.appId, { id: user.id, hash, now: store.now() });
      // Only a change of the password ends the session. The first password does not
      // (protocol/users.md#session-tokens).
      if (current.passwordHash !== null && app.options.reloginAfterPasswordChange)
        [user, token] = await sessions.replace(tx, app.appId, { user, now: store.now() });
    }
    const document = userDocument(user, { isOwn: true, hasAcl: 'stored' });
    const changed = pickUserMembers(document, changes.touched);
    return { document, changed, ...(token === undefined ? {} : { sessionToken: token }) };
  }

  /**
   * Deletes the users of one id, or of several comma-joined ids in sequence
   * (protocol/objects.md#create-and-update). The caller must be the user or have the master key.
   * Ignores unknown ids. Throws as `update`, and 116 if there are too many ids.
   */
  async delete(
    caller: Caller,
    objectIds: string,
    { body, where, beforeRemoval }: Removal,
  ): Promise<void> {
    const ids = new Set(objectIds.split(','));
    if (ids.size > maxIdsPerDelete)
      throw refuse('tooLarge', `At most ${maxIdsPerDelete} ids at once.`);
    for (const id of ids) requireSelf(caller, id);
    for (const id of ids) await this.#delete(caller, id, { body, where, beforeRemoval });
  }

  async #delete(
    caller: Caller,
    objectId: string,
    { body, where, beforeRemoval }: Removal,
  ): Promise<void> {
    const condition = compileRowCondition(where, userClass, viewerFor(caller));
    const { store, hooks } = this.#parts;
    if (isObjectId(objectId))
      await hooks.beforeDelete(caller, body, async () => {
        const user = await this.#find(this.#deps.db, caller.app, objectId);
        if (user) requireWrite(caller, user);
        return user;
      });
    await beforeRemoval?.();
    const remove = async (tx: Handle) => {
      const user = isObjectId(objectId) && (await this.#find(tx, caller.app, objectId, true));
      if (!user) {
        if (condition) throw refuse('noEffect');
        return undefined;
      }
      requireCurrentSession(caller, user);
      requireWrite(caller, user);
      await this.#requireCondition(tx, user, condition);
      const { appId } = caller.app;
      await deleteUser(tx, appId, user.id);
      await recordChange(tx, { action: 'user.delete', appId, target: user.objectId });
      return user;
    };
    const deleted = await store.transaction(remove, condition && caller);
    if (deleted) hooks.afterDelete(caller, body, deleted);
  }

  /**
   * Returns the URL of a user. It is built from PUBLIC_URL and never from a request
   * (protocol/admin-api.md#links).
   */
  urlOf({ objectId }: JsonObject): string {
    return `${this.#deps.config.publicUrl}/1.1/users/${objectId}`;
  }

  #find(db: Handle, { appId }: App, objectId: string, isLocked = false): Promise<User | undefined> {
    return findUser(db, appId, { key: { objectId }, isLocked });
  }

  async #require(
    db: Handle,
    caller: UserCaller,
    objectId: string,
    isLocked = false,
  ): Promise<User> {
    const user = isObjectId(objectId)
      ? await this.#find(db, caller.app, objectId, isLocked)
      : undefined;
    if (!user)
      throw refuse(
        'noSuchObject',
        `Could not find object by id '${isObjectId(objectId) ? objectId : '?'}' for class '_User'.`,
      );
    requireWrite(caller, user);
    return user;
  }

  /**
   * Returns the platforms whose entries change nothing, because every member equals the stored
   * member. Clients send entries back, with or without tokens.
   */
  #storedPlatforms({ appId }: App, { authData }: User, changes: UserChanges): Set<string> {
    const isStored = (platform: string, entry: JsonObject) => {
      const stored = authData && Object.hasOwn(authData, platform) ? authData[platform] : undefined;
      if (!stored) return false;
      const opened = new Map(
        Object.entries(openedEntry(this.#deps.vault, appId, { platform, entry: stored })),
      );
      return Object.entries(entry).every(([name, value]) => {
        const storedValue = opened.get(name);
        return storedValue !== undefined && stableText(storedValue) === stableText(value);
      });
    };
    const stored = [...changes.authData].filter(
      ([platform, entry]) => entry && isStored(platform, entry),
    );
    return new Set(stored.map(([platform]) => platform));
  }

  async #requireCondition(
    tx: Handle,
    user: User,
    condition: RowCondition | undefined,
  ): Promise<void> {
    if (!condition) return;
    if (!(await rowMeets(tx, { table: 'app_user', id: user.id }, condition)))
      throw refuse('noEffect');
  }
}

/**
 * Audits a change that an operator makes, without the password and without tokens of third-party
 * accounts.
 */
async function recordUpdate(
  tx: Handle,
  { appId }: App,
  { current, changes, changed }: { current: User; changes: UserChanges; changed: JsonObject },
): Promise<void> {
  const before = pickUserMembers(
    userDocument(current, { isOwn: true, hasAcl: 'stored' }),
    changes.touched,
  );
  const after: JsonObject = { ...changed };
  if (changes.password !== undefined) after.password = maskText;
  await recordChange(tx, { action: 'user.update', appId, target: current.objectId, before, after });
}

/**
 * Throws error 1 if the password changes without the old password. Otherwise somebody with a stolen
 * session could lock out the user.
 */
function requireMaySetPassword(
  { isMaster }: UserCaller,
  user: User,
  { password }: UserChanges,
): void {
  if (password !== undefined && user.passwordHash !== null && !isMaster)
    throw refuse(
      'invalidParameter',
      'A password is changed through updatePassword, with the old one.',
    );
}
