import type { Handle } from '../../../shared/db/pool.ts';
import { type RowCondition, rowMeets } from '../../../shared/db/tables/selection.ts';
import { deleteUser, findUser, setPassword } from '../../../shared/db/tables/users/users.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { stableText } from '../../../shared/domain/objects/operations.ts';
import type { AuthDataChanges } from '../../../shared/domain/users/auth-data.ts';
import { openedEntry, shownEntry } from '../../../shared/domain/users/auth-tokens.ts';
import {
  changedUser,
  newUser,
  readUserChanges,
  type UserChanges,
} from '../../../shared/domain/users/changes.ts';
import {
  pickUserMembers,
  type User,
  type UserDraft,
  userDocument,
} from '../../../shared/domain/users/user.ts';
import { compileRowCondition } from '../../../shared/query/list/list.ts';
import { userClass } from '../../../shared/query/schema/classes.ts';
import type { ApiDeps } from '../deps.ts';
import {
  isObjectId,
  readerFor,
  requireCurrentSession,
  requireSelf,
  requireWrite,
  rulesOf,
  type SignUpCaller,
  signUpIpAddress,
  type UserCaller,
} from './caller.ts';
import type { Passwords } from './passwords/passwords.ts';
import type { Sessions } from './sessions/sessions.ts';
import type { AuthPlatforms } from './third-party/platforms.ts';
import type { LoginResult, ThirdPartyLogin } from './third-party/third-party-login.ts';
import type { UserHookCaller, UserHooks } from './user-hooks.ts';
import type { UserStore } from './user-store.ts';

/** What a reply to a change is made of. */
export interface ChangedUser {
  document: JsonObject;
  /** The members that the call wrote, with their new values (protocol/objects.md#replies-with-values). */
  changed: JsonObject;
  /** A password that the master key set ended the session. */
  sessionToken?: string;
}

/** Each of them may wait for a hook. */
const maxIdsPerDelete = 100;

interface Parts {
  passwords: Passwords;
  sessions: Sessions;
  platforms: AuthPlatforms;
  store: UserStore;
  thirdParty: ThirdPartyLogin;
  hooked: UserHooks;
}

type Caller = UserCaller & UserHookCaller;

/** Users (protocol/users.md#calls-for-users). */
export class UserService {
  readonly #deps: ApiDeps;
  readonly #parts: Parts;

  constructor(deps: ApiDeps, parts: Parts) {
    this.#deps = deps;
    this.#parts = parts;
  }

  /**
   * POST: registers with a password, or registers or logs in with `authData`. The reply is the whole user. Throws 200
   * to 203, 214, 217, 218 for names, 250 to 252 and 208 for accounts, 211 with `failOnNotExist`, 142 when a hook of
   * the app's functions refuses, 429 when too many sign up from one address, and as `readUserChanges` and `newUser`.
   */
  async signUp(
    caller: Caller & SignUpCaller,
    body: JsonObject,
    failOnNotExist: boolean,
  ): Promise<LoginResult> {
    const { hooked } = this.#parts;
    const entered = await this.#enter(caller, body, failOnNotExist);
    if (entered.isNew) hooked.afterSave(caller, body, entered.document);
    else await hooked.onLogin(caller, entered.document);
    return entered;
  }

