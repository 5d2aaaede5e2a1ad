import type { Handle } from '../../../shared/db/pool.ts';
import { deleteLinksOfUser } from '../../../shared/db/tables/users/link-tokens.ts';
import { setPassword } from '../../../shared/db/tables/users/users.ts';
import { deleteCodesOfSubject } from '../../../shared/db/tables/users/verification-codes.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import type { User } from '../../../shared/domain/users/user.ts';
import type { SessionOwner, Sessions } from './sessions/sessions.ts';
import type { UserStore } from './user-store.ts';

/** How a caller may prove to be reached. */
export type Contact = 'email' | 'mobilePhoneNumber';

const flagOf = { email: 'emailVerified', mobilePhoneNumber: 'mobilePhoneVerified' } as const;

/** The other contact goes: it may be the account maker's own, and resets the password. */
const otherContactCleared = {
  email: { mobilePhoneNumber: null, mobilePhoneVerified: false },
  mobilePhoneNumber: { email: null, emailVerified: null },
} as const;

/** Whose contact it is that an account has, once a caller proves to receive what is sent there. */
export class ContactVerification {
  readonly #store: UserStore;
  readonly #sessions: Sessions;

  constructor(parts: { store: UserStore; sessions: Sessions }) {
    this.#store = parts.store;
    this.#sessions = parts.sessions;
  }

  /**
   * Marks a contact of a locked user as verified. Anybody may have signed up with it before: unless it was verified
   * already, or the caller comes with the account's own session, or the app trusts what was never verified (option
   * `trustUnverifiedNumbers`), every way into the account that was set before is void: session, password, third-party
   * accounts, the other contact, links and codes under way. Custom members stay.
   */
  async verify(
    tx: Handle,
    app: App,
    { user, contact, session }: { user: User; contact: Contact; session?: SessionOwner | undefined },
  ): Promise<User> {
    const flag = flagOf[contact];
    if (user[flag] === true) return user;
    const proven = { ...user, [flag]: true };
    if (app.options.trustUnverifiedNumbers || session?.id === user.id)
      return this.#store.save(tx, app, { current: user, draft: proven });
    const authData = user.authData === null ? null : {};
    const draft = { ...proven, ...otherContactCleared[contact], authData };
    await this.#store.save(tx, app, { current: user, draft });
    return this.#revokeAccess(tx, app.appId, user);
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
