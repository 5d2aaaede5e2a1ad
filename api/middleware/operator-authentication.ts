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

/** Headers of every reply of the admin API: no cache and no page of another origin gets it. */
const replyHeaders = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Cross-Origin-Resource-Policy': 'same-origin',
} as const;

/**
 * Authenticates the callers of the admin API (protocol/admin-api.md#access): a token in the header,
 * else a session in the cookie.
 */
export class OperatorAuthenticator {
  readonly #services: AccessServices;
  readonly #publicOrigin: string;

  constructor(services: AccessServices, { publicUrl }: Pick<Config, 'publicUrl'>) {
    this.#services = services;
    this.#publicOrigin = new URL(publicUrl).origin;
  }

  /**
   * Returns the caller. Throws 401; 403 for a role below that of the route, for another app, and
   * for a request of another origin; 429 after too many wrong tokens or calls; 415 for a body that
   * is not `application/json`.
   */
  async admit(
    ctx: Context,
    route: Pick<Route, 'role' | 'isFiltered' | 'limit'>,
  ): Promise<Operator> {
    beginReply(ctx);
    const operator =
      ctx.get('authorization') === '' ? await this.#ofCookie(ctx) : await this.#ofToken(ctx);
    // A push has the rate of its app instead.
    const { rate, weight = 1 } = route.limit;
    if (rate !== 'push') this.#services.callLimit.take(operator.tokenId, 'calls', weight);
    // A page of another origin can send forms and texts without a preflight, but not JSON.
    if (hasBody(ctx)) requireJson(ctx);
    requireRole(operator, route);
    requireApp(operator, route, ctx.params.appId);
    return operator;
  }

  /**
   * Admits a login. Throws 403 for a page of another origin, 415 for another body than JSON.
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
    // A request without a token is no attempt.
    if (token === undefined) throw new Refusal('unauthorized');
    const operator = await operatorIdentities.ofToken(token);
    if (operator) return operator;
    throw attempts.fail(networkOf(ctx.ip), new Refusal('unauthorized'));
  }

  /**
   * Returns the owner of the session. A cookie comes along with requests of pages on other ports of
   * this host, and it proves nothing about the page: a change needs JSON and a browser's word that
   * the page is ours.
   */
  async #ofCookie(ctx: Context): Promise<Operator> {
    const cookie = ctx.cookies.get(this.#services.consoleSessions.cookieName);
    const operator = cookie && (await this.#services.operatorIdentities.ofCookie(cookie));
    if (!operator) throw new Refusal('unauthorized');
    if (isReading(ctx)) {
      // A browser that tells where a request comes from is believed.
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

  /** Tells whether an origin is that of PUBLIC_URL, or of the host that the request was sent to. */
  #isOwn(origin: string, ctx: Context): boolean {
    if (!URL.canParse(origin)) return false;
    const { protocol, host } = new URL(origin);
    return (
      origin === this.#publicOrigin || (/^https?:$/.test(protocol) && host === ctx.get('host'))
    );
  }
}

/** Gives a request its id, which the audit and the log have too. */
function beginReply(ctx: Context): void {
  ctx.state.requestId = randomBytes(8).toString('hex');
  ctx.set({ ...replyHeaders, 'X-Request-Id': ctx.state.requestId });
}

const otherOrigin = (): Refusal => refuse('forbidden', detail('sessionElsewhere'));

const isReading = ({ method }: Context): boolean => method === 'GET' || method === 'HEAD';

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

/** A path without an app concerns all apps, unless its service leaves out what is of others. */
function requireApp(
  operator: Operator,
  { isFiltered }: Pick<Route, 'isFiltered'>,
  appId: string | undefined,
): void {
  const isAllowed =
    appId === undefined ? operator.apps === null || isFiltered : mayUseApp(operator, appId);
  if (!isAllowed) throw refuse('forbidden', detail('otherApps'));
}
