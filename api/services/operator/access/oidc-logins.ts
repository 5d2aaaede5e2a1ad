import { z } from 'zod';
import { minuteMs } from '../../../../shared/clock.ts';
import { openOrUndefined } from '../../../../shared/crypto.ts';
import { networkOf } from '../../../../shared/domain/addresses.ts';
import { callerName } from '../../../../shared/domain/admin/names.ts';
import { rightsOf } from '../../../../shared/domain/admin/oidc-rights.ts';
import type { Operator } from '../../../../shared/domain/admin/operator.ts';
import { Refusal } from '../../../../shared/domain/errors/errors.ts';
import { TtlCache } from '../../../../shared/ttl-cache.ts';
import type { ApiDeps } from '../../deps.ts';
import type { Language, Page } from '../../server/html-page.ts';
import { loginFailurePage } from './oidc-pages.ts';
import { type Identity, LoginFailed, OidcProvider } from './oidc-provider.ts';
import type { ConsoleSessionService, LoginClient } from './sessions.ts';

/** Time within which a person must log in at the provider. */
const pendingMs = 10 * minuteMs;
/** Calls of one network in a minute. Each may cause a request to the provider. */
const maxCallsPerMinute = 60;
const maxNetworks = 10_000;
/** Maximum length of a cookie or of the query of the provider's answer. */
const maxChars = 4096;

const callbackPath = '/console/oidc/callback';
const sealContext = 'console login';

/** A login that has begun. Only the browser keeps it, in an encrypted cookie. */
const pendingLogin = z.object({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  beganAtMs: z.number(),
});

/** Browser that logs in. */
export interface Browser extends Omit<LoginClient, 'cookie'> {
  language: Language;
  /** Header `Cookie`. */
  cookies: string | undefined;
}

/** Where the browser goes next, or the page that it shows, with the cookies that it gets. */
export type Step = { cookies: string[] } & ({ location: string } | { page: Page });

/** Login to the console by OpenID Connect (operate/single-sign-on.md). */
export class OidcLoginService {
  readonly #deps: ApiDeps;
  readonly #sessions: ConsoleSessionService;
  readonly #provider: OidcProvider | undefined;
  readonly #calls: TtlCache<string, { count: number }>;

  constructor(deps: ApiDeps, sessions: ConsoleSessionService) {
    const { config, clock } = deps;
    this.#deps = deps;
    this.#sessions = sessions;
    this.#provider = config.oidc && new OidcProvider(config.oidc, clock);
    this.#calls = new TtlCache({ clock, maxAgeMs: minuteMs, maxEntries: maxNetworks });
  }

  /** Host of the issuer, for the button of the login page. Null if there is no issuer. */
  get host(): string | null {
    const { oidc } = this.#deps.config;
    return oidc === undefined ? null : new URL(oidc.issuer).host;
  }

