import type { ClientStorage } from '../client-storage.ts';
import type { ApiDeps } from '../deps.ts';
import type { Hooks } from '../functions/hooks.ts';
import type { Messaging } from '../sms/sms.ts';
import { EmailService } from '../verification/emails.ts';
import { MailLinks } from '../verification/links.ts';
import { PhoneCodes } from '../verification/phone-codes.ts';
import { PhoneLogin } from '../verification/phone-login.ts';
import { PhoneService } from '../verification/phones.ts';
import { AccountControl } from './account-control.ts';
import { ContactVerification } from './contact-verification.ts';
import { LoginLocks, LoginService } from './login/login.ts';
import { UserLookup } from './lookup/lookup.ts';
import { Passwords } from './passwords/passwords.ts';
import { SessionService } from './sessions/session-service.ts';
import { Sessions } from './sessions/sessions.ts';
import { SignUpService } from './sign-up/sign-up.ts';
import { AuthPlatforms } from './third-party/platforms.ts';
import { ThirdPartyLogin } from './third-party/third-party-login.ts';
import { UserHooks } from './user-hooks.ts';
import { UserStore } from './user-store.ts';
import { UserService } from './users.ts';

/** Services of users, sessions and verification (protocol/users.md#users). */
export class Accounts {
  readonly sessions: Sessions;
  readonly signUp: SignUpService;
  readonly users: UserService;
  readonly lookup: UserLookup;
  readonly login: LoginService;
  readonly currentSession: SessionService;
  readonly phoneCodes: PhoneCodes;
  readonly phoneLogin: PhoneLogin;
  readonly phones: PhoneService;
  readonly emails: EmailService;
  readonly locks: LoginLocks;
  /** Changes that operators make. */
  readonly control: AccountControl;
  readonly #passwords = new Passwords();
  readonly #platforms: AuthPlatforms;

  constructor(
    deps: ApiDeps,
    parts: { messaging: Messaging; functionHooks: Hooks; storage: ClientStorage },
  ) {
    const { functionHooks, storage } = parts;
    const { codes, sender } = parts.messaging;
    const hooks = new UserHooks(functionHooks);
    const sessions = new Sessions(deps);
    const locks = new LoginLocks(deps);
    const links = new MailLinks(deps);
    const store = new UserStore(deps, { sessions, links, storage });
    const contacts = new ContactVerification({ store, sessions });
    const passwords = this.#passwords;
    const platforms = new AuthPlatforms(deps);
    const login = new LoginService(deps, { passwords, sessions, locks, codes, hooks });
    const thirdParty = new ThirdPartyLogin({ store, login });
    const phoneParts = { codes, store, sessions, passwords, hooks, contacts };
    const phoneCodes = new PhoneCodes(deps, sender);
    this.#platforms = platforms;
    this.phoneCodes = phoneCodes;
    this.locks = locks;
    this.control = new AccountControl({ store, sessions, locks, links, hooks });
    this.sessions = sessions;
    this.login = login;
    this.lookup = new UserLookup(deps, { sessions, storage });
    this.signUp = new SignUpService({ passwords, store, platforms, thirdParty, hooks, phoneCodes });
    this.users = new UserService(deps, {
      passwords,
      sessions,
      locks,
      platforms,
      store,
      hooks,
      phoneCodes,
    });
    this.phoneLogin = new PhoneLogin(deps, { ...phoneParts, locks, login, signUp: this.signUp });
    this.phones = new PhoneService(deps, phoneParts);
    this.emails = new EmailService(deps, { links, store, sessions, passwords, hooks, contacts });
    this.currentSession = new SessionService(deps, { passwords, sessions, locks, store });
  }

  async close(): Promise<void> {
    await Promise.all([this.#passwords.close(), this.#platforms.close()]);
  }
}
