import { randomBytes } from 'node:crypto';
import type { Context } from 'koa';
import type { Config } from '../../shared/config/config.ts';
import { networkOf } from '../../shared/domain/addresses.ts';
import { hasRole, mayUseApp, type Operator } from '../../shared/domain/admin/operator.ts';
import { Refusal, refuse } from '../../shared/domain/errors/errors.ts';
import { detail } from '../../shared/domain/texts/texts.ts';
import type { Route } from '../route.ts';
import type { Services } from '../services/services.ts';

type AccessServices = Pick<
  Services,
  'attempts' | 'operatorIdentities' | 'consoleSessions' | 'callLimit'
>;

/**
 * Headers of every reply of the admin API. They keep replies out of caches and pages of other
 * origins.
 */
const replyHeaders = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Cross-Origin-Resource-Policy': 'same-origin',
} as const;

/**
 * Authenticates the callers of the admin API (protocol/admin-api.md#access) by the token in the
 * header, otherwise by the session in the cookie.
 */
export class OperatorAuthenticator {
  readonly #services: AccessServices;
  readonly #publicOrigin: string;

  constructor(services: AccessServices, { publicUrl }: Pick<Config, 'publicUrl'>) {
    this.#services = services;
    this.#publicOrigin = new URL(publicUrl).origin;
  }

  /**
   * Returns the caller. Throws error 401 without valid credentials. Throws error 403 if the role is
   * too low, the app is not the caller's, or the request comes from another origin. Throws error
   * 429 after too many wrong tokens or calls, error 415 if the body is not `application/json`.
   */
  async admit(
    ctx: Context,
    route: Pick<Route, 'role' | 'isFiltered' | 'limit'>,
  ): Promise<Operator> {
    beginReply(ctx);
    const operator =
      ctx.get('authorization') === '' ? await this.#ofCookie(ctx) : await this.#ofToken(ctx);
    // A push counts against the rate of its app instead.
    const { rate, weight = 1 } = route.limit;
    if (rate !== 'push') this.#services.callLimit.take(operator.tokenId, 'calls', weight);
    // A page of another origin can send forms and texts without a preflight, but not JSON.
    if (hasBody(ctx)) requireJson(ctx);
    requireRole(operator, route);
    requireApp(operator, route, ctx.params.appId);
    return operator;
  }

  /**
   * Admits a login. Throws error 403 for a page of another origin, error 415 if the body is not
   * JSON.
   */
  admitLogin(ctx: Context): void {
    beginReply(ctx);
    const isOfPage = ctx.get('sec-fetch-site') !== '' || ctx.get('origin') !== '';
    if (isOfPage) this.#requireSameOrigin(ctx);
    requireJson(ctx);
  }

  async #ofToken(ctx: Context): Promise<Operator> {
    const { attempts, operatorIdentities } = this.#services;
    const token = /^Bearer (.+)$/i.exec(ctx.get('authorization'))?.[1];
    // A request without a token does not count as an attempt.
    if (token === undefined) throw new Refusal('unauthorized');
    const operator = await operatorIdentities.ofToken(token);
    if (operator) return operator;
    throw attempts.fail(networkOf(ctx.ip), new Refusal('unauthorized'));
  }

  /**
   * Returns the owner of the session. Browsers also send the cookie with requests of pages on other
   * ports of this host, so the cookie does not prove which page sent the request. A change
   * therefore needs JSON and a browser header that names this origin.
   */
  async #ofCookie(ctx: Context): Promise<Operator> {
    const cookie = ctx.cookies.get(this.#services.consoleSessions.cookieName);
    const operator = cookie && (await this.#services.operatorIdentities.ofCookie(cookie));
    if (!operator) throw new Refusal('unauthorized');
    if (isRead(ctx)) {
      // If the browser reports the origin of a read, it must not be another site.
      const site = ctx.get('sec-fetch-site');
      if (site !== '' && site !== 'same-origin' && site !== 'none') throw otherOrigin();
    } else {
      this.#requireSameOrigin(ctx);
      requireJson(ctx);
    }
    return operator;
  }

  #requireSameOrigin(ctx: Context): void {
    const site = ctx.get('sec-fetch-site');
    if (site !== '' ? site === 'same-origin' : this.#isOwn(ctx.get('origin'), ctx)) return;
    throw otherOrigin();
  }

  /**
   * Returns whether an origin is the origin of PUBLIC_URL, or of the host to which the request was
   * sent.
   */
  #isOwn(origin: string, ctx: Context): boolean {
    if (!URL.canParse(origin)) return false;
    const { protocol, host } = new URL(origin);
    return (
      origin === this.#publicOrigin || (/^https?:$/.test(protocol) && host === ctx.get('host'))
    );
  }
}

/** Creates the id of a request, which the audit and the log also contain. */
function beginReply(ctx: Context): void {
  ctx.state.requestId = randomBytes(8).toString('hex');
  ctx.set({ ...replyHeaders, 'X-Request-Id': ctx.state.requestId });
}

const otherOrigin = (): Refusal => refuse('forbidden', detail('sessionElsewhere'));

const isRead = ({ method }: Context): boolean => method === 'GET' || method === 'HEAD';

function requireJson(ctx: Context): void {
  const [type = ''] = ctx.get('content-type').split(';');
  if (type.trim().toLowerCase() !== 'application/json')
    throw refuse('unsupportedMediaType', detail('jsonBodies'));
}

const hasBody = (ctx: Context): boolean =>
  Number(ctx.get('content-length')) > 0 || ctx.get('transfer-encoding') !== '';

function requireRole({ role }: Operator, { role: needed = 'owner' }: Pick<Route, 'role'>): void {
  if (!hasRole(role, needed)) throw refuse('forbidden', detail('roleNeeded', { needed, role }));
}

/**
 * Throws error 403 if the operator may not use the app. A path without an app concerns all apps,
 * unless its service filters the reply by the operator's apps.
 */
function requireApp(
  operator: Operator,
  { isFiltered }: Pick<Route, 'isFiltered'>,
  appId: string | undefined,
): void {
  const isAllowed =
    appId === undefined ? operator.apps === null || isFiltered : mayUseApp(operator, appId);
  if (!isAllowed) throw refuse('forbidden', detail('otherApps'));
}
