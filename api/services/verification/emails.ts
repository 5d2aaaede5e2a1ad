import { isMissingReference } from '../../../shared/db/limits/database-errors.ts';
import type { Handle } from '../../../shared/db/pool.ts';
import {
  deleteLinksOfUser,
  type Link,
  type LinkPurpose,
} from '../../../shared/db/tables/sign-in.ts';
import { findUser, setPassword } from '../../../shared/db/tables/users.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import type { Json, JsonObject } from '../../../shared/domain/json.ts';
import { readEmail, readPassword, type User } from '../../../shared/domain/users/user.ts';
import type { ContactVerification } from '../accounts/contact-verification.ts';
import type { Passwords } from '../accounts/passwords/passwords.ts';
import type { Sessions } from '../accounts/sessions/sessions.ts';
import type { UserHooks } from '../accounts/user-hooks.ts';
import type { UserStore } from '../accounts/user-store.ts';
import type { ApiDeps } from '../deps.ts';
import type { Language, Page } from '../server/html-page.ts';
import type { SmsCaller } from '../sms/sender.ts';
import {
  alreadyVerifiedPage,
  invalidLinkPage,
  type MailLinks,
  type MailRecipient,
  passwordForm,
  resetPage,
  verifiedPage,
} from './links.ts';

interface Parts {
  links: MailLinks;
  store: UserStore;
  sessions: Sessions;
  passwords: Passwords;
  hooks: UserHooks;
  contacts: ContactVerification;
}

/**
 * Verifies e-mail addresses and resets passwords by links
 * (protocol/codes.md#e-mail-and-password-reset). Requests for an unknown address get 205
 * (protocol/errors.md#account-failures). With the option `concealUsers`, unknown and known
 * addresses get the same reply after the same work.
 */
export class EmailService {
  readonly #deps: ApiDeps;
  readonly #parts: Parts;

  constructor(deps: ApiDeps, parts: Parts) {
    this.#deps = deps;
    this.#parts = parts;
  }

