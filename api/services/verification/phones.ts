import type { Handle } from '../../../shared/db/pool.ts';
import { findUser, setPassword } from '../../../shared/db/tables/users/users.ts';
import { findCodeSubject } from '../../../shared/db/tables/users/verification-codes.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { type ErrorName, Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import type { Json, JsonObject } from '../../../shared/domain/json.ts';
import type { Phone } from '../../../shared/domain/messages/phone.ts';
import { codeTtl } from '../../../shared/domain/messages/sms.ts';
import { newUser, readUserChanges } from '../../../shared/domain/users/changes.ts';
import { readPassword } from '../../../shared/domain/users/members.ts';
import { type User, userDocument } from '../../../shared/domain/users/user.ts';
import { rulesOf, type SignUpCaller, signUpIpAddress } from '../accounts/caller.ts';
import type { ContactVerification } from '../accounts/contact-verification.ts';
import type { LoginService } from '../accounts/login/login.ts';
import type { LockTarget, LoginLocks } from '../accounts/login/login-locks.ts';
import type { Passwords } from '../accounts/passwords/passwords.ts';
import type { SessionOwner, Sessions } from '../accounts/sessions/sessions.ts';
import type { LoginResult } from '../accounts/third-party/third-party-login.ts';
import type { UserHookCaller, UserHooks } from '../accounts/user-hooks.ts';
import type { UserStore } from '../accounts/user-store.ts';
import type { ApiDeps } from '../deps.ts';
import type { CheckedCode, CodeScope, NumberlessCode, VerificationCodes } from '../sms/codes.ts';
import type { SmsCaller, SmsSender } from '../sms/sender.ts';
import { readTtl, requirePhone } from '../sms/sms.ts';

interface Parts {
  codes: VerificationCodes;
  sender: SmsSender;
  store: UserStore;
  sessions: Sessions;
  passwords: Passwords;
  locks: LoginLocks;
  login: LoginService;
  hooked: UserHooks;
  proof: ContactVerification;
}

/** Who comes with a code. */
export interface CodeCaller {
  app: App;
  /** Network address. */
  ipAddress: string;
  session?: SessionOwner | undefined;
}

type Prover = Pick<CodeCaller, 'app' | 'session'>;

const isVerified = (user: User): boolean => user.mobilePhoneVerified;

/** Body of a call that asks for a code. */
export interface CodeRequest {
  mobilePhoneNumber?: Json | undefined;
  validate_token?: string | undefined;
  ttl?: number | undefined;
}

/**
 * Accounts by phone: registration, login, verification, change of number and reset by code
 * (protocol/codes.md#phone-accounts). Asking for a code for a number that no account has is 213, and 215 where it must be verified and is not
 * (protocol/errors.md#account-failures). With the option `concealUsers` the answer is that to a fit number, counted against the same limits,
 * and no message is sent (protocol/known-problems.md#enumeration).
 */
export class PhoneService {
  readonly #deps: Pick<ApiDeps, 'db'>;
  readonly #parts: Parts;

  constructor(deps: Pick<ApiDeps, 'db'>, parts: Parts) {
    this.#deps = deps;
    this.#parts = parts;
  }

  /** A code to log in with, for a verified number. Throws as `SmsSender.send`, 127, 212, 213, 215. */
  requestLogin(caller: SmsCaller, request: CodeRequest): Promise<void> {
    return this.#request(caller, 'login', { request, isFor: isVerified, unfit: 'phoneUnverified' });
  }

  /** A code that verifies the number of an account; none is sent when it is verified already (protocol/codes.md#phone-accounts). */
  requestVerification(caller: SmsCaller, request: CodeRequest): Promise<void> {
    return this.#request(caller, 'verifyPhone', { request, isFor: (user) => !isVerified(user) });
  }

  /** A code to set a new password with, for a verified number. */
  requestReset(caller: SmsCaller, request: CodeRequest): Promise<void> {
    return this.#request(caller, 'resetPassword', { request, isFor: isVerified, unfit: 'phoneUnverified' });
  }

