import type { ApiDeps } from '../deps.ts';
import type { Hooks } from '../functions/hooks.ts';
import type { Messaging } from '../sms/index.ts';
import { EmailService } from '../verification/emails.ts';
import { MailLinks } from '../verification/links.ts';
import { PhoneService } from '../verification/phones.ts';
import { ContactVerification } from './contact-verification.ts';
import { LoginService } from './login/login.ts';
import { LoginLocks } from './login/login-locks.ts';
import { UserLookup } from './lookup/lookup.ts';
import { Passwords } from './passwords/passwords.ts';
import { SessionService } from './sessions/session-service.ts';
import { Sessions } from './sessions/sessions.ts';
import { AuthPlatforms } from './third-party/platforms.ts';
import { ThirdPartyLogin } from './third-party/third-party-login.ts';
import { UserHooks } from './user-hooks.ts';
import { UserStore } from './user-store.ts';
import { UserService } from './users.ts';

/** The accounts half (protocol/users.md#users), put together; closed with the process. */
export class Accounts {
  readonly sessions: Sessions;
  readonly users: UserService;
  readonly lookup: UserLookup;
  readonly login: LoginService;
  readonly ownSession: SessionService;
  readonly phones: PhoneService;
  readonly emails: EmailService;
  readonly #passwords = new Passwords();
  readonly #platforms: AuthPlatforms;

  constructor(deps: ApiDeps, { codes, sender }: Messaging, hooks: Hooks) {
    const hooked = new UserHooks(hooks);
    const sessions = new Sessions(deps);
    const locks = new LoginLocks(deps);
    const links = new MailLinks(deps);
    const store = new UserStore(deps, { sessions, links });
    const proof = new ContactVerification({ store, sessions });
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
    this.ownSession = new SessionService(deps, { passwords, sessions, locks, store });
  }

  async close(): Promise<void> {
    await Promise.all([this.#passwords.close(), this.#platforms.close()]);
  }
}