  /** Sends the browser to the provider. */
  async start(browser: Browser): Promise<Step> {
    return this.#step(browser, async (provider) => {
      const { secrets, url } = await provider.begin(this.#redirectUri);
      const { vault, clock } = this.#deps;
      const pending = { ...secrets, beganAtMs: clock.now() };
      const cookie = vault.seal(pending, sealContext).toString('base64url');
      return { location: url, cookies: [this.#pendingCookie(cookie)] };
    });
  }

  /**
   * Completes the login with the query of the provider's answer. Starts a session, or shows a page
   * that says why not.
   */
  async complete(query: string, browser: Browser): Promise<Step> {
    return this.#step(browser, async (provider) => {
      const pending = this.#pendingOf(browser.cookies);
      if (!pending || query.length > maxChars) return this.#failed('begun', browser);
      const identity = await provider.complete(
        new URL(`${this.#redirectUri}${query === '' ? '' : `?${query}`}`),
        pending,
      );
      return this.#admit(identity, browser);
    });
  }

  /**
   * Returns the address at which the person of a session also logs out at the provider. Returns
   * undefined for other sessions.
   */
  async endSessionUrl({ session }: Operator): Promise<string | undefined> {
    const login = `${this.#deps.config.publicUrl}/console/login`;
    return session?.isOidc ? this.#provider?.endSessionUrl(login) : undefined;
  }

  async #admit(identity: Identity, browser: Browser): Promise<Step> {
    const { oidc, publicUrl } = this.#deps.config;
    const rights = oidc && rightsOf(identity.values, oidc.roles);
    if (!rights) return this.#failed('unmapped', browser, identity.values);
    const { address, agent, requestId } = browser;
    const person = { ...rights, ...nameOf(identity), subject: identity.subject };
    const login = await this.#sessions.loginPerson(person, { address, agent, requestId });
    const cookies = [this.#sessions.cookieHeader(login.cookie), this.#pendingCookie('')];
    return { location: `${publicUrl}/console/`, cookies };
  }

  /** Limits the calls of a network, and turns failures into pages. */
  async #step(browser: Browser, run: (provider: OidcProvider) => Promise<Step>): Promise<Step> {
    if (!this.#provider) return this.#failed('off', browser);
    const calls = this.#calls.getOrMake(networkOf(browser.address), () => ({ count: 0 }));
    calls.count += 1;
    if (calls.count > maxCallsPerMinute) return this.#failed('busy', browser);
    try {
      return await run(this.#provider);
    } catch (error) {
      if (error instanceof Refusal && error.kind === 'tooManyRequests')
        return this.#failed('busy', browser);
      if (!(error instanceof LoginFailed)) throw error;
      const { failure, message } = error;
      this.#deps.log.warn({ failure, reason: message }, 'a login by OpenID Connect failed');
      return this.#failed(failure, browser);
    }
  }

  /** Shows a page. A login that has failed cannot be continued, so its cookie is deleted. */
  #failed(
    failure: Parameters<typeof loginFailurePage>[0],
    { language }: Browser,
    values: readonly string[] = [],
  ): Step {
    const cookies = failure === 'off' || failure === 'busy' ? [] : [this.#pendingCookie('')];
    return { page: loginFailurePage(failure, language, values), cookies };
  }

  get #redirectUri(): string {
    return this.#deps.config.publicUrl + callbackPath;
  }

  get #cookieName(): string {
    return `${this.#sessions.cookieName}-login`;
  }

  /**
   * Returns a `Set-Cookie` header. The cookie is `Lax`, because the provider's page leads back to
   * this service.
   */
  #pendingCookie(value: string): string {
    const seconds = value === '' ? 0 : pendingMs / 1000;
    return [
      `${this.#cookieName}=${value}`,
      'Path=/',
      'HttpOnly',
      'SameSite=Lax',
      ...(this.#sessions.isSecure ? ['Secure'] : []),
      `Max-Age=${seconds}`,
    ].join('; ');
  }

  #pendingOf(cookies: string | undefined): z.infer<typeof pendingLogin> | undefined {
    const value = (cookies ?? '')
      .split(/; */)
      .find((one) => one.startsWith(`${this.#cookieName}=`))
      ?.slice(this.#cookieName.length + 1);
    if (value === undefined || value.length > maxChars) return undefined;
    const { vault, clock } = this.#deps;
    const sealed = Buffer.from(value, 'base64url');
    const opened = pendingLogin.safeParse(openOrUndefined(() => vault.open(sealed, sealContext)));
    const ageMs = clock.now() - (opened.data?.beganAtMs ?? 0);
    return ageMs >= 0 && ageMs < pendingMs ? opened.data : undefined;
  }
}

/**
 * Returns the name and mail address of a person. The name is the first of these claims that may be
 * the name of a caller: `name`, `preferred_username`, `email`, `sub`.
 */
function nameOf({ claims, subject }: Identity): { name: string; mail: string | null } {
  const { name, preferred_username: login, email, sub } = claims;
  const names = [name, login, email, sub].flatMap(
    (value) => callerName.safeParse(value).data ?? [],
  );
  const mail = callerName.safeParse(email).data ?? null;
  return { name: names[0] ?? `person ${subject.slice(-40)}`, mail };
}
