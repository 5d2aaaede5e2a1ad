import { type IncomingMessage, ServerResponse } from 'node:http';
import { Router } from '@koa/router';
import Koa, { type Context, type Middleware } from 'koa';
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
import { allowCrossOrigin } from './middleware/cors.ts';
import { errors } from './middleware/errors.ts';
import { type Exchange, reportExchanges } from './middleware/exchange.ts';
import { serveConsole, serveHtmlPages } from './middleware/pages/html-pages.ts';
import { requirePlainPaths } from './middleware/plain-path.ts';
import { attachRequestBody, type BodyMemory } from './middleware/request-body.ts';
import { logRequests, traceRequests } from './middleware/request-log.ts';
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
  /** Gets every reply with its route; tests set it. */
  onExchange?: ((exchange: Exchange) => void) | undefined;
}

/**
 * Creates the HTTP side of the api, with the middlewares in the order that a request passes them
 * (api/README.md).
 */
export function createApp(options: AppOptions): Koa {
  const app = new Koa();
  // Koa would print errors to standard error; the log has them.
  app.silent = true;
  // Each proxy appends the address that it saw. A client can forge the entries left of those.
  app.proxy = options.config.trustedProxies > 0;
  app.maxIpsCount = options.config.trustedProxies;
  // A proxy's rule for a path holds for one spelling: neither other case nor a slash at the end is
  // the same route.
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
 * Finds the route of a path without parameters by a look-up; the router tries one pattern after the
 * other.
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

/** Sorts literal parts of paths before parameters, because the router takes the first match. */
function byPrecedence(routes: Route[]): { path: string; route: Route }[] {
  const parametersLast = (path: string) => path.replace(/:[^/]+/g, '\uffff');
  return routes
    .flatMap((route) => route.paths.map((path) => ({ path, route })))
    .sort((a, b) => (parametersLast(a.path) < parametersLast(b.path) ? -1 : 1));
}

/**
 * Reads the address of the client, from which limits count, in one form. Throws 400 where a trusted
 * proxy forwards another text than an address: all of its clients would share one count.
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
  // A connection that has ended already has no address.
  const address = ip ? ipAddressIn(ip) : '';
  if (address === undefined)
    throw refuse(
      'invalidParameter',
      'X-Forwarded-For: the proxy forwarded no IP address of the client.',
    );
  return address;
}

/** Finds the route that the router would choose, for calls inside a batch. */
function findRoute(
  router: Router,
  routeOf: ReadonlyMap<unknown, Route>,
  { method, path }: { method: string; path: string },
): ReturnType<InnerDeps['find']> {
  const [layer] = router.match(path, method).pathAndMethod;
  const route = layer && routeOf.get(layer.stack[0]);
  return route && { route, params: layer.params(path, layer.captures(path)) };
}
