import type { ApiDeps } from '../deps.ts';
import type { Hooks } from '../functions/hooks.ts';
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

  constructor(deps: ApiDeps, { codes, sender }: Messaging, hooks: Hooks) {
    const hooked = new HookedUsers(hooks);
    const sessions = new Sessions(deps);
    const locks = new LoginLocks(deps);
    const links = new MailLinks(deps);
    const store = new UserStore(deps, { sessions, links });
    const proof = new ContactProof({ store, sessions });
    const passwords = this.#passwords;
    const platforms = new AuthPlatforms(deps);
    const login = new LoginService(deps, { passwords, sessions, locks, codes, hooked });
    const thirdParty = new ThirdPartyLogin({ store, login, platforms });
    this.#platforms = platforms;
    this.sessions = sessions;
    this.login = login;
    this.lookup = new UserLookup(deps);
    this.users = new UserService(deps, { passwords, sessions, platforms, store, thirdParty, hooked });
    this.phones = new PhoneService(deps, {
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
    this.emails = new EmailService(deps, { links, store, sessions, passwords, hooked, proof });
    this.ownSession = new OwnSessionService(deps, { passwords, sessions, locks, store });
  }

  async close(): Promise<void> {
    await Promise.all([this.#passwords.close(), this.#platforms.close()]);
  }
}
