import type { Handle } from '../../../shared/db/pool.ts';
import { deleteLinksOfUser } from '../../../shared/db/tables/sign-in.ts';
import { findUser } from '../../../shared/db/tables/users.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import type { User } from '../../../shared/domain/users/user.ts';
import { recordChange } from '../operator/audit/audit.ts';
import type { MailLinks } from '../verification/links.ts';
import { isObjectId } from './caller.ts';
import type { Contact } from './contact-verification.ts';
import type { LoginLocks } from './login/login.ts';
import type { Sessions } from './sessions/sessions.ts';
import type { UserHooks } from './user-hooks.ts';
import type { UserStore } from './user-store.ts';

interface Parts {
  store: UserStore;
  sessions: Sessions;
  locks: LoginLocks;
  links: MailLinks;
  hooks: UserHooks;
}

/** User whose account an operator changes. */
interface Target {
  app: App;
  objectId: string;
}

const flagOf = { email: 'emailVerified', mobilePhoneNumber: 'mobilePhoneVerified' } as const;

/**
 * Changes accounts for operators (protocol/admin-api.md#users). Every method throws error 404 if
 * the user does not exist, and audits in the transaction of its change.
 */
export class AccountControl {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Ends the session of a user. Its token becomes invalid in every process at once. */
  async logout(target: Target): Promise<void> {
    const { sessions, store } = this.#parts;
    await this.#change(target, 'logout', async (tx, user) => {
      await sessions.replace(tx, target.app.appId, { user, now: store.now() });
      return {};
    });
  }

  /** Ends the lock of a user after failed logins. */
  async unlock(target: Target): Promise<void> {
    await this.#change(target, 'unlock', async (tx, user) => {
      await this.#parts.locks.clear(tx, target.app, user);
      return {};
    });
  }

  /**
   * Marks a contact as verified. The operator vouches for the contact, so no access is revoked.
   * Throws error 204 or 212 if the user has no contact of this kind.
   */
  async verify(target: Target, contact: Contact): Promise<void> {
    const { hooks, store } = this.#parts;
    const verified = await this.#change(target, 'verify', async (tx, current) => {
      if (current[contact] === null)
        throw refuse(contact === 'email' ? 'emailMissing' : 'phoneMissing');
      const draft = { ...current, [flagOf[contact]]: true };
      await store.save(tx, target.app, { current, draft });
      if (contact === 'email') {
        const { appId } = target.app;
        await deleteLinksOfUser(tx, { appId, userId: current.id, purpose: 'verifyEmail' });
      }
      return {
        before: { [flagOf[contact]]: current[flagOf[contact]] },
        after: { [flagOf[contact]]: true },
      };
    });
    const kind = contact === 'email' ? 'email' : 'sms';
    hooks.onVerified(kind, { app: target.app }, { ...verified, [flagOf[contact]]: true });
  }

  /**
   * Mails a link that resets the password. Throws error 204 if the user has no address, error 1 if
   * the address gets too many mails.
   */
  async sendReset(target: Target): Promise<void> {
    const { links } = this.#parts;
    await this.#change(target, 'send-reset', async (tx, user) => {
      if (user.email === null) throw refuse('emailMissing');
      const request = { purpose: 'resetPassword', ipAddress: undefined } as const;
      if (!(await links.send(tx, target.app, user, request))) throw refuse('tooManyMails');
      return {};
    });
  }

  /** Changes a locked user and adds an audit record. Returns the user before the change. */
  #change(
    { app, objectId }: Target,
    verb: string,
    work: (tx: Handle, user: User) => Promise<{ before?: JsonObject; after?: JsonObject }>,
  ): Promise<User> {
    if (!isObjectId(objectId)) throw noSuchUser();
    const { appId } = app;
    return this.#parts.store.transaction(async (tx) => {
      const user = await findUser(tx, appId, { key: { objectId }, isLocked: true });
      if (!user) throw noSuchUser();
      const members = await work(tx, user);
      await recordChange(tx, { action: `user.${verb}`, appId, target: objectId, ...members });
      return user;
    });
  }
}

export const noSuchUser = (): Error => refuse('notFound', 'There is no such user.');