  /**
   * Sends a verification link. Throws error 1 if verification is off or the address gets too many
   * mails, error 204 without an address, error 125 for a malformed address, error 205 for an
   * unknown address.
   */
  async requestVerification(caller: SmsCaller, email: Json | undefined): Promise<void> {
    if (!caller.app.options.emailVerification) throw refuse('emailVerificationOff');
    await this.#request(caller, 'verifyEmail', {
      email,
      isEligible: (user) => user.emailVerified !== true,
    });
  }

  /**
   * Sends a reset link. Throws error 1 if the address gets too many mails, error 204 without an
   * address, error 125 for a malformed address, error 205 for an unknown address.
   */
  async requestReset(caller: SmsCaller, email: Json | undefined): Promise<void> {
    await this.#request(caller, 'resetPassword', { email, isEligible: () => true });
  }

  /**
   * Opens a verification link and returns a page with the result. If the link was already used, the
   * page says so: mail filters and previews open links before the person does.
   */
  async verifyPage(token: string, language: Language): Promise<Page> {
    const result = await this.#verify(token);
    if (result === undefined) return invalidLinkPage(language);
    return result === 'verified' ? verifiedPage(language) : alreadyVerifiedPage(language);
  }

  /** Returns the form for a new password. Does not spend the link. */
  async resetForm(token: string, language: Language): Promise<Page> {
    const app = await this.#appOfReset(token);
    return app ? passwordForm(app.name, language) : invalidLinkPage(language);
  }

  /** Processes the submitted form and returns a page with the result. */
  async submitReset(
    token: string,
    { password, repeat }: JsonObject,
    language: Language,
  ): Promise<Page> {
    const app = await this.#appOfReset(token);
    if (!app) return invalidLinkPage(language);
    if (!isPassword(password)) return passwordForm(app.name, language, 'invalid');
    if (password !== repeat) return passwordForm(app.name, language, 'mismatch');
    return (await this.#reset(app, token, password))
      ? resetPage(language)
      : invalidLinkPage(language);
  }

  /**
   * Marks the address of a link as verified. The link stays until it expires. Returns undefined if
   * the link is forged or expired, or if its user has another address now.
   */
  async #verify(token: string): Promise<'verified' | 'already' | undefined> {
    const { links, store, hooks } = this.#parts;
    const link = await links.find('verifyEmail', token);
    const verified = await store.transaction(async (tx) => {
      const opened = link && (await this.#userOf(tx, link, true));
      if (!opened) return undefined;
      const { app, user: current } = opened;
      if (current.emailVerified === true) return 'already';
      return {
        app,
        user: await store.save(tx, app, { current, draft: { ...current, emailVerified: true } }),
      };
    });
    if (verified === undefined || verified === 'already') return verified;
    hooks.onVerified('email', { app: verified.app }, verified.user);
    return 'verified';
  }

  /** Returns the app of a reset link. Returns undefined if the link is unusable. */
  async #appOfReset(token: string): Promise<App | undefined> {
    const link = await this.#parts.links.find('resetPassword', token);
    return link && (await this.#userOf(this.#deps.db, link))?.app;
  }

  /**
   * Sets the password by a reset link and ends the session. The link also verifies the address
   * (`ContactVerification.verify`). Returns false if the link is forged, used or expired.
   */
  async #reset(app: App, token: string, password: string): Promise<boolean> {
    const hash = await this.#parts.passwords.hash(app.appId, password);
    const done = await this.#parts.store.transaction(async (tx) => {
      const opened = await this.#open(tx, 'resetPassword', token);
      if (!opened) return undefined;
      const { appId } = opened.app;
      const now = this.#parts.store.now();
      const owner = await this.#parts.contacts.verify(tx, opened.app, {
        user: opened.user,
        contact: 'email',
      });
      const user = await setPassword(tx, appId, { id: owner.id, hash, now });
      await this.#parts.sessions.replace(tx, appId, { user, now });
      // Earlier reset links become invalid with the old password.
      await deleteLinksOfUser(tx, { appId, userId: user.id, purpose: 'resetPassword' });
      return { user, isProof: opened.user.emailVerified !== true };
    });
    if (done?.isProof) this.#parts.hooks.onVerified('email', { app }, done.user);
    return done !== undefined;
  }

  async #request(
    caller: SmsCaller,
    purpose: LinkPurpose,
    { email, isEligible }: { email: Json | undefined; isEligible: (user: User) => boolean },
  ): Promise<void> {
    const { app } = caller;
    if (email === undefined || email === null || email === '') throw refuse('emailMissing');
    const address = readEmail(email);
    const user = await findUser(this.#deps.db, app.appId, { key: { email: address } });
    if (!user && !app.options.concealUsers) throw refuse('emailUnknown');
    const isDryRun = user === undefined || !isEligible(user);
    const recipient = isDryRun ? unknownRecipient(address) : user;
    const { isMaster, ipAddress } = caller;
    const request = { purpose, ipAddress: isMaster ? undefined : ipAddress, isDryRun };
    try {
      await this.#parts.store.transaction(async (tx) => {
        if (!(await this.#parts.links.send(tx, app, recipient, request)))
          throw refuse('tooManyMails');
      });
    } catch (error) {
      if (!isMissingReference(error)) throw error;
      // The user was deleted at the same time. The next try does not find the user.
      await this.#request(caller, purpose, { email, isEligible });
    }
  }

  /**
   * Spends a link and locks its user. Returns undefined if the link or user does not exist any
   * more, or if the user's address has changed.
   */
  async #open(
    tx: Handle,
    purpose: LinkPurpose,
    token: string,
  ): Promise<{ app: App; user: User } | undefined> {
    const link = await this.#parts.links.spend(tx, purpose, token);
    return link && this.#userOf(tx, link, true);
  }

  async #userOf(
    db: Handle,
    { appId, userId, email }: Link,
    isLocked = false,
  ): Promise<{ app: App; user: User } | undefined> {
    const app = await this.#deps.appCache.app(appId);
    const user = await findUser(db, appId, { key: { id: userId }, isLocked });
    return app && user?.email === email ? { app, user } : undefined;
  }
}

function isPassword(value: Json | undefined): value is string {
  try {
    return typeof value === 'string' && readPassword(value) === value;
  } catch (error) {
    if (error instanceof Refusal) return false;
    throw error;
  }
}

/** Returns a recipient for a dry run. No user has the id 0, and the mail is rolled back. */
const unknownRecipient = (email: string): MailRecipient => ({ id: 0, email, username: email });
