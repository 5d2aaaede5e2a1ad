import type { Context } from 'koa';
import { runForApp } from '../../shared/db/limits/client-pool.ts';
import type { Operator } from '../../shared/domain/admin/operator.ts';
import { Refusal } from '../../shared/domain/errors/errors.ts';
import type { AdminCall, AppCall } from '../calls/call.ts';
import type { Route } from '../route.ts';
import type { SessionOwner } from '../services/accounts/sessions/sessions.ts';
import type { Services } from '../services/services.ts';
import { type AppIdentity, authenticateApp, sessionOf } from './authentication.ts';
import type { OperatorAuthenticator } from './operator-authentication.ts';
import type { PushCallLimit } from './push-limits.ts';

/** Services that decide whether a call is admitted. */
export interface AdmissionDeps {
  services: Services;
  operator: OperatorAuthenticator;
  pushCallLimit: PushCallLimit;
}

/** Identity of an admitted call. Empty for routes without an app. */
export type Admission = Partial<
  Pick<AppCall<unknown, unknown>, 'app' | 'isMaster' | 'hasHookKey' | 'session'> &
    Pick<AdminCall<unknown, unknown>, 'operator'>
>;

/**
 * Checks keys, rate and session, in this order, before the body is read. Each check needs at most
 * one search. Throws a refusal.
 */
export async function admitCall(
  ctx: Context,
  route: Route,
  deps: AdmissionDeps,
): Promise<Admission> {
  if (route.auth === 'admin') return { operator: await admitOperator(ctx, route, deps) };
  if (route.auth === 'login') deps.operator.admitLogin(ctx);
  if (route.auth === 'none' || route.auth === 'login') {
    await route.admit(ctx.params, deps.services);
    return {};
  }
  const identity = await authenticateApp(ctx, route.auth, {
    findApp: (appId) => deps.services.appCache.app(appId),
    nowMs: () => deps.services.date.nowMs(),
  });
  ctx.state.appId = identity.app.appId;
  return admitApp(route, identity, { sessionToken: sessionOf(ctx), deps });
}

/** Authenticates a caller of the admin API. A push counts against the rate of its app. */
async function admitOperator(ctx: Context, route: Route, deps: AdmissionDeps): Promise<Operator> {
  const operator = await deps.operator.admit(ctx, route);
  if (route.limit.rate !== 'push') return operator;
  const app = await deps.services.appCache.app(ctx.params.appId ?? '');
  if (app) await runForApp(app.appId, () => deps.pushCallLimit.consume(app));
  return operator;
}

interface SessionRequest {
  sessionToken: string | undefined;
  deps: AdmissionDeps;
}

/** Counts a call of an authenticated app against its rate, and finds its session. */
export async function admitApp(
  route: Route,
  identity: AppIdentity,
  request: SessionRequest,
): Promise<AppIdentity & { session: SessionOwner | undefined }> {
  return runForApp(identity.app.appId, async () => {
    if (route.limit.rate === 'push') await request.deps.pushCallLimit.consume(identity.app);
    return { ...identity, session: await findSession(route, identity, request) };
  });
}

/**
 * Returns the owner of the session of a call. Clients send their token with every request, so an
 * unknown or replaced token is ignored if the route needs no user
 * (protocol/clients.md#sessions-in-requests). Throws error 403 if the route needs a user
 * (protocol/users.md#session-tokens).
 */
async function findSession(
  route: Route,
  { app, isMaster }: AppIdentity,
  { sessionToken, deps }: SessionRequest,
): Promise<SessionOwner | undefined> {
  if (route.session === undefined) return undefined;
  const owner = await deps.services.sessions.findOwner(app, sessionToken);
  if (!owner && !isMaster && route.session === 'required') throw new Refusal('sessionNeeded');
  return owner && { ...owner, roles: await deps.services.roleCache.rolesOf(app.appId, owner.id) };
}