  async #enter(
    caller: Caller & SignUpCaller,
    body: JsonObject,
    failOnNotExist: boolean,
  ): Promise<LoginResult> {
    const { app } = caller;
    const { store, hooked, thirdParty } = this.#parts;
    const changes = await hooked.onAuthData(caller, body, readUserChanges(body));
    const drafted = (draft: UserDraft) => hooked.beforeSave(caller, body, draft);
    const rules = rulesOf(caller);
    const ipAddress = signUpIpAddress(caller);
    const passwordHash = async () =>
      changes.password === undefined ? null : await this.#parts.passwords.hash(app.appId, changes.password);
    if (changes.isAuthDataCleared || [...changes.authData.values()].includes(null))
      throw refuse('linkedIdMissing');
    if (changes.authData.size > 0)
      return thirdParty.logInOrSignUp(app, {
        changes,
        rules,
        ipAddress,
        passwordHash,
        applyHooks: drafted,
        failOnNotExist,
      });
    const { username, password } = changes;
    // An authData that is empty proves nothing (protocol/known-problems.md#authdata-bypass).
    if (username === undefined)
      throw refuse(changes.touched.has('authData') ? 'linkedIdMissing' : 'usernameMissing');
    if (password === undefined) throw refuse('passwordMissing');
    const draft = await drafted(newUser(changes, username, rules));
    const hash = await passwordHash();
    const made = { draft, passwordHash: hash, ipAddress };
    const { user, token } = await store.transaction((tx) => store.create(tx, app, made));
    return { document: { ...userDocument(user, { isOwn: true }), sessionToken: token }, isNew: true };
  }

  /**
   * PUT: by the user itself or the master key. Throws 206 for anybody else, 403 when its ACL says so, 1 for an id that
   * nobody has, 305 when `where` is given and not met, and as `signUp`.
   */
  async update(
    caller: Caller,
    objectId: string,
    { body, where }: { body: JsonObject; where: unknown },
  ): Promise<ChangedUser> {
    const { app } = caller;
    requireSelf(caller, objectId);
    const condition = compileRowCondition(where, userClass, readerFor(caller));
    const { hooked } = this.#parts;
    const changes = await hooked.onAuthData(caller, body, readUserChanges(body));
    const before = await this.#require(this.#deps.db, caller, objectId);
    requireFreeToSetPassword(caller, before, changes);
    const checked = this.#newEntries(app, before, changes.authData);
    await this.#parts.platforms.check(app, checked);
    const hash =
      changes.password === undefined
        ? undefined
        : await this.#parts.passwords.hash(app.appId, changes.password);
    const { touched } = changes;
    const draft = () => changedUser(before, changes, rulesOf(caller));
    await hooked.beforeUpdate(caller, before, { body, touched, draft });
    const change = async (tx: Handle) => {
      const current = await this.#require(tx, caller, objectId, true);
      requireCurrentSession(caller, current);
      requireFreeToSetPassword(caller, current, changes);
      // What was stored before the check, and so was not checked, may have been unlinked since.
      for (const platform of this.#newEntries(app, current, changes.authData).keys())
        if (!checked.has(platform)) throw refuse('conflict');
      await this.#requireCondition(tx, current, condition);
      return this.#write(tx, caller, { current, changes, hash });
    };
    const changed = await this.#parts.store.transaction(change, condition && caller);
    hooked.afterUpdate(caller, changed.document, { body, touched });
    return changed;
  }

  async #write(
    tx: Handle,
    caller: UserCaller,
    { current, changes, hash }: { current: User; changes: UserChanges; hash: string | undefined },
  ): Promise<ChangedUser> {
    const { app } = caller;
    const { store, sessions } = this.#parts;
    const draft = changedUser(current, changes, rulesOf(caller));
    let user = await store.save(tx, app, { current, draft });
    let token: string | undefined;
    if (hash !== undefined) {
      user = await setPassword(tx, app.appId, { id: user.id, hash, now: store.now() });
      // Who had none keeps the session that set the first one (protocol/users.md#session-tokens: a change ends it).
      if (current.passwordHash !== null && app.options.reloginAfterPasswordChange)
        [user, token] = await sessions.replace(tx, app.appId, { user, now: store.now() });
    }
    const document = userDocument(user, { isOwn: true, hasAcl: true });
    const changed = pickUserMembers(document, changes.touched);
    return { document, changed, ...(token === undefined ? {} : { sessionToken: token }) };
  }

  /**
   * DELETE of one id or of several, comma-joined (protocol/objects.md#create-and-update), one after the other: by the user itself or the master
   * key. An id that nobody has is deleted already. Throws as `update`, and 116 for too many ids.
   */
  async delete(
    caller: Caller,
    objectIds: string,
    { body, where }: { body: JsonObject; where: unknown },
  ): Promise<void> {
    const ids = new Set(objectIds.split(','));
    if (ids.size > maxIdsPerDelete) throw refuse('tooLarge', `At most ${maxIdsPerDelete} ids at once.`);
    for (const id of ids) requireSelf(caller, id);
    for (const id of ids) await this.#delete(caller, id, { body, where });
  }

  async #delete(
    caller: Caller,
    objectId: string,
    { body, where }: { body: JsonObject; where: unknown },
  ): Promise<void> {
    const condition = compileRowCondition(where, userClass, readerFor(caller));
    const { store, hooked } = this.#parts;
    if (isObjectId(objectId))
      await hooked.beforeDelete(caller, body, async () => {
        const user = await this.#find(this.#deps.db, caller.app, objectId);
        if (user) requireWrite(caller, user);
        return user;
      });
    const remove = async (tx: Handle) => {
      const user = isObjectId(objectId) && (await this.#find(tx, caller.app, objectId, true));
      if (!user) {
        if (condition) throw refuse('noEffect');
        return undefined;
      }
      requireCurrentSession(caller, user);
      requireWrite(caller, user);
      await this.#requireCondition(tx, user, condition);
      await deleteUser(tx, caller.app.appId, user.id);
      return user;
    };
    const deleted = await store.transaction(remove, condition && caller);
    if (deleted) hooked.afterDelete(caller, body, deleted);
  }

  /** Where a user is found (protocol/admin-api.md#links: links come from PUBLIC_URL, never from a request). */
  urlOf({ objectId }: JsonObject): string {
    return `${this.#deps.config.publicUrl}/1.1/users/${objectId}`;
  }

  #find(db: Handle, { appId }: App, objectId: string, isLocked = false): Promise<User | undefined> {
    return findUser(db, appId, { key: { objectId }, isLocked });
  }

  async #require(db: Handle, caller: UserCaller, objectId: string, isLocked = false): Promise<User> {
    const user = isObjectId(objectId) ? await this.#find(db, caller.app, objectId, isLocked) : undefined;
    if (!user)
      throw refuse(
        'noSuchObject',
        `Could not find object by id '${isObjectId(objectId) ? objectId : '?'}' for class '_User'.`,
      );
    requireWrite(caller, user);
    return user;
  }

  /** What is not stored already, and was checked then; clients also send back what they were shown, without tokens. */
  #newEntries({ appId }: App, { authData }: User, changes: AuthDataChanges): AuthDataChanges {
    const isKnown = (platform: string, entry: JsonObject) => {
      const stored = authData && Object.hasOwn(authData, platform) ? authData[platform] : undefined;
      if (!stored) return false;
      const opened = openedEntry(this.#deps.vault, appId, { platform, entry: stored });
      return [opened, shownEntry(opened)].some((known) => stableText(known) === stableText(entry));
    };
    return new Map([...changes].filter(([platform, entry]) => entry !== null && !isKnown(platform, entry)));
  }

  async #requireCondition(tx: Handle, user: User, condition: RowCondition | undefined): Promise<void> {
    if (!condition) return;
    if (!(await rowMeets(tx, { table: 'app_user', id: user.id }, condition))) throw refuse('noEffect');
  }
}

/** Whoever found an open session must not be able to lock its user out: a password is changed with the old one. */
function requireFreeToSetPassword({ isMaster }: UserCaller, user: User, { password }: UserChanges): void {
  if (password !== undefined && user.passwordHash !== null && !isMaster)
    throw refuse('invalidParameter', 'A password is changed through updatePassword, with the old one.');
}
