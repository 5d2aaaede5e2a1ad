import type { Handle } from '../../../shared/db/pool.ts';
import { deleteCodesOfSubject, deleteLinksOfUser } from '../../../shared/db/tables/sign-in.ts';
import { findUser, setPassword } from '../../../shared/db/tables/users.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import type { User } from '../../../shared/domain/users/user.ts';
import type { SessionOwner, Sessions } from './sessions/sessions.ts';
import type { UserStore } from './user-store.ts';

/** Kind of contact of an account. */
export type Contact = 'email' | 'mobilePhoneNumber';

const flagOf = { email: 'emailVerified', mobilePhoneNumber: 'mobilePhoneVerified' } as const;

/**
 * Changes that remove the other contact. The other contact may belong to the person who signed up,
 * who could use it to reset the password.
 */
const otherContactCleared = {
  email: { mobilePhoneNumber: null, mobilePhoneVerified: false },
  mobilePhoneNumber: { email: null, emailVerified: null },
} as const;

/** Marks contacts as verified after a caller proved to receive messages there. */
export class ContactVerification {
  readonly #store: UserStore;
  readonly #sessions: Sessions;

  constructor(parts: { store: UserStore; sessions: Sessions }) {
    this.#store = parts.store;
    this.#sessions = parts.sessions;
  }

  /**
   * Marks a contact of a locked user as verified. Another person may have signed up with this
   * contact. Therefore all earlier access is revoked: session, password, third-party accounts, the
   * other contact, pending links and codes. Custom members stay.
   *
   * Revokes nothing if the contact is already verified, if the caller has the account's own
   * session, or if the option `trustUnverifiedNumbers` is set.
   */
  async verify(
    tx: Handle,
    app: App,
    {
      user,
      contact,
      session,
    }: { user: User; contact: Contact; session?: SessionOwner | undefined },
  ): Promise<User> {
    const flag = flagOf[contact];
    if (user[flag] === true) return user;
    const verified = { ...user, [flag]: true };
    if (app.options.trustUnverifiedNumbers || session?.id === user.id)
      return this.#store.save(tx, app, { current: user, draft: verified });
    const authData = user.authData === null ? null : {};
    const draft = { ...verified, ...otherContactCleared[contact], authData };
    await this.#store.save(tx, app, { current: user, draft });
    return this.#revokeAccess(tx, app.appId, user);
  }

  /**
   * Sets the number of a locked user who proved to own it. If another user has the number
   * unverified, that account stays but loses the number. Throws error 214 if the other user has
   * verified the number.
   */
  async assignNumber(
    tx: Handle,
    app: App,
    { user, number }: { user: User; number: string },
  ): Promise<User> {
    const key = { mobilePhoneNumber: number };
    const holder = await findUser(tx, app.appId, { key, isLocked: true });
    if (holder && holder.id !== user.id && !holder.mobilePhoneVerified)
      await this.#store.save(tx, app, {
        current: holder,
        draft: { ...holder, mobilePhoneNumber: null },
      });
    const draft = { ...user, mobilePhoneNumber: number, mobilePhoneVerified: true };
    return this.#store.save(tx, app, { current: user, draft });
  }

  async #revokeAccess(tx: Handle, appId: string, { id, objectId }: User): Promise<User> {
    for (const purpose of ['verifyEmail', 'resetPassword'] as const)
      await deleteLinksOfUser(tx, { appId, userId: id, purpose });
    await deleteCodesOfSubject(tx, appId, objectId);
    const now = this.#store.now();
    const user = await setPassword(tx, appId, { id, hash: null, now });
    const [changed] = await this.#sessions.replace(tx, appId, { user, now });
    return changed;
  }
}
