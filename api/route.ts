import type { Readable } from 'node:stream';
import type { z } from 'zod';
import type { App } from '../shared/domain/app.ts';
import type { FunctionStage } from '../shared/domain/functions.ts';
import type { JsonObject } from '../shared/domain/json.ts';
import type { SessionOwner } from './services/accounts/sessions/sessions.ts';
import type { RunInnerCall } from './services/batch/inner-call.ts';
import type { Services } from './services/services.ts';

/**
 * An endpoint says everything about itself in one place (develop/architecture.md#endpoints). A route knows no koa, no database
 * and no queue: it is handed a checked call and the services, and gives back a reply.
 */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/**
 * Who may call: anybody; the operator (bearer token); an app with either key; an app that may push (its
 * master key, or either when the app allows client push); an app with its master key.
 */
export type Access = 'none' | 'admin' | 'app' | 'push' | 'master';

/** What an endpoint is handed; `app` is there for the accesses `app`, `push` and `master`. */
export interface Call<Q, B> {
  params: Record<string, string>;
  query: Q;
  body: B;
  /** Size of the body as it was sent. */
  bodyBytes: number;
  /** `X-LC-Prod`: present and not 1 is `dev` (protocol/push.md#environment-of-ios); absent is undefined. */
  prodHeader: 'dev' | 'prod' | undefined;
  /** `X-LC-Prod` as cloud functions read it: 0 is staging, anything else and nothing production. */
  stage: FunctionStage;
  sessionToken: string | undefined;
  remoteAddress: string;
  /** Which of the languages of our pages its sender reads, by `Accept-Language`. */
  language: 'en' | 'zh';
  /** What was sent as it was sent; there where the route says `isRaw`. */
  raw?: { headers: Record<string, string>; text: string };
}

export interface AppCall<Q, B> extends Call<Q, B> {
  app: App;
  isMaster: boolean;
  /** The app's hook key came with it, as a function host sends it (protocol/functions.md#host-protocol). */
  hasHookKey: boolean;
  /** What was sent as it was sent; there where the route says `isPassedOn`. */
  sent?: SentBody;
  /** Answers another call as if it had come by itself, with the same keys and session. */
  runInnerCall: RunInnerCall;
  /** Whose valid session token came with the call; undefined also where the route has no `session`. */
  session: SessionOwner | undefined;
}

/** A body that is passed on as it was sent. */
export interface SentBody {
  /** JSON of any kind; `{}` where nothing was sent. */
  text: string;
  /** Headers that say who calls with what, and by which ways. */
  userAgent: string;
  clientAgent: string;
  via: string;
}

export interface Reply {
  status?: number;
  headers?: Record<string, string>;
  /** JSON; or text, bytes or a stream of them with `type`. */
  body: JsonObject | JsonLike | string | Buffer | Readable;
  /** Content type of a body that is not JSON. */
  type?: string;
}

/** Anything JSON.stringify writes as an object or array. */
export type JsonLike = object;

/** What a caller may send. Every route declares it. */
export interface Limit {
  /** A body of this size or more, unpacked, is refused with 413. At 0 none is read. */
  bodyBytesBelow: number;
  /** The body is an object, or a push: too large a one is code 116 (protocol/clients.md#request-limits); from 20 MB on it is 413 like any other. */
  isObject?: boolean;
  /** Counts as a push call: the app's `pushCallsPerMinute` (protocol/push.md#call-rate). */
  rate?: 'push';
}

/** What calls with a few scalars need, and the most that is read of a sender without a key. */
export const smallBytes = 16 * 1024;
/** The most that any endpoint reads (protocol/clients.md#request-limits). */
export const maxBodyBytes = 20 * 1024 * 1024;

/** For calls that read no body. */
export const noBody: Limit = { bodyBytesBelow: 0 };
/** For calls whose body holds a few scalars. */
export const smallBody: Limit = { bodyBytesBelow: smallBytes + 1 };
/** For calls of the operator: certificates, templates, options. */
export const operatorBody: Limit = { bodyBytesBelow: 1024 * 1024 };
/** For a user, which is at most 1 MB (shared/domain/user-members.ts). */
export const userBody: Limit = { bodyBytesBelow: 1024 * 1024, isObject: true };
/** For an installation, which is at most 128 KB (shared/domain/installation-members.ts). */
export const installationBody: Limit = { bodyBytesBelow: 128 * 1024, isObject: true };
/** For calls that hold others, or arguments of functions. */
export const largestBody: Limit = { bodyBytesBelow: maxBodyBytes };

