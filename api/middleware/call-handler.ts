import { Readable } from 'node:stream';
import type { Context } from 'koa';
import { runForApp } from '../../shared/db/limits/client-pool.ts';
import type { Operator } from '../../shared/domain/admin/operator.ts';
import { Refusal } from '../../shared/domain/errors/errors.ts';
import type { LoopShare } from '../../shared/event-loop.ts';
import type { Logger } from '../../shared/process/logging.ts';
import { type AnyCall, checkSchema, replyText, requireStorableTexts } from '../calls/call.ts';
import { type InnerDeps, innerCallRunner } from '../calls/inner-calls.ts';
import type { Reply, Route } from '../route.ts';
import type { RunInnerCall } from '../services/batch/calls.ts';
import { type Actor, runAsActor } from '../services/operator/audit/audit.ts';
import { type Admission, type AdmissionDeps, admitApp, admitCall } from './admission.ts';
import { prodOf, requireKey, sessionOf, stageOf } from './authentication.ts';
import { readBody, readText, readToForward } from './body.ts';
import { languageOf, toRefusal } from './errors.ts';
import { type BodySender, bodyTooLarge } from './request-body.ts';
import { type Exchange, reportInnerCall } from './request-log.ts';

/** Services that a call needs before the handler of its route runs. */
export interface CallDeps extends AdmissionDeps {
  log: Logger;
  loopShare: LoopShare;
  find: InnerDeps['find'];
  onExchange?: ((exchange: Exchange) => void) | undefined;
}

/**
 * Handles a request: admits it, reads and checks its body, runs the handler of the route, and
 * writes the reply.
 */
export async function handleCall(ctx: Context, route: Route, deps: CallDeps): Promise<void> {
  ctx.state.route = route;
  const identity = await admitCall(ctx, route, deps);
  if (ctx.method === 'HEAD' && route.writes) {
    answerHead(ctx, route);
    return;
  }
  const read = await readAs(ctx, route, senderOf(identity, route));
  const shared = {
    ...identity,
    prodHeader: prodOf(ctx),
    stage: stageOf(ctx),
    sessionToken: sessionOf(ctx),
    remoteAddress: ctx.ip,
    userAgent: ctx.get('user-agent'),
    requestId: requestIdOf(ctx),
    language: languageOf(ctx),
  };
  const call = {
    ...shared,
    params: ctx.params,
    query: ctx.query,
    ...read,
    ...(identity.operator ? adminMembers(ctx) : {}),
    ...(route.auth === 'login'
      ? { consoleCookie: ctx.cookies.get(deps.services.consoleSessions.cookieName) }
      : {}),
    runInnerCall: runnerOfInnerCalls(shared, identity, deps),
  };
  const run = () => runChecked(route, call, deps);
  const { operator } = identity;
  const reply = operator
    ? await runAsActor(actorOf(ctx, operator, countChange(route, operator, deps)), run)
    : await run();
  await write(ctx, reply, route.status);
}

/**
 * Replies to HEAD if the GET of the route changes something. Mail filters and link previews send
 * HEAD, and it must change nothing (RFC 9110, 9.2.1). Throws error 405 for a redirect, because only
 * the handler knows where it leads.
 */
function answerHead(ctx: Context, { status, replies }: Route): void {
  if (status >= 300) {
    ctx.set('Allow', 'GET');
    throw new Refusal('methodNotAllowed');
  }
  const reply = replies[status];
  ctx.status = status;
  ctx.type =
    reply !== undefined && 'contentType' in reply
      ? reply.contentType
      : 'application/json; charset=utf-8';
}

/** Returns the members that only calls of the admin API have. */
function adminMembers(
  ctx: Context,
): Pick<AnyCall, 'idempotencyKey' | 'explained' | 'disconnected'> {
  const disconnected = new AbortController();
  ctx.res.once('close', () => {
    if (!ctx.res.writableFinished) disconnected.abort();
  });
  const header = (name: string) => ctx.get(name) || undefined;
  return {
    idempotencyKey: header('idempotency-key'),
    explained: header('x-carillon-explained'),
    disconnected: disconnected.signal,
  };
}

