import type { Handle } from '../../../shared/db/pool.ts';
import { findUser } from '../../../shared/db/tables/users.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import type { Json, JsonObject } from '../../../shared/domain/json.ts';
import type { Phone } from '../../../shared/domain/messages/phone.ts';
import { withSentEntries } from '../../../shared/domain/users/auth-data.ts';
import { type CheckedUserChanges, newUser } from '../../../shared/domain/users/changes.ts';
import { type User, userDocument } from '../../../shared/domain/users/user.ts';
import { rulesOf, type SignUpCaller, signUpIpAddress } from '../accounts/caller.ts';
import type { ContactVerification } from '../accounts/contact-verification.ts';
import type { LockTarget, LoginLocks, LoginService } from '../accounts/login/login.ts';
import type { Passwords } from '../accounts/passwords/passwords.ts';
import type { SignUpService } from '../accounts/sign-up/sign-up.ts';
import type { LoginResult } from '../accounts/third-party/third-party-login.ts';
import type { UserHookCaller, UserHooks } from '../accounts/user-hooks.ts';
import type { NewAccount, UserStore } from '../accounts/user-store.ts';
import type { ApiDeps } from '../deps.ts';
import type { CheckedCode, VerificationCodes } from '../sms/codes.ts';
import { requirePhone } from '../sms/sms.ts';

interface Parts {
  codes: VerificationCodes;
  store: UserStore;
  passwords: Passwords;
  locks: LoginLocks;
  login: LoginService;
  signUp: SignUpService;
  hooks: UserHooks;
  contacts: ContactVerification;
}

type Caller = UserHookCaller & SignUpCaller;

/** POST /1.1/usersByMobilePhone (protocol/codes.md#phone-accounts). */
export class PhoneLogin {
  readonly #deps: Pick<ApiDeps, 'db'>;
  readonly #parts: Parts;

  constructor(deps: Pick<ApiDeps, 'db'>, parts: Parts) {
    this.#deps = deps;
    this.#parts = parts;
  }

  /**
   * Logs in the user of a number with a code of the general service, or signs up a new user.
   * Verifies an unverified number (`ContactVerification.verify`). Wrong codes count towards the
   * lock, as at login. Throws error 603 for a wrong code, error 211 if `failOnNotExist` is true and
   * no user exists, error 219 if the account is locked, and as a sign-up.
   */
  async logInOrSignUp(
    caller: Caller,
    body: JsonObject,
    failOnNotExist: boolean,
  ): Promise<LoginResult> {
    const { app } = caller;
    const { hooks, locks, store } = this.#parts;
    const { mobilePhoneNumber, smsCode, ...members } = body;
    const phone = requirePhone(mobilePhoneNumber);
    const existing = await this.#find(this.#deps.db, app, phone);
    const target: LockTarget = {
      user: existing,
      submitted: { kind: 'mobilePhoneNumber', value: phone.e164 },
    };
    await locks.requireUnlocked(app, target);
    const code = await this.#checkCode(app, { phone, target }, smsCode);
    const isSignUp = !existing && !failOnNotExist;
    const changes = isSignUp ? await this.#parts.signUp.readNewUser(caller, members) : undefined;
    const account = changes && (await this.#newAccount(caller, { phone, members, changes }));
    const result = await store.transaction(async (tx) => {
      const user = await this.#find(tx, app, phone, true);
      if (!user && !account) throw refuse(failOnNotExist ? 'userNotFound' : 'conflict');
      await this.#parts.codes.spend(tx, code);
      if (user) return { ...(await this.#logIn(tx, caller, user)), isNew: false };
      if (!account) throw refuse('conflict');
      return { document: await this.#signUp(tx, app, account), isNew: true, proven: undefined };
    });
    const { isNew, proven } = result;
    if (proven) hooks.onVerified('sms', caller, proven);
    if (isNew) hooks.afterSave(caller, body, result.document);
    else await hooks.onLogin(caller, result.document);
    const document =
      isNew && changes
        ? withSentEntries(result.document, changes.sentAuthData, changes.authData)
        : result.document;
    return { document: { ...document, mobilePhone: phone.e164 }, isNew };
  }

  /** Logs a locked user in. Returns the user as `proven` if the code verified the number. */
  async #logIn(
    tx: Handle,
    { app, session }: Caller,
    user: User,
  ): Promise<{ document: JsonObject; proven: User | undefined }> {
    const { contacts, login } = this.#parts;
    const verified = await contacts.verify(tx, app, {
      user,
      contact: 'mobilePhoneNumber',
      session,
    });
    const document = await login.completeLogin(app, verified, tx);
    return { document, proven: user.mobilePhoneVerified ? undefined : verified };
  }

  async #signUp(tx: Handle, app: App, account: NewAccount): Promise<JsonObject> {
    const { user, token } = await this.#parts.store.create(tx, app, account);
    return { ...userDocument(user, { isOwn: true }), sessionToken: token };
  }

  /** Checks a code. A wrong code counts towards the lock. */
  async #checkCode(
    app: App,
    { phone, target }: { phone: Phone; target: LockTarget },
    smsCode: Json | undefined,
  ): Promise<CheckedCode> {
    try {
      return await this.#parts.codes.check(
        { appId: app.appId, purpose: 'general', phone },
        smsCode,
      );
    } catch (error) {
      if (error instanceof Refusal && error.kind === 'invalidSmsCode')
        await this.#parts.locks.countFailure(app, target);
      throw error;
    }
  }

  /**
   * Returns the account to create. If the body has no user name, the number becomes the user name
   * (protocol/users.md#user-fields).
   */
  async #newAccount(
    caller: Caller,
    { phone, members, changes }: { phone: Phone; members: JsonObject; changes: CheckedUserChanges },
  ): Promise<NewAccount> {
    // Set again after the hook, so that a hook cannot undo what the code proves.
    const verified = { mobilePhoneNumber: phone.e164, mobilePhoneVerified: true };
    const user = newUser(changes, changes.username ?? phone.e164, rulesOf(caller));
    const hooked = await this.#parts.hooks.beforeSave(caller, members, { ...user, ...verified });
    const { password } = changes;
    const passwordHash =
      password === undefined ? null : await this.#parts.passwords.hash(caller.app.appId, password);
    return { draft: { ...hooked, ...verified }, passwordHash, ipAddress: signUpIpAddress(caller) };
  }

  #find(db: Handle, { appId }: App, phone: Phone, isLocked = false): Promise<User | undefined> {
    return findUser(db, appId, { key: { mobilePhoneNumber: phone.e164 }, isLocked });
  }
}