interface RouteShape<Q, B> {
  method: Method;
  /** One path or several aliases, with `:params`. */
  path: string | string[];
  /** One sentence for the reference (docs/reference/http-api.md): what it does, and the members it reads. */
  summary?: string;
  query?: z.ZodType<Q>;
  body?: z.ZodType<B>;
  limit: Limit;
  /** An empty body is 107, as one that is no JSON dictionary. */
  isBodyNeeded?: boolean;
  /** A body `null` counts as none (protocol/clients.md#empty-bodies); by default where the route has no shape for a body. */
  isNullNothing?: boolean;
  /** Status of a success; 200 when absent. */
  status?: number;
}

export interface BareRouteSpec<Q, B> extends RouteShape<Q, B> {
  auth: 'none' | 'admin';
  /** The body is no JSON dictionary: it is handed on as text, with the headers, in `call.raw`. */
  isRaw?: boolean;
  /** A batch may hold it, as the calls of an app. */
  isInBatches?: boolean;
  /** Proves by the path who sends this: throws a refusal before the body is read. Without it the sender is a stranger. */
  admit?(params: Record<string, string>, services: Services): Promise<void> | void;
  handle(call: Call<Q, B>, services: Services): Promise<Reply> | Reply;
}

export interface AppRouteSpec<Q, B> extends RouteShape<Q, B> {
  auth: 'app' | 'push' | 'master';
  /** Looks up whose session it is; where it is needed, only the master key goes without (403). */
  session?: 'welcome' | 'needed';
  /** The body is no JSON dictionary: it is passed on as text, in `call.sent`, once it is known to be JSON. */
  isPassedOn?: boolean;
  /** It holds other calls, and so stands in none. */
  isNesting?: boolean;
  handle(call: AppCall<Q, B>, services: Services): Promise<Reply> | Reply;
}

/** A call before it is known what the route needs: routes for no app get none. */
export type AnyCall = Call<unknown, unknown> &
  Partial<
    Pick<AppCall<unknown, unknown>, 'app' | 'isMaster' | 'hasHookKey' | 'session' | 'sent' | 'runInnerCall'>
  >;

/** A route as the loader and the server see it: its shapes are checked before `run` is called. */
export interface Route {
  method: Method;
  paths: string[];
  summary: string;
  auth: Access;
  session: 'welcome' | 'needed' | undefined;
  query: z.ZodType | undefined;
  body: z.ZodType | undefined;
  limit: Limit;
  status: number;
  isRaw: boolean;
  isPassedOn: boolean;
  isBodyNeeded: boolean;
  isNullNothing: boolean;
  /** Nobody proves who he is before the body is read. */
  isForStrangers: boolean;
  isNesting: boolean;
  isInBatches: boolean;
  admit(params: Record<string, string>, services: Services): Promise<void> | void;
  run(call: AnyCall, services: Services): Promise<Reply> | Reply;
}

const isOfApp = (auth: Access): boolean => auth !== 'none' && auth !== 'admin';

/** Declares an endpoint. Query and body have passed their schemas by the time `handle` is called. */
export function route<Q, B>(spec: BareRouteSpec<Q, B> | AppRouteSpec<Q, B>): Route {
  return {
    method: spec.method,
    paths: typeof spec.path === 'string' ? [spec.path] : spec.path,
    summary: spec.summary ?? '',
    auth: spec.auth,
    session: 'session' in spec ? spec.session : undefined,
    query: spec.query,
    body: spec.body,
    limit: spec.limit,
    status: spec.status ?? 200,
    isRaw: 'isRaw' in spec && spec.isRaw === true,
    isPassedOn: 'isPassedOn' in spec && spec.isPassedOn === true,
    isBodyNeeded: spec.isBodyNeeded === true,
    isNullNothing: spec.isNullNothing ?? spec.body === undefined,
    isForStrangers: spec.auth === 'none' && !('admit' in spec),
    isNesting: 'isNesting' in spec && spec.isNesting === true,
    isInBatches: 'isInBatches' in spec ? spec.isInBatches === true : isOfApp(spec.auth),
    admit: ('admit' in spec ? spec.admit : undefined) ?? (() => undefined),
    // The server hands in exactly what the schemas gave; one cast here spares one in every endpoint.
    run: (call, services) => spec.handle(call as AppCall<Q, B>, services),
  };
}

/** Reply with a JSON body. */
export function json(body: JsonObject | JsonLike, extra: Omit<Reply, 'body'> = {}): Reply {
  return { body, ...extra };
}
