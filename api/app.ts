import { type IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { Router } from '@koa/router';
import Koa, { type Context } from 'koa';
import { systemClock } from '../shared/clock.ts';
import type { Config } from '../shared/config/config.ts';
import { inLane } from '../shared/db/limits/lane.ts';
import { Refusal } from '../shared/domain/errors/errors.ts';
import { LoopShare } from '../shared/fairness/loop-share.ts';
import type { Metrics } from '../shared/metrics.ts';
import type { Logger } from '../shared/process/logging.ts';
import { type InnerDeps, innerCallRunner } from './calls/inner-calls.ts';
import { replyText } from './calls/reply-text.ts';
import { checkSchema } from './calls/schema-check.ts';
import {
  type AppIdentity,
  authenticateApp,
  prodOf,
  requireKey,
  sessionOf,
  stageOf,
} from './middleware/authentication.ts';
import { readBody, readText, readToForward } from './middleware/body.ts';
import { allowCrossOrigin } from './middleware/cors.ts';
import { errors, toRefusal } from './middleware/errors.ts';
import { type Exchange, reportExchanges } from './middleware/exchange.ts';
import { serveHtmlPages } from './middleware/html-pages.ts';
import { languageOf } from './middleware/language.ts';
import type { OperatorAuthenticator } from './middleware/operator-authentication.ts';
import type { PushCallLimit } from './middleware/push-call-limit.ts';
import {
  attachRequestBody,
  type BodyMemory,
  type BodySender,
  bodyTooLarge,
} from './middleware/request-body.ts';
import { logRequests } from './middleware/request-log.ts';
import { textForm } from './middleware/text-form.ts';
import type { AnyCall, AppCall, Reply, Route } from './route.ts';
import type { SessionOwner } from './services/accounts/sessions/sessions.ts';
import type { Services } from './services/services.ts';

export interface AppOptions {
  routes: Route[];
  services: Services;
  config: Pick<Config, 'trustedProxies'>;
  operator: OperatorAuthenticator;
  log: Logger;
  metrics: Metrics;
  pushCallLimit: PushCallLimit;
  bodies: BodyMemory;
  /** Gets every reply with its route; tests set it. */
  onExchange?: ((exchange: Exchange) => void) | undefined;
}

/** The HTTP side of the api: the middlewares in the order a request passes them (api/README.md). */
export function createApp(options: AppOptions): Koa {
  const app = new Koa();
  // Koa would print to standard error what the log already holds.
  app.silent = true;
  // Each proxy adds the address that it saw; what is further left in the header anybody may have written.
  app.proxy = options.config.trustedProxies > 0;
  app.maxIpsCount = options.config.trustedProxies;
  app.use(logRequests(options.log, options.metrics));
  if (options.onExchange) app.use(reportExchanges(options.onExchange));
  app.use(allowCrossOrigin());
  app.use(errors);
  app.use(attachRequestBody(options.bodies));
  app.use(textForm);
  const router = new Router();
  const routeOf = new Map<unknown, Route>();
  const loopShare = new LoopShare(() => systemClock.monotonicMs());
  const find: Find = (method, path) => findRoute(router, routeOf, { method, path });
  for (const { path, route } of inOrder(options.routes)) {
    const handler = (ctx: Context) => answer(ctx, route, { ...options, find, loopShare });
    routeOf.set(handler, route);
    router.register(path, [route.method], handler);
  }
  app.use(serveHtmlPages((path) => find('GET', path) !== undefined));
  app.use(router.routes());
  app.use(router.allowedMethods());
  return app;
}

/** A path that names a part comes before one that leaves it open: the router takes the first that fits. */
function inOrder(routes: Route[]): { path: string; route: Route }[] {
  const openLast = (path: string) => path.replace(/:[^/]+/g, '\uffff');
  return routes
    .flatMap((route) => route.paths.map((path) => ({ path, route })))
    .sort((a, b) => (openLast(a.path) < openLast(b.path) ? -1 : 1));
}

/** Who asks: `ctx.ip` of a request that is no call, such as one for the device channel. */
export function remoteAddressOf(app: Koa, request: IncomingMessage): string {
  return app.createContext(request, new ServerResponse(request)).ip;
}

type Find = InnerDeps['find'];

/** What the whole app shares beside its options. */
type Inner = AppOptions & { find: Find; loopShare: LoopShare };

/** The route that the router would choose, for calls that do not come over HTTP. */
function findRoute(
  router: Router,
  routeOf: ReadonlyMap<unknown, Route>,
  { method, path }: { method: string; path: string },
): ReturnType<Find> {
  const [layer] = router.match(path, method).pathAndMethod;
  const route = layer && routeOf.get(layer.stack[0]);
  return route && { route, params: layer.params(path, layer.captures(path)) };
}

/** One call from keys to reply: who, how often, what, and only then the work. */
async function answer(ctx: Context, route: Route, options: Inner): Promise<void> {
  ctx.state.route = route;
  const identity = await admit(ctx, route, options);
  const read = await readAs(ctx, route, senderOf(identity, route));
  const shared = {
    ...identity,
    prodHeader: prodOf(ctx),
    stage: stageOf(ctx),
    sessionToken: sessionOf(ctx),
    remoteAddress: ctx.ip,
    language: languageOf(ctx),
  };
  const call = {
    ...shared,
    params: ctx.params,
    query: ctx.query,
    ...read,
    runInnerCall: innerCallRunner(shared, innerMeans(identity, shared.sessionToken, options)),
  };
  await write(ctx, await runChecked(route, call, options), route.status);
}

/** Who sends a body, by what was shown before it is read. */
function senderOf({ app }: Admission, route: Route): BodySender {
  if (route.isForStrangers) return undefined;
  return app ? { appId: app.appId } : {};
}

/** The body in the form that the route wants. */
async function readAs(
  ctx: Context,
  route: Route,
  sender: BodySender,
): Promise<Pick<AnyCall, 'body' | 'bodyBytes' | 'raw' | 'sent'>> {
  if (route.isRaw) {
    const text = await readText(ctx, route, sender);
    return { body: {}, bodyBytes: Buffer.byteLength(text), raw: { headers: headersOf(ctx), text } };
  }
  if (route.isPassedOn) {
    const sent = await readToForward(ctx, route, sender);
    return { body: {}, bodyBytes: Buffer.byteLength(sent.text), sent };
  }
  const { value, bytes } = await readBody(ctx, route, sender);
  return { body: value, bodyBytes: bytes };
}

/** Runs a route over a call that passed its size and its schemas. Throws 413, 116, 107, 111 or 1 for one that does not. */
async function runChecked(route: Route, call: AnyCall, { services, loopShare }: Inner): Promise<Reply> {
  if (call.app) await loopShare.enter(call.app.appId);
  const { bodyBytesBelow: limit, isObject = false } = route.limit;
  if (limit > 0 && call.bodyBytes >= limit) throw bodyTooLarge({ bytes: call.bodyBytes, limit, isObject });
  const query = checkSchema(route.query, call.query, 'query');
  const body = checkSchema(route.body, call.body, 'body');
  const run = () => route.run({ ...call, query, body }, services);
  return call.app ? inLane(call.app.appId, run) : run();
}

/** How calls inside one of this identity are answered: the same admission, but for the keys, which were shown. */
function innerMeans(
  { app, isMaster, hasHookKey }: Admission,
  sessionToken: string | undefined,
  options: Inner,
): InnerDeps {
  return {
    find: options.find,
    admit: async (route) => {
      if (!app || isMaster === undefined) throw new Refusal('unauthorized');
      requireKey({ app, isMaster }, route.auth);
      return admitApp(route, { app, isMaster, hasHookKey: hasHookKey ?? false }, { sessionToken, options });
    },
    run: (route, call) => runChecked(route, call, options),
    toRefusal: (error) => {
      const refusal = toRefusal(error);
      if (refusal.status >= 500)
        options.log.error({ err: refusal.cause ?? error, app: app?.appId }, 'inner call failed');
      return refusal;
    },
  };
}

type Admission = Partial<Pick<AppCall<unknown, unknown>, 'app' | 'isMaster' | 'hasHookKey' | 'session'>>;

/** Keys first, then the rate, then the session: none costs more than a look-up, and none reads the body. */
async function admit(ctx: Context, route: Route, options: AppOptions): Promise<Admission> {
  if (route.auth === 'admin') options.operator.authenticate(ctx);
  if (route.auth === 'none' || route.auth === 'admin') {
    await route.admit(ctx.params, options.services);
    return {};
  }
  const identity = await authenticateApp(ctx, route.auth, (appId) => options.services.appCache.app(appId));
  ctx.state.appId = identity.app.appId;
  return admitApp(route, identity, { sessionToken: sessionOf(ctx), options });
}

interface Sent {
  sessionToken: string | undefined;
  options: AppOptions;
}

/** An app's call whose keys are right: the rate it counts for, and whose session it is. */
async function admitApp(
  route: Route,
  identity: AppIdentity,
  sent: Sent,
): Promise<AppIdentity & { session: SessionOwner | undefined }> {
  return inLane(identity.app.appId, async () => {
    if (route.limit.rate === 'push') await sent.options.pushCallLimit.consume(identity.app);
    return { ...identity, session: await sessionFor(route, identity, sent) };
  });
}

/**
 * Whose session a call carries. One that is unknown or was replaced is ignored where no user is needed, as clients
 * send theirs with every request (protocol/clients.md#sessions-in-requests); where one is, it is 403 (protocol/users.md#session-tokens).
 */
async function sessionFor(
  route: Route,
  { app, isMaster }: AppIdentity,
  { sessionToken, options }: Sent,
): Promise<SessionOwner | undefined> {
  if (route.session === undefined) return undefined;
  const owner = await options.services.sessions.findOwner(app, sessionToken);
  if (!owner && !isMaster && route.session === 'needed') throw new Refusal('sessionNeeded');
  return owner && { ...owner, roles: await options.services.roleCache.rolesOf(app.appId, owner.id) };
}

/** Of a header that came several times, the first. */
const headersOf = (ctx: Context): Record<string, string> =>
  Object.fromEntries(
    Object.entries(ctx.headers).flatMap(([name, value]) => {
      const first = Array.isArray(value) ? value[0] : value;
      return first === undefined ? [] : [[name, first]];
    }),
  );

async function write(ctx: Context, reply: Reply, status: number): Promise<void> {
  ctx.status = reply.status ?? status;
  for (const [name, value] of Object.entries(reply.headers ?? {})) ctx.set(name, value);
  ctx.type = reply.type ?? 'application/json; charset=utf-8';
  const { body } = reply;
  const isReady = typeof body === 'string' || Buffer.isBuffer(body) || body instanceof Readable;
  ctx.body = isReady ? body : await replyText(body);
}
