import type { Hooks } from '../functions/hooks.ts';
import type { Means } from '../means.ts';
import type { Messaging } from '../sms/index.ts';
import { EmailService } from '../verification/emails.ts';
import { MailLinks } from '../verification/links.ts';
import { PhoneService } from '../verification/phones.ts';
import { ContactProof } from './contact-proof.ts';
import { HookedUsers } from './hooked.ts';
import { LoginLocks } from './locks.ts';
import { LoginService } from './login.ts';
import { UserLookup } from './lookup.ts';
import { OwnSessionService } from './own-session.ts';
import { Passwords } from './passwords.ts';
import { AuthPlatforms } from './platforms.ts';
import { Sessions } from './sessions.ts';
import { UserStore } from './store.ts';
import { ThirdPartyLogin } from './third-party.ts';
import { UserService } from './users.ts';

/** The accounts half (protocol/users.md#users), put together; closed with the process. */
export class Accounts {
  readonly sessions: Sessions;
  readonly users: UserService;
  readonly lookup: UserLookup;
  readonly login: LoginService;
  readonly ownSession: OwnSessionService;
  readonly phones: PhoneService;
  readonly emails: EmailService;
  readonly #passwords = new Passwords();
  readonly #platforms: AuthPlatforms;

  constructor(means: Means, { codes, sender }: Messaging, hooks: Hooks) {
    const hooked = new HookedUsers(hooks);
    const sessions = new Sessions(means);
    const locks = new LoginLocks(means);
    const links = new MailLinks(means);
    const store = new UserStore(means, { sessions, links });
    const proof = new ContactProof({ store, sessions });
    const passwords = this.#passwords;
    const platforms = new AuthPlatforms(means);
    const login = new LoginService(means, { passwords, sessions, locks, codes, hooked });
    const thirdParty = new ThirdPartyLogin({ store, login, platforms });
    this.#platforms = platforms;
    this.sessions = sessions;
    this.login = login;
    this.lookup = new UserLookup(means);
    this.users = new UserService(means, { passwords, sessions, platforms, store, thirdParty, hooked });
    this.phones = new PhoneService(means, {
      codes,
      sender,
      store,
      sessions,
      passwords,
      locks,
      login,
      hooked,
      proof,
    });
    this.emails = new EmailService(means, { links, store, sessions, passwords, hooked, proof });
    this.ownSession = new OwnSessionService(means, { passwords, sessions, locks, store });
  }

  async close(): Promise<void> {
    await Promise.all([this.#passwords.close(), this.#platforms.close()]);
  }
}
