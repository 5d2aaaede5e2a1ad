import type { Handle } from '../../../../shared/db/pool.ts';
import { findUsersOfIdentities } from '../../../../shared/db/tables/users/identities.ts';
import { findUser } from '../../../../shared/db/tables/users/users.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { type ErrorName, Refusal, refuse } from '../../../../shared/domain/errors/errors.ts';
import { newUsername } from '../../../../shared/domain/ids.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import {
  type AuthDataChanges,
  changedAuthData,
  identitiesOf,
} from '../../../../shared/domain/users/auth-data.ts';
import {
  newUser,
  requireSize,
  type UserChanges,
  type UserRules,
} from '../../../../shared/domain/users/changes.ts';
import { type UserDraft, userDocument } from '../../../../shared/domain/users/user.ts';
import type { LoginService } from '../login/login.ts';
import type { UserStore } from '../user-store.ts';
import type { AuthPlatforms } from './platforms.ts';

/** How often a call looks again for the one that was faster. */
const maxTries = 10;

export interface LoginResult {
  document: JsonObject;
  isNew: boolean;
}

export interface ThirdPartyRequest {
  changes: UserChanges;
  rules: UserRules;
  /** Network address that a new user counts for. */
  ipAddress: string | undefined;
  /** Of the password that a new user brings along; asked for once it is known that there is a new one. */
  passwordHash: () => Promise<string | null>;
  /** What is to be stored of a new user. */
  applyHooks: (draft: UserDraft) => Promise<UserDraft>;
  failOnNotExist: boolean;
}

/** Registration and login by third-party authorization data (protocol/users.md#third-party-accounts). */
export class ThirdPartyLogin {
  readonly #parts: { store: UserStore; login: LoginService; platforms: AuthPlatforms };

  constructor(parts: { store: UserStore; login: LoginService; platforms: AuthPlatforms }) {
    this.#parts = parts;
  }

  /**
   * Logs in the user whose account it is, or makes one; many calls with the same account at the same time end in
   * one user. Throws 208 when the platforms sent belong to several users, 211 with `failOnNotExist`, 251 or 252
   * when a platform says no, 429 when too many sign up from one address.
   */
  async logInOrSignUp(app: App, request: ThirdPartyRequest): Promise<LoginResult> {
    await this.#parts.platforms.check(app, request.changes.authData);
    let passwordHash: string | null | undefined;
    for (let tries = 0; tries < maxTries; tries += 1) {
      const entered = await this.#logIn(app, request);
      if (entered) return { document: entered, isNew: false };
      if (request.failOnNotExist) throw refuse('userNotFound');
      passwordHash ??= await request.passwordHash();
      const made = await this.#signUp(app, request, passwordHash);
      if (made) return { document: made, isNew: true };
    }
    throw refuse('accountLinked');
  }

  /** Undefined when the accounts belong to nobody. */
  #logIn(
    app: App,
    { changes: { authData: changes }, rules }: ThirdPartyRequest,
  ): Promise<JsonObject | undefined> {
    const { store, login } = this.#parts;
    return store.transaction(async (tx) => {
      const id = await findOwner(tx, app, changes);
      const user =
        id === undefined ? undefined : await findUser(tx, app.appId, { key: { id }, isLocked: true });
      // Accounts change hands only while their user is locked: now it is certain.
      if (!user || (await findOwner(tx, app, changes)) !== id) return undefined;
      const draft = { ...user, authData: changedAuthData(user.authData, changes) };
      requireSize(draft, user, rules);
      return login.completeLogin(app, await store.save(tx, app, { current: user, draft }), tx);
    });
  }

  /** Undefined when somebody else made the user meanwhile, with the account or the name of this call. */
  async #signUp(
    app: App,
    { changes, rules, ipAddress, applyHooks: drafted }: ThirdPartyRequest,
    passwordHash: string | null,
  ): Promise<JsonObject | undefined> {
    const draft = await drafted(newUser(changes, changes.username ?? newUsername(), rules));
    const { store } = this.#parts;
    try {
      const made = { draft, passwordHash, ipAddress };
      const { user, token } = await store.transaction((tx) => store.create(tx, app, made));
      return { ...userDocument(user, { isOwn: true }), sessionToken: token };
    } catch (error) {
      const isTaken = error instanceof Refusal && takenKinds.has(error.kind);
      if (isTaken && (await store.transaction((tx) => findOwner(tx, app, changes.authData))) !== undefined)
        return undefined;
      throw error;
    }
  }
}

/** What the call that was faster may have taken. */
const takenKinds = new Set<ErrorName>(['accountLinked', 'usernameTaken', 'emailTaken', 'phoneTaken']);

/** Whose accounts these are: by their own ids, else by their UnionIDs. Throws 208 when they are several users'. */
async function findOwner(tx: Handle, { appId }: App, changes: AuthDataChanges): Promise<number | undefined> {
  const entries = [...changes].flatMap(([platform, entry]) => (entry ? [[platform, entry] as const] : []));
  const { own, unions } = identitiesOf(Object.fromEntries(entries));
  const owners = await findUsersOfIdentities(tx, appId, own);
  const found = owners.length > 0 ? owners : await findUsersOfIdentities(tx, appId, unions);
  if (found.length > 1) throw refuse('accountLinked');
  return found[0];
}
