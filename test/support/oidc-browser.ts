/**
 * Browser without scripts, for the login by OpenID Connect: keeps cookies by host, and follows
 * redirects. `origins` maps public origins to those of servers on loopback.
 */
export class PlainBrowser {
  readonly cookies = new Map<string, Map<string, string>>();
  readonly #origins: Readonly<Record<string, string>>;

  constructor(origins: Readonly<Record<string, string>>) {
    this.#origins = origins;
  }

  /** Sends one request. Redirects are not followed. */
  async request(url: string, form?: Record<string, string>): Promise<Response> {
    const { origin, host, pathname, search } = new URL(url);
    const jar = this.cookies.get(host) ?? new Map<string, string>();
    this.cookies.set(host, jar);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(`${this.#origins[origin] ?? origin}${pathname}${search}`, {
      redirect: 'manual',
      headers: { cookie, accept: 'text/html' },
      ...(form === undefined ? {} : { method: 'POST', body: new URLSearchParams(form) }),
    });
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === '' || /expires=Thu, 01 Jan 1970/.test(line)) jar.delete(name);
      else jar.set(name, value);
    }
    return response;
  }

  /** Follows redirects up to a page, or up to a URL that `isEnd` names. */
  async follow(
    url: string,
    {
      isEnd = () => false,
      form,
    }: { isEnd?: (url: string) => boolean; form?: Record<string, string> } = {},
  ): Promise<{ url: string; response?: Response }> {
    let next = url;
    let sent = form;
    for (let i = 0; i < 20; i++) {
      if (isEnd(next)) return { url: next };
      const response = await this.request(next, sent);
      sent = undefined;
      const location = response.headers.get('location');
      if (location === null) return { url: next, response };
      await response.body?.cancel();
      next = new URL(location, next).href;
    }
    throw new Error('too many redirects');
  }

  /** Follows the login up to the address that the provider sends the browser back to. */
  async logInAt(startUrl: string, login: string): Promise<string> {
    const isEnd = (url: string) => new URL(url).pathname === '/console/oidc/callback';
    const form = await this.follow(startUrl, { isEnd });
    // The provider still has a session.
    if (form.response === undefined) return form.url;
    await form.response.body?.cancel();
    const fields = { prompt: 'login', login, password: 'x' };
    return (await this.follow(form.url, { isEnd, form: fields })).url;
  }
}
