import type { Means } from '../means.ts';
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

/** The accounts half (accounts.md), put together; closed with the process. */
export class Accounts {
  readonly sessions: Sessions;
  readonly users: UserService;
  readonly lookup: UserLookup;
  readonly login: LoginService;
  readonly ownSession: OwnSessionService;
  readonly #passwords = new Passwords();
  readonly #platforms: AuthPlatforms;

  constructor(means: Means) {
    const sessions = new Sessions(means);
    const locks = new LoginLocks(means);
    const store = new UserStore(means, sessions);
    const passwords = this.#passwords;
    const platforms = new AuthPlatforms(means);
    const login = new LoginService(means, { passwords, sessions, locks });
    const thirdParty = new ThirdPartyLogin({ store, login, platforms });
    this.#platforms = platforms;
    this.sessions = sessions;
    this.login = login;
    this.lookup = new UserLookup(means);
    this.users = new UserService(means, { passwords, sessions, platforms, store, thirdParty });
    this.ownSession = new OwnSessionService(means, { passwords, sessions, locks, store });
  }

  async close(): Promise<void> {
    await Promise.all([this.#passwords.close(), this.#platforms.close()]);
  }
}
