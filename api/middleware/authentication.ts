import { createHash } from 'node:crypto';
import type { Context } from 'koa';
import { equalInConstantTime } from '../../shared/crypto.ts';
import { type App, isAppId, validKeys } from '../../shared/domain/apps/app.ts';
import type { FunctionStage } from '../../shared/domain/apps/functions.ts';
import { Refusal, refuse } from '../../shared/domain/errors/errors.ts';
import type { Access, AppAccess } from '../route.ts';

/**
 * Header names with their synonyms. The first name is the one in the specification
 * (protocol/clients.md#headers).
 */
const names = {
  appId: ['x-lc-id', 'x-avoscloud-application-id', 'x-uluru-application-id'],
  key: ['x-lc-key', 'x-avoscloud-application-key', 'x-uluru-application-key'],
  masterKey: ['x-avoscloud-master-key', 'x-uluru-master-key', 'x-avoscloud-super-key'],
  sign: ['x-lc-sign', 'x-avoscloud-request-sign'],
  session: ['x-lc-session', 'x-avoscloud-session-token', 'x-uluru-session-token'],
  hookKey: ['x-lc-hook-key'],
  prod: ['x-lc-prod', 'x-avoscloud-application-production', 'x-uluru-application-production'],
} as const;

function header(ctx: Context, key: keyof typeof names): string | undefined {
  const { headers } = ctx.req;
  for (const name of names[key]) {
    const value = headers[name];
    if (typeof value === 'string' && value !== '') return value;
  }
  return undefined;
}

/** Returns whether a header of the request names an app. */
export const hasAppId = (ctx: Context): boolean => header(ctx, 'appId') !== undefined;

/** Evidence in a request that its sender has a key. */
type KeyProof = { isMaster: boolean; matches(key: string): boolean };

/**
 * Parses `<md5hex(timestampMs + key)>,<timestampMs>[,master]`. The hash is lower-case hex. There is
 * no replay window (protocol/clients.md#request-signature).
 */
function signProof(text: string): KeyProof | undefined {
  const match = /^([0-9a-f]{32}),(\d{1,20})(?:,(master))?$/.exec(text);
  if (!match) return undefined;
  const [, digest = '', timestamp = '', master] = match;
  return {
    isMaster: master === 'master',
    matches: (key) =>
      equalInConstantTime(createHash('md5').update(timestamp).update(key).digest('hex'), digest),
  };
}

function keyProof(text: string): KeyProof {
  const isMaster = text.endsWith(',master');
  const sent = isMaster ? text.slice(0, -',master'.length) : text;
  return { isMaster, matches: (key) => equalInConstantTime(key, sent) };
}

function proofOf(ctx: Context): KeyProof | undefined {
  const masterKey = header(ctx, 'masterKey');
  if (masterKey !== undefined)
    return { ...keyProof(masterKey.replace(/,master$/, '')), isMaster: true };
  const key = header(ctx, 'key');
  if (key !== undefined) return keyProof(key);
  const sign = header(ctx, 'sign');
  return sign === undefined ? undefined : signProof(sign);
}

export interface AppIdentity {
  app: App;
  isMaster: boolean;
  /**
   * True if the call comes from a function host of the app. Only the host and the operator have the
   * hook key.
   */
  hasHookKey: boolean;
}

/**
 * Returns the app that sends a request. Throws error 401 without a valid id and key, error 403 if
 * the route needs the master key and the request has the app key
 * (protocol/clients.md#keys-and-permissions). Comparisons take constant time.
 */
export async function authenticateApp(
  ctx: Context,
  needs: AppAccess,
  { findApp, nowMs }: { findApp: (appId: string) => Promise<App | undefined>; nowMs: () => number },
): Promise<AppIdentity> {
  const appId = header(ctx, 'appId');
  const proof = proofOf(ctx);
  if (appId === undefined || !isAppId(appId) || !proof) throw new Refusal('unauthorized');
  const app = await findApp(appId);
  if (!app) throw new Refusal('unauthorized');
  const keys = validKeys(app, proof.isMaster ? 'masterKey' : 'appKey', nowMs());
  if (!keys.some((key) => proof.matches(key))) throw new Refusal('unauthorized');
  requireKey({ app, isMaster: proof.isMaster }, needs);
  const hookKey = header(ctx, 'hookKey');
  const hasHookKey =
    hookKey !== undefined &&
    validKeys(app, 'hookKey', nowMs()).some((key) => equalInConstantTime(key, hookKey));
  return { app, isMaster: proof.isMaster, hasHookKey };
}

/**
 * Throws error 403 (error 1 for a scan) if the route needs the master key and the request has the
 * app key.
 */
export function requireKey(
  { app, isMaster }: Pick<AppIdentity, 'app' | 'isMaster'>,
  needs: Access,
): void {
  if (needs === 'scan' && !isMaster)
    throw refuse('invalidParameter', 'The request must be signed by master key.');
  const isMasterNeeded = needs === 'master' || (needs === 'push' && app.options.forbidClientPush);
  if (isMasterNeeded && !isMaster) throw new Refusal('masterKeyRequired');
}

/**
 * Parses `X-LC-Prod` for pushes: absent is undefined, `1` and `true` are prod, anything else is
 * dev.
 */
export function prodOf(ctx: Context): 'dev' | 'prod' | undefined {
  const value = header(ctx, 'prod');
  if (value === undefined) return undefined;
  return value === '1' || value === 'true' ? 'prod' : 'dev';
}

/**
 * Parses `X-LC-Prod` for cloud functions (protocol/clients.md#environment): `0` and `false` are
 * staging, anything else is production.
 */
export function stageOf(ctx: Context): FunctionStage {
  const value = header(ctx, 'prod');
  return value === '0' || value === 'false' ? 'staging' : 'production';
}

/**
 * Returns the session token of a request. The parameter `session_token` has priority over the
 * header, even if its token is unknown: SDKs send the current user's header with a call that logs
 * in another user (protocol/clients.md#sessions-in-requests).
 */
export const sessionOf = (ctx: Context): string | undefined =>
  sessionInQuery(ctx.query) ?? header(ctx, 'session');

/**
 * Returns the session token in a query. Returns undefined if it is missing or empty. Several tokens
 * are joined to one unknown token, because it is unclear which one is meant.
 */
export function sessionInQuery({ session_token: token }: Context['query']): string | undefined {
  const sent = Array.isArray(token) ? token.join() : token;
  return sent === '' ? undefined : sent;
}
