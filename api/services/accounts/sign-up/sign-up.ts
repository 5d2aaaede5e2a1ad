import { refuse } from '../../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { withSentEntries } from '../../../../shared/domain/users/auth-data.ts';
import {
  type CheckedUserChanges,
  newUser,
  readUserChanges,
  type UserChanges,
} from '../../../../shared/domain/users/changes.ts';
import { type UserDraft, userDocument } from '../../../../shared/domain/users/user.ts';
import type { PhoneCodes } from '../../verification/phone-codes.ts';
import { rulesOf, type SignUpCaller, signUpIpAddress } from '../caller.ts';
import type { Passwords } from '../passwords/passwords.ts';
import type { AuthPlatforms } from '../third-party/platforms.ts';
import type { LoginResult, ThirdPartyLogin } from '../third-party/third-party-login.ts';
import type { UserHookCaller, UserHooks } from '../user-hooks.ts';
import type { UserStore } from '../user-store.ts';

interface Parts {
  passwords: Passwords;
  store: UserStore;
  platforms: AuthPlatforms;
  thirdParty: ThirdPartyLogin;
  hooks: UserHooks;
  phoneCodes: PhoneCodes;
}

type Caller = UserHookCaller & SignUpCaller;

/** POST /1.1/users (protocol/users.md#calls-for-users). */
export class SignUpService {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Signs up with a password, or signs up or logs in with `authData`. Returns the whole user.
   * Throws as `readUserChanges` and `newUser`, and:
   *
   * - 200 to 203, 214, 217, 218 for names and contacts;
   * - 250 to 252 and 208 for third-party accounts;
   * - 211 if `failOnNotExist` is true and the user does not exist;
   * - 142 if a hook of the app refuses;
   * - 429 after too many sign-ups from one network address.
   */
  async signUp(caller: Caller, body: JsonObject, failOnNotExist: boolean): Promise<LoginResult> {
    const { hooks, phoneCodes } = this.#parts;
    const changes = await this.readNewUser(caller, body);
    const result = await this.#logInOrSignUp(caller, { body, changes, failOnNotExist });
    if (result.isNew) {
      hooks.afterSave(caller, body, result.document);
      await phoneCodes.sendToNewNumber(caller, result.document);
    } else await hooks.onLogin(caller, result.document);
    // Add the tokens last, so that no hook gets them.
    const document = withSentEntries(result.document, changes.sentAuthData, changes.authData);
    return { ...result, document };
  }

  async #logInOrSignUp(
    caller: Caller,
    {
      body,
      changes,
      failOnNotExist,
    }: { body: JsonObject; changes: CheckedUserChanges; failOnNotExist: boolean },
  ): Promise<LoginResult> {
    const { hooks, thirdParty } = this.#parts;
    const applyHooks = (draft: UserDraft) => hooks.beforeSave(caller, body, draft);
    if (changes.authData.size === 0) return this.#signUpWithPassword(caller, changes, applyHooks);
    return thirdParty.logInOrSignUp(caller.app, {
      changes,
      rules: rulesOf(caller),
      ipAddress: signUpIpAddress(caller),
      passwordHash: () => this.#hash(caller, changes),
      applyHooks,
      failOnNotExist,
    });
  }

  /**
   * Parses the body of a new account. Every sign-up uses this method. The hook `onAuthData` may
   * change the third-party accounts, and then their platforms confirm them. Throws as
   * `readUserChanges`, 142, 250 to 252, 503.
   */
  async readNewUser(caller: Caller, body: JsonObject): Promise<CheckedUserChanges> {
    const { hooks, platforms } = this.#parts;
    const changes = await hooks.onAuthData(caller, body, readUserChanges(body));
    if (changes.isAuthDataCleared || [...changes.authData.values()].includes(null))
      throw refuse('linkedIdMissing');
    return platforms.check(caller.app, changes);
  }

  async #signUpWithPassword(
    caller: Caller,
    changes: CheckedUserChanges,
    applyHooks: (draft: UserDraft) => Promise<UserDraft>,
  ): Promise<LoginResult> {
    const { username, password } = changes;
    // An empty authData proves nothing (protocol/known-problems.md#authdata-bypass).
    if (username === undefined)
      throw refuse(changes.touched.has('authData') ? 'linkedIdMissing' : 'usernameMissing');
    if (password === undefined) throw refuse('passwordMissing');
    const draft = await applyHooks(newUser(changes, username, rulesOf(caller)));
    const passwordHash = await this.#hash(caller, changes);
    const account = { draft, passwordHash, ipAddress: signUpIpAddress(caller) };
    const { store } = this.#parts;
    const { user, token } = await store.transaction((tx) => store.create(tx, caller.app, account));
    return {
      document: { ...userDocument(user, { isOwn: true }), sessionToken: token },
      isNew: true,
    };
  }

  async #hash({ app }: Caller, { password }: UserChanges): Promise<string | null> {
    return password === undefined ? null : this.#parts.passwords.hash(app.appId, password);
  }
}