/** Returns the function that runs the calls of a batch. Most calls never use it. */
const runnerOfInnerCalls =
  (
    outer: Parameters<typeof innerCallRunner>[0],
    identity: Admission,
    deps: CallDeps,
  ): RunInnerCall =>
  (inner, allowance) =>
    innerCallRunner(outer, innerDeps(identity, deps))(inner, allowance);

/**
 * Returns the function that counts a change against the limit of its token. A push counts against
 * the rate of its app instead.
 */
const countChange =
  ({ limit }: Route, { tokenId }: Operator, { services }: CallDeps) =>
  (): void => {
    if (limit.rate !== 'push') services.callLimit.take(tokenId, 'changes');
  };

/** Returns the caller under whose name changes are audited. */
const actorOf = (ctx: Context, operator: Operator, onChange: () => void): Actor => ({
  ...operator,
  onChange,
  address: ctx.ip,
  requestId: requestIdOf(ctx),
});

/** Returns the id of a request to the admin API. Empty for other requests. */
const requestIdOf = ({ state }: Context): string => state.requestId ?? '';

/**
 * Returns the sender to which the memory of a body is charged. Returns undefined if the route
 * checks no credentials.
 */
function senderOf({ app }: Admission, route: Route): BodySender {
  if (route.isPublic) return undefined;
  return app ? { appId: app.appId } : {};
}

/** Reads the body in the form that the route declares. */
async function readAs(
  ctx: Context,
  route: Route,
  sender: BodySender,
): Promise<Pick<AnyCall, 'body' | 'bodyBytes' | 'raw' | 'sent'>> {
  if (route.hasRawBody) {
    const text = await readText(ctx, route, sender);
    const raw = { headers: headersOf(ctx), text, socketAddress: ctx.req.socket.remoteAddress };
    return { body: {}, bodyBytes: Buffer.byteLength(text), raw };
  }
  if (route.forwardsBody) {
    const sent = await readToForward(ctx, route, sender);
    return { body: {}, bodyBytes: Buffer.byteLength(sent.text), sent };
  }
  const { value, bytes } = await readBody(ctx, route, sender);
  return { body: value, bodyBytes: bytes };
}

/**
 * Checks size, query and body of a call, replaces query and body by their parsed values, and runs
 * its route. Throws error 413, 116, 107, 111 or 1.
 */
async function runChecked(
  route: Route,
  call: AnyCall,
  { services, loopShare }: CallDeps,
): Promise<Reply> {
  if (call.app) await loopShare.enter(call.app.appId);
  const { bodyBytesBelow: limit, isObject = false } = route.limit;
  if (limit > 0 && call.bodyBytes >= limit)
    throw bodyTooLarge({ bytes: call.bodyBytes, limit, isObject });
  if (route.auth === 'admin') requireStorableTexts(call.query);
  call.query = checkSchema(route.query, call.query, 'query');
  // Calls of an app check texts when they parse them, because some members have their own error
  // codes.
  if (route.auth === 'admin') requireStorableTexts(call.body);
  call.body = checkSchema(route.body, call.body, 'body');
  const run = () => route.run(call, services);
  return call.app ? runForApp(call.app.appId, run) : run();
}

/**
 * Returns the dependencies of calls inside this call. These calls pass the same checks, except for
 * the keys, which are already checked.
 */
function innerDeps({ app, isMaster, hasHookKey }: Admission, deps: CallDeps): InnerDeps {
  const { onExchange } = deps;
  return {
    find: deps.find,
    admit: async (route, sessionToken) => {
      if (!app || isMaster === undefined) throw new Refusal('unauthorized');
      requireKey({ app, isMaster }, route.auth);
      return admitApp(
        route,
        { app, isMaster, hasHookKey: hasHookKey ?? false },
        { sessionToken, deps },
      );
    },
    run: (route, call) => {
      const run = () => runChecked(route, call, deps);
      return onExchange ? reportInnerCall(route, run, onExchange) : run();
    },
    toRefusal: (error) => {
      const refusal = toRefusal(error);
      if (refusal.status >= 500)
        deps.log.error({ err: refusal.cause ?? error, app: app?.appId }, 'inner call failed');
      return refusal;
    },
  };
}

/** Returns the headers of a request. For a repeated header, returns the first value. */
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
