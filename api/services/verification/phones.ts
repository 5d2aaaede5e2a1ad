import type { Handle } from '../../../shared/db/pool.ts';
import { findCodeSubject } from '../../../shared/db/tables/sign-in.ts';
import { findUser, setPassword } from '../../../shared/db/tables/users.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import type { Json, JsonObject } from '../../../shared/domain/json.ts';
import type { Phone } from '../../../shared/domain/messages/phone.ts';
import { readPassword, type User } from '../../../shared/domain/users/user.ts';
import type { ContactVerification } from '../accounts/contact-verification.ts';
import type { Passwords } from '../accounts/passwords/passwords.ts';
import type { SessionOwner, Sessions } from '../accounts/sessions/sessions.ts';
import type { UserHookCaller, UserHooks } from '../accounts/user-hooks.ts';
import type { UserStore } from '../accounts/user-store.ts';
import type { ApiDeps } from '../deps.ts';
import type { CheckedCode, CodeScope, NumberlessCode, VerificationCodes } from '../sms/codes.ts';
import { requirePhone } from '../sms/sms.ts';

interface Parts {
  codes: VerificationCodes;
  store: UserStore;
  sessions: Sessions;
  passwords: Passwords;
  hooks: UserHooks;
  contacts: ContactVerification;
}

/** Caller that submits a code. */
export interface CodeCaller {
  app: App;
  ipAddress: string;
  session?: SessionOwner | undefined;
}

/**
 * Verifies and changes phone numbers, and resets passwords, by codes
 * (protocol/codes.md#phone-accounts).
 */
export class PhoneService {
  readonly #deps: Pick<ApiDeps, 'db'>;
  readonly #parts: Parts;

  constructor(deps: Pick<ApiDeps, 'db'>, parts: Parts) {
    this.#deps = deps;
    this.#parts = parts;
  }

  /**
   * Verifies the number of an account. Uses the submitted number, otherwise the session's number,
   * otherwise the number that the code was sent to. Without the account's own session,
   * `ContactVerification.verify` revokes earlier access. Throws errors 127, 603.
   */
  async verify(
    caller: CodeCaller & UserHookCaller,
    code: string,
    mobilePhoneNumber: Json | undefined,
  ): Promise<JsonObject> {
    const { app, ipAddress, session } = caller;
    const scope = { appId: app.appId, purpose: 'verifyPhone' } as const;
    const submitted = mobilePhoneNumber ?? (await this.#numberOf(app, session));
    const phone = await this.#phoneOf({ ...scope, ipAddress }, submitted, code);
    const checked = await this.#parts.codes.check({ ...scope, phone }, code);
    const user = await this.#spendForUser(app, checked, (tx, user) =>
      this.#markVerified(tx, caller, user),
    );
    this.#parts.hooks.onVerified('sms', caller, user);
    return { updatedAt: user.updatedAt.toISOString(), objectId: user.objectId };
  }

  /**
   * Sets the number that a code was sent to, in the account that requested the code. A session must
   * belong to this account. Throws error 212 without a number, error 214 if another user has
   * verified the number, error 603 for a wrong code.
   */
  async change(
    caller: UserHookCaller,
    { mobilePhoneNumber, code }: { mobilePhoneNumber: Json | undefined; code: Json | undefined },
  ): Promise<void> {
    const { codes, contacts, store } = this.#parts;
    const { app, session } = caller;
    const phone = requirePhone(mobilePhoneNumber);
    const scope: CodeScope = { appId: app.appId, purpose: 'changePhone', phone };
    const number = { appId: app.appId, purpose: scope.purpose, number: phone.e164 };
    scope.subject = session?.objectId ?? (await findCodeSubject(this.#deps.db, number));
    const checked = await codes.check(scope, code);
    const objectId = scope.subject ?? '';
    const changed = await store.transaction(async (tx) => {
      const current = await findUser(tx, app.appId, { key: { objectId }, isLocked: true });
      if (!current) throw refuse('invalidSmsCode');
      await codes.spend(tx, checked);
      return contacts.assignNumber(tx, app, { user: current, number: phone.e164 });
    });
    this.#parts.hooks.onVerified('sms', caller, changed);
  }

  /** Sets a new password and ends the session. Throws errors 127, 201, 218, 603. */
  async reset(
    { app, ipAddress }: CodeCaller,
    code: string,
    { mobilePhoneNumber, password }: JsonObject,
  ): Promise<void> {
    if (password === undefined || password === null) throw refuse('passwordMissing');
    const newPassword = readPassword(password);
    const scope = { appId: app.appId, purpose: 'resetPassword' } as const;
    const { codes, passwords, sessions, store } = this.#parts;
    const phone = await this.#phoneOf({ ...scope, ipAddress }, mobilePhoneNumber, code);
    const checked = await codes.check({ ...scope, phone }, code);
    const hash = await passwords.hash(app.appId, newPassword);
    const { user, isProof } = await this.#spendForUser(app, checked, async (tx, owner) => {
      const { id } = await this.#markVerified(tx, { app }, owner);
      const now = store.now();
      const user = await setPassword(tx, app.appId, { id, hash, now });
      await sessions.replace(tx, app.appId, { user, now });
      return { user, isProof: !owner.mobilePhoneVerified };
    });
    if (isProof) this.#parts.hooks.onVerified('sms', { app }, user);
  }

  /**
   * Spends a code and runs `work` with the locked account of its number. Throws error 603 if no
   * account has the number.
   */
  #spendForUser<T>(
    { appId }: App,
    checked: CheckedCode,
    work: (tx: Handle, user: User) => Promise<T>,
  ): Promise<T> {
    const key = { mobilePhoneNumber: checked.scope.phone.e164 };
    return this.#parts.store.transaction(async (tx) => {
      const user = await findUser(tx, appId, { key, isLocked: true });
      if (!user) throw refuse('invalidSmsCode');
      await this.#parts.codes.spend(tx, checked);
      return work(tx, user);
    });
  }

  #markVerified(
    tx: Handle,
    { app, session }: Pick<CodeCaller, 'app' | 'session'>,
    user: User,
  ): Promise<User> {
    return this.#parts.contacts.verify(tx, app, { user, contact: 'mobilePhoneNumber', session });
  }

  #phoneOf(
    code: NumberlessCode,
    submitted: Json | undefined,
    text: string,
  ): Phone | Promise<Phone> {
    const isSubmitted = submitted !== undefined && submitted !== null && submitted !== '';
    return isSubmitted ? requirePhone(submitted) : this.#parts.codes.findNumber(code, text);
  }

  async #numberOf({ appId }: App, session: SessionOwner | undefined): Promise<string | null> {
    const user = session && (await findUser(this.#deps.db, appId, { key: { id: session.id } }));
    return user?.mobilePhoneNumber ?? null;
  }
}