  /** A code to the number that shall be the caller's; only this account can use it. */
  async requestChange(
    caller: SmsCaller,
    session: SessionOwner | undefined,
    request: CodeRequest,
  ): Promise<void> {
    // The master key goes without a session, but a number is some account's.
    if (!session) throw refuse('sessionNeeded');
    await this.#parts.sender.send(caller, {
      phone: requirePhone(request.mobilePhoneNumber),
      type: 'changePhone',
      ttlMinutes: readTtl(request.ttl, codeTtl.forPhoneChange),
      subject: session.objectId,
      validateToken: request.validate_token,
    });
  }

  /**
   * POST /1.1/usersByMobilePhone: logs in whose number it is, or registers one; with a code of the general service.
   * A number that was never verified is proven as in `ContactVerification.verify`. Wrong codes lock as at login. Throws 603, 211 with `failOnNotExist`, 219, and as registration.
   */
  async enter(
    caller: UserHookCaller & SignUpCaller,
    body: JsonObject,
    failOnNotExist: boolean,
  ): Promise<LoginResult> {
    const { app } = caller;
    const { hooked } = this.#parts;
    const { mobilePhoneNumber, smsCode, ...members } = body;
    const phone = requirePhone(mobilePhoneNumber);
    const known = await this.#find(this.#deps.db, app, phone);
    const target: LockTarget = { user: known, submitted: { kind: 'mobilePhoneNumber', value: phone.e164 } };
    await this.#parts.locks.requireUnlocked(app, target);
    const checked = await this.#checkOrFail(app, { phone, target }, smsCode);
    const make = known || failOnNotExist ? undefined : await this.#draft(caller, phone, members);
    const entered = await this.#parts.store.transaction(async (tx) => {
      const user = await this.#find(tx, app, phone, true);
      if (!user && !make) throw refuse(failOnNotExist ? 'userNotFound' : 'conflict');
      await this.#parts.codes.spend(tx, checked);
      if (user) return { document: await this.#logIn(tx, caller, user), isNew: false };
      if (!make) throw refuse('conflict');
      const made = await this.#parts.store.create(tx, app, make);
      return {
        document: { ...userDocument(made.user, { isOwn: true }), sessionToken: made.token },
        isNew: true,
      };
    });
    if (entered.isNew) hooked.afterSave(caller, body, entered.document);
    else await hooked.onLogin(caller, entered.document);
    return { ...entered, document: { ...entered.document, mobilePhone: phone.e164 } };
  }

  /**
   * The account of this number is verified: the number that is named, else the session's, else the one that the code
   * was sent to. Without the account's own session `ContactVerification.verify` ends what was set before. Throws 127, 603.
   */
  async verify(
    caller: CodeCaller & UserHookCaller,
    code: string,
    mobilePhoneNumber: Json | undefined,
  ): Promise<JsonObject> {
    const { app, ipAddress, session } = caller;
    const named = mobilePhoneNumber ?? (await this.#numberOf(app, session));
    const phone = await this.#phoneOf({ appId: app.appId, purpose: 'verifyPhone', ipAddress }, named, code);
    const checked = await this.#parts.codes.check({ appId: app.appId, purpose: 'verifyPhone', phone }, code);
    const user = await this.#withOwner(app, checked, (tx, user) => this.#proven(tx, caller, user));
    this.#parts.hooked.onVerified('sms', caller, user);
    return { updatedAt: user.updatedAt.toISOString(), objectId: user.objectId };
  }

  /**
   * Gives the account that asked for the code the number that the code was sent to. With a session it must be the
   * session's account. Throws 212, 214 when the number is another's, 603.
   */
  async change(
    app: App,
    { mobilePhoneNumber, code }: { mobilePhoneNumber: Json | undefined; code: Json | undefined },
    session: SessionOwner | undefined,
  ): Promise<void> {
    const phone = requirePhone(mobilePhoneNumber);
    const use: CodeScope = { appId: app.appId, purpose: 'changePhone', phone };
    const number = { appId: app.appId, purpose: use.purpose, number: phone.e164 };
    use.subject = session?.objectId ?? (await findCodeSubject(this.#deps.db, number));
    const checked = await this.#parts.codes.check(use, code);
    const objectId = use.subject ?? '';
    await this.#parts.store.transaction(async (tx) => {
      const current = await findUser(tx, app.appId, { key: { objectId }, isLocked: true });
      if (!current) throw refuse('invalidSmsCode');
      await this.#parts.codes.spend(tx, checked);
      const draft = { ...current, mobilePhoneNumber: phone.e164, mobilePhoneVerified: true };
      await this.#parts.store.save(tx, app, { current, draft });
    });
  }

  /** Sets a new password and ends the session. Throws 127, 201, 218, 603. */
  async reset(
    { app, ipAddress }: CodeCaller,
    code: string,
    { mobilePhoneNumber, password }: JsonObject,
  ): Promise<void> {
    if (password === undefined || password === null) throw refuse('passwordMissing');
    const fresh = readPassword(password);
    const purpose = 'resetPassword' as const;
    const phone = await this.#phoneOf({ appId: app.appId, purpose, ipAddress }, mobilePhoneNumber, code);
    const checked = await this.#parts.codes.check({ appId: app.appId, purpose, phone }, code);
    const hash = await this.#parts.passwords.hash(app.appId, fresh);
    await this.#withOwner(app, checked, async (tx, owner) => {
      const { id } = await this.#proven(tx, { app }, owner);
      const now = this.#parts.store.now();
      const user = await setPassword(tx, app.appId, { id, hash, now });
      await this.#parts.sessions.replace(tx, app.appId, { user, now });
    });
  }

  async #request(
    caller: SmsCaller,
    type: 'login' | 'verifyPhone' | 'resetPassword',
    { request, isFor, unfit }: { request: CodeRequest; isFor: (user: User) => boolean; unfit?: ErrorName },
  ): Promise<void> {
    const phone = requirePhone(request.mobilePhoneNumber);
    const user = await this.#find(this.#deps.db, caller.app, phone);
    const refusal = user ? (isFor(user) ? undefined : unfit) : 'phoneUnknown';
    if (refusal && !caller.app.options.concealUsers) {
      await this.#parts.sender.spendCaptcha(caller, request.validate_token);
      throw refuse(refusal);
    }
    await this.#parts.sender.send(caller, {
      phone,
      type,
      ttlMinutes: codeTtl.default,
      validateToken: request.validate_token,
      isDryRun: !user || !isFor(user),
    });
  }

  /** Spends a code and does what it is for, with its number's account locked. Throws 603 when it has none. */
  #withOwner<T>(app: App, checked: CheckedCode, work: (tx: Handle, user: User) => Promise<T>): Promise<T> {
    return this.#parts.store.transaction(async (tx) => {
      const user = await this.#find(tx, app, checked.scope.phone, true);
      if (!user) throw refuse('invalidSmsCode');
      await this.#parts.codes.spend(tx, checked);
      return work(tx, user);
    });
  }

  /** The holder of the phone may enter the account, and has proven that the number is right. */
  async #logIn(tx: Handle, caller: Prover, user: User): Promise<JsonObject> {
    return this.#parts.login.completeLogin(caller.app, await this.#proven(tx, caller, user), tx);
  }

  #proven(tx: Handle, { app, session }: Prover, user: User): Promise<User> {
    return this.#parts.proof.verify(tx, app, { user, contact: 'mobilePhoneNumber', session });
  }

  async #checkOrFail(
    app: App,
    { phone, target }: { phone: Phone; target: LockTarget },
    smsCode: Json | undefined,
  ): Promise<CheckedCode> {
    try {
      return await this.#parts.codes.check({ appId: app.appId, purpose: 'general', phone }, smsCode);
    } catch (error) {
      if (error instanceof Refusal && error.kind === 'invalidSmsCode')
        await this.#parts.locks.countFailure(app, target);
      throw error;
    }
  }

  /** A user of this number, named after it unless the body says otherwise (protocol/users.md#user-fields). */
  async #draft(caller: UserHookCaller & SignUpCaller, phone: Phone, members: JsonObject) {
    const { app } = caller;
    const changes = readUserChanges(members);
    const rules = rulesOf(caller);
    // What the code proves no hook takes away.
    const proven = { mobilePhoneNumber: phone.e164, mobilePhoneVerified: true };
    const asked = { ...newUser(changes, changes.username ?? phone.e164, rules), ...proven };
    const draft = { ...(await this.#parts.hooked.beforeSave(caller, members, asked)), ...proven };
    const { password } = changes;
    const passwordHash =
      password === undefined ? null : await this.#parts.passwords.hash(app.appId, password);
    return { draft, passwordHash, ipAddress: signUpIpAddress(caller) };
  }

  #phoneOf(alone: NumberlessCode, named: Json | undefined, code: string): Phone | Promise<Phone> {
    const isNamed = named !== undefined && named !== null && named !== '';
    return isNamed ? requirePhone(named) : this.#parts.codes.findNumber(alone, code);
  }

  async #numberOf({ appId }: App, session: SessionOwner | undefined): Promise<string | null> {
    const user = session && (await findUser(this.#deps.db, appId, { key: { id: session.id } }));
    return user?.mobilePhoneNumber ?? null;
  }

  #find(db: Handle, { appId }: App, phone: Phone, isLocked = false): Promise<User | undefined> {
    return findUser(db, appId, { key: { mobilePhoneNumber: phone.e164 }, isLocked });
  }
}
