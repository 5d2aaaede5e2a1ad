import { type IncomingMessage, ServerResponse } from 'node:http';
import cors from '@koa/cors';
import { Router } from '@koa/router';
import type { Context, Middleware } from 'koa';
import Koa from 'koa';
import { systemClock } from '../shared/clock.ts';
import type { Config } from '../shared/config/config.ts';
import { ipAddressIn } from '../shared/domain/addresses.ts';
import { refuse } from '../shared/domain/errors/errors.ts';
import { LoopShare } from '../shared/event-loop.ts';
import type { Metrics } from '../shared/metrics.ts';
import type { Logger } from '../shared/process/logging.ts';
import type { InnerDeps } from './calls/inner-calls.ts';
import type { AdmissionDeps } from './middleware/admission.ts';
import { handleCall } from './middleware/call-handler.ts';
import { errors } from './middleware/errors.ts';
import { serveConsole, serveHtmlPages } from './middleware/pages/html-pages.ts';
import { requirePlainPaths } from './middleware/plain-path.ts';
import { attachRequestBody, type BodyMemory } from './middleware/request-body.ts';
import {
  type Exchange,
  logRequests,
  reportExchanges,
  traceRequests,
} from './middleware/request-log.ts';
import { textForm } from './middleware/text-form.ts';
import type { Route } from './route.ts';
import type { ConsoleFiles } from './services/server/console-files.ts';

export interface AppOptions extends AdmissionDeps {
  routes: Route[];
  config: Pick<Config, 'trustedProxies' | 'publicUrl'>;
  consoleFiles: ConsoleFiles;
  log: Logger;
  metrics: Metrics;
  bodies: BodyMemory;
  /** Called with every reply and its route. Only tests set it. */
  onExchange?: ((exchange: Exchange) => void) | undefined;
}

/**
 * Creates the HTTP application of the api. The middlewares are in the order in which a request
 * passes them (api/README.md).
 */
export function createApp(options: AppOptions): Koa {
  const app = new Koa();
  // Koa would also print errors to standard error. The log contains them already.
  app.silent = true;
  // Each proxy appends the address that it saw. A client can forge the addresses to the left of
  // them.
  app.proxy = options.config.trustedProxies > 0;
  app.maxIpsCount = options.config.trustedProxies;
  // A proxy's rule for a path applies to one spelling. So paths with another case or a trailing
  // slash must not match the same route.
  const router = new Router({ strict: true, sensitive: true });
  const routeOf = new Map<unknown, Route>();
  const literal = new Map<string, RouteHandler>();
  const loopShare = new LoopShare(() => systemClock.monotonicMs());
  const find: InnerDeps['find'] = (method, path) => findRoute(router, routeOf, { method, path });
  app.use(traceRequests());
  app.use(logRequests(options.log, options.metrics));
  if (options.onExchange) app.use(reportExchanges(options.onExchange));
  app.use(allowCrossOrigin());
  app.use(errors);
  app.use(readAddress);
  app.use(requirePlainPaths((method, path) => find(method, path)?.route));
  app.use(
    serveConsole(options.consoleFiles, { isHttps: options.config.publicUrl.startsWith('https:') }),
  );
  app.use(attachRequestBody(options.bodies));
  app.use(textForm);
  const deps = { ...options, find, loopShare };
  for (const { path, route } of byPrecedence(options.routes)) {
    const handler = (ctx: Context) => handleCall(ctx, route, deps);
    routeOf.set(handler, route);
    router.register(path, [route.method], handler);
    if (!path.includes(':')) literal.set(`${route.method} ${path}`, handler);
  }
  app.use(routeLiterally(literal));
  app.use(serveHtmlPages((path) => path === '/console' || find('GET', path) !== undefined));
  app.use(router.routes());
  app.use(router.allowedMethods());
  return app;
}

type RouteHandler = (ctx: Context) => Promise<void>;

/**
 * Handles paths without parameters by a map lookup. The router would test one pattern after
 * another.
 */
function routeLiterally(handlers: ReadonlyMap<string, RouteHandler>): Middleware {
  return (ctx, next) => {
    const handle = handlers.get(`${ctx.method} ${ctx.path}`);
    if (!handle) return next();
    ctx._matchedRoute = ctx.path;
    ctx.params = {};
    return handle(ctx);
  };
}

/** Sorts literal path segments before parameters, because the router uses the first match. */
function byPrecedence(routes: Route[]): { path: string; route: Route }[] {
  const parametersLast = (path: string) => path.replace(/:[^/]+/g, '\uffff');
  return routes
    .flatMap((route) => route.paths.map((path) => ({ path, route })))
    .sort((a, b) => (parametersLast(a.path) < parametersLast(b.path) ? -1 : 1));
}

/**
 * Normalizes the client's address, by which limits count. Throws error 400 if a trusted proxy
 * forwards a text that is not an address, because all of the proxy's clients would then share one
 * count.
 */
const readAddress: Middleware = (ctx, next) => {
  ctx.request.ip = addressOf(ctx);
  return next();
};

/**
 * Returns the address of a client whose request is not a call, such as an upgrade to the device
 * channel. Throws as `readAddress`.
 */
export function remoteAddressOf(app: Koa, request: IncomingMessage): string {
  return addressOf(app.createContext(request, new ServerResponse(request)));
}

function addressOf({ ip }: Pick<Context, 'ip'>): string {
  // A connection that has already ended has no address.
  const address = ip ? ipAddressIn(ip) : '';
  if (address === undefined)
    throw refuse(
      'invalidParameter',
      'X-Forwarded-For: the proxy forwarded no IP address of the client.',
    );
  return address;
}

/** Finds the route that the router would choose. Used for calls inside a batch. */
function findRoute(
  router: Router,
  routeOf: ReadonlyMap<unknown, Route>,
  { method, path }: { method: string; path: string },
): ReturnType<InnerDeps['find']> {
  const [layer] = router.match(path, method).pathAndMethod;
  const route = layer && routeOf.get(layer.stack[0]);
  return route && { route, params: layer.params(path, layer.captures(path)) };
}

/**
 * Paths of the admin API. Other spellings match no route and get no CORS headers. A test checks
 * each of its routes.
 */
const adminPaths = /^\/console(?:\/|$)/i;

/**
 * Lets browsers call the public API from any origin (protocol/clients.md#cross-origin-requests),
 * because access depends on keys, not on origins. The admin API allows no other origin.
 */
function allowCrossOrigin(): Middleware {
  const answerPreflight = cors({
    origin: (ctx) => ctx.get('Origin') || '*',
    allowMethods: ['HEAD', 'GET', 'POST', 'PUT', 'DELETE', 'OPTIONS'],
    maxAge: 86_400,
  });
  return (ctx, next) => {
    if (adminPaths.test(ctx.path)) return next();
    if (ctx.method === 'OPTIONS') return answerPreflight(ctx, next);
    ctx.vary('Origin');
    ctx.res.setHeader('Access-Control-Allow-Origin', ctx.req.headers.origin || '*');
    ctx.res.setHeader('Access-Control-Expose-Headers', 'Location,Retry-After');
    return next();
  };
}
