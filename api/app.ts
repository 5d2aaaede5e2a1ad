import type { Server } from 'node:http';
import { Readable } from 'node:stream';
import { Router } from '@koa/router';
import Koa, { type Context } from 'koa';
import type { z } from 'zod';
import type { Config } from '../shared/config.ts';
import { Refusal } from '../shared/domain/errors.ts';
import type { Logger } from '../shared/logging.ts';
import type { Metrics } from '../shared/metrics.ts';
import { type Identity, identify, prodOf, requireOperator, sessionOf, stageOf } from './middleware/access.ts';
import { readBody, readText, sendOn } from './middleware/body.ts';
import { allowBrowsers } from './middleware/cors.ts';
import { errors } from './middleware/errors.ts';
import { languageOf } from './middleware/language.ts';
import type { PushCallLimit } from './middleware/limit.ts';
import { logRequests } from './middleware/log.ts';
import { textForm } from './middleware/text-form.ts';
import type { AppCall, Reply, Route } from './route.ts';
import type { SessionOwner } from './services/accounts/sessions.ts';
import type { Services } from './services/services.ts';

export interface AppOptions {
  routes: Route[];
  services: Services;
  config: Pick<Config, 'adminToken' | 'trustedProxies'>;
  log: Logger;
  metrics: Metrics;
  pushCallLimit: PushCallLimit;
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
  app.use(allowBrowsers());
  app.use(errors);
  app.use(textForm);
  const router = new Router();
  for (const route of options.routes)
    router.register(route.paths, [route.method], (ctx: Context) => answer(ctx, route, options));
  app.use(router.routes());
  app.use(router.allowedMethods());
  return app;
}

/** One call from keys to reply: who, how often, what, and only then the work. */
async function answer(ctx: Context, route: Route, options: AppOptions): Promise<void> {
  const identity = await admit(ctx, route, options);
  const limit = route.limit.bodyBytesBelow;
  const raw = route.isRaw ? { headers: headersOf(ctx), text: await readText(ctx, limit) } : undefined;
  const stream = route.isStreamed ? sendOn(ctx, limit) : undefined;
  const unread = raw ? Buffer.byteLength(raw.text) : stream && (stream.length ?? 0);
  const sent = unread === undefined ? await readBody(ctx) : { value: {}, bytes: unread };
  if (limit !== undefined && sent.bytes >= limit)
    throw new Refusal('tooLarge', { text: `The body must be under ${limit} bytes.` });
  const call = {
    ...identity,
    params: ctx.params,
    query: check(route.query, ctx.query, 'query'),
    body: check(route.body, sent.value, 'body'),
    bodyBytes: sent.bytes,
    prodHeader: prodOf(ctx),
    stage: stageOf(ctx),
    sessionToken: sessionOf(ctx),
    remoteAddress: ctx.ip,
    language: languageOf(ctx),
    ...(raw ? { raw } : {}),
    ...(stream ? { stream } : {}),
  };
  write(ctx, await route.run(call, options.services), route.status);
}

type Admission = Partial<Pick<AppCall<unknown, unknown>, 'app' | 'isMaster' | 'hasHookKey' | 'session'>>;

/** Keys first, then the rate, then the session: none costs more than a look-up, and none reads the body. */
async function admit(ctx: Context, route: Route, options: AppOptions): Promise<Admission> {
  if (route.auth === 'admin') requireOperator(ctx, options.config.adminToken);
  if (route.auth === 'none' || route.auth === 'admin') {
    await route.admit(ctx.params, options.services);
    return {};
  }
  const identity = await identify(ctx, route.auth, (appId) => options.services.directory.app(appId));
  ctx.state.appId = identity.app.appId;
  if (route.limit.rate === 'push') await options.pushCallLimit.consume(identity.app);
  return { ...identity, session: await sessionFor(ctx, route, { ...identity, options }) };
}

/**
 * Whose session a call carries. One that is unknown or was replaced is ignored where no user is needed, as clients
 * send theirs with every request (compat.md 2.3); where one is, it is 403 (accounts.md "Session token").
 */
async function sessionFor(
  ctx: Context,
  route: Route,
  { app, isMaster, options }: Identity & { options: AppOptions },
): Promise<SessionOwner | undefined> {
  if (route.session === undefined) return undefined;
  const owner = await options.services.sessions.ownerOf(app, sessionOf(ctx));
  if (!owner && !isMaster && route.session === 'needed') throw new Refusal('sessionNeeded');
  return owner;
}

/** Values that passed the schema; without one, what was sent. Throws 107 or 111 naming the member. */
function check(schema: z.ZodType | undefined, value: unknown, where: 'query' | 'body'): unknown {
  if (!schema) return value;
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const path = issue?.path.join('.') ?? '';
  const refusal = result.error.issues.map(refusalOf).find((found) => found !== undefined);
  if (refusal) throw refusal;
  throw new Refusal(where === 'query' ? 'invalidParameter' : 'incorrectType', {
    text: path ? `${path}: ${issue?.message}` : (issue?.message ?? 'Invalid parameter.'),
  });
}

/** A schema may name the refusal it stands for: `ctx.addIssue({ …, params: { refusal } })`. */
function refusalOf(issue: z.core.$ZodIssue): Refusal | undefined {
  if (issue.code !== 'custom') return undefined;
  const refusal: unknown = issue.params?.refusal;
  return refusal instanceof Refusal ? refusal : undefined;
}

/** Of a header that came several times, the first. */
const headersOf = (ctx: Context): Record<string, string> =>
  Object.fromEntries(
    Object.entries(ctx.headers).flatMap(([name, value]) => {
      const first = Array.isArray(value) ? value[0] : value;
      return first === undefined ? [] : [[name, first]];
    }),
  );

function write(ctx: Context, reply: Reply, status: number): void {
  ctx.status = reply.status ?? status;
  for (const [name, value] of Object.entries(reply.headers ?? {})) ctx.set(name, value);
  ctx.type = reply.type ?? 'application/json; charset=utf-8';
  const isReady =
    typeof reply.body === 'string' || Buffer.isBuffer(reply.body) || reply.body instanceof Readable;
  ctx.body = isReady ? reply.body : JSON.stringify(reply.body);
}

/** Starts listening; resolves with the server once the port is bound. */
export function listen(app: Koa, port: number, host: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = app.listen(port, host, () => resolve(server));
    server.once('error', reject);
  });
}

/** Takes no more requests, ends idle connections, and waits for the ones in work. */
export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeIdleConnections();
  });
}
