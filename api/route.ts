import type { Readable } from 'node:stream';
import { z } from 'zod';
import type { OperatorRole } from '../shared/domain/admin/operator.ts';
import type { ErrorName } from '../shared/domain/errors/errors.ts';
import type { JsonObject } from '../shared/domain/json.ts';
import type { AdminCall, AnyCall, AppCall, Call } from './calls/call.ts';
import type { Services } from './services/services.ts';

/**
 * HTTP methods of routes. A route declares an endpoint in one place
 * (develop/architecture.md#endpoints). It does not depend on Koa, the database or the queue: its
 * handler gets a checked call and the services, and returns a reply.
 */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/**
 * Credentials that a call needs:
 *
 * - `none`: none.
 * - `login`: none yet, because the call logs in to the console.
 * - `admin`: a token or session of the admin API.
 * - `app`: the app key or the master key.
 * - `push`: the master key. The app key also suffices if the app allows client push.
 * - `master`: the master key.
 * - `scan`: the master key. The app key is refused with code 1 instead of 403
 *   (protocol/queries.md#scan).
 */
export type Access = 'none' | 'login' | 'admin' | AppAccess;
/** Credentials of calls of an app. */
export type AppAccess = 'app' | 'push' | 'master' | 'scan';

/** Result of a route handler. */
export interface Reply {
  status?: number;
  headers?: Record<string, string | string[]>;
  /** JSON value. With `type`, a text, bytes or a stream. */
  body: JsonObject | JsonLike | string | Buffer | Readable;
  /** Content type of a body that is not JSON. */
  type?: string;
}

/** Value that JSON.stringify writes as an object or array. */
export type JsonLike = object;

/** Limits of a request. Every route declares them. */
export interface Limit {
  /** Decompressed bodies of this size or more are refused with 413. If 0, no body is read. */
  bodyBytesBelow: number;
  /**
   * True if the body is an object or a push. A body over the limit then gets code 116, and 413 from
   * 20 MB on (protocol/clients.md#request-limits).
   */
  isObject?: boolean;
  /**
   * `push` if the call counts against `pushCallsPerMinute` of the app (protocol/push.md#call-rate).
   */
  rate?: 'push';
  /**
   * Number of calls that it counts as against the limit of its token. Set for calls with more work
   * (protocol/admin-api.md#limits-of-a-token).
   */
  weight?: number;
}

/**
 * Maximum size of a body with a few scalars. Also the maximum that is read from a sender without a
 * key.
 */
export const smallBytes = 16 * 1024;
/** Maximum size of a body of any endpoint (protocol/clients.md#request-limits). */
export const maxBodyBytes = 20 * 1024 * 1024;

/** Limit of calls without a body. */
export const noBody: Limit = { bodyBytesBelow: 0 };
/** Limit of calls whose body contains a few scalars. */
export const smallBody: Limit = { bodyBytesBelow: smallBytes + 1 };
/** Limit of operators' calls with certificates, templates or options. */
export const operatorBody: Limit = { bodyBytesBelow: 1024 * 1024 };
/** Limit of calls with a user. A user has at most 1 MB. */
export const userBody: Limit = { bodyBytesBelow: 1024 * 1024, isObject: true };
/** Limit of calls with an installation. An installation has at most 128 KB. */
export const installationBody: Limit = { bodyBytesBelow: 128 * 1024, isObject: true };
/** Limit of batches and of function arguments. */
export const largestBody: Limit = { bodyBytesBelow: maxBodyBytes };

/** Body of a reply: the schema of its JSON, or the content type of a page, an image or a text. */
export type ReplyBody = z.ZodType | { contentType: string };

/**
 * Bodies of replies by HTTP status. `default` means every status that the route forwards from
 * another server.
 */
export type Replies = Readonly<Partial<Record<number | 'default', ReplyBody>>>;

interface RouteShape<Q, B> {
  method: Method;
  /** One path or several aliases, with parameters such as `:id`. */
  path: string | string[];
  /**
   * Name of the operation in `/openapi.json`, in camelCase. Generated clients use it, so it must
   * never change.
   */
  operation: string;
  /**
   * Sentence for the reference (docs/reference/http-api.md): what the call does, and the members
   * that it reads.
   */
  summary: string;
  /** Body of a reply with `status`, or bodies by status. */
  reply: z.ZodType | Replies;
  /**
   * Refusals of the service behind the route. Refusals that follow from the access and body are
   * added (openapi/operation.ts).
   */
  refusals: readonly ErrorName[];
  /** Checks and describes the query. */
  query?: z.ZodType<Q>;
  /** Checks and describes the body (requests/checked.ts). */
  body?: z.ZodType<B>;
  limit: Limit;
  /** True if an empty body is refused with 107. */
  isBodyRequired?: boolean;
  /**
   * True if the body `null` counts as empty (protocol/clients.md#empty-bodies). This is the default
   * for routes without a body schema.
   */
  acceptsNullBody?: boolean;
  /** Status of a success. 200 by default. */
  status?: number;
  /** True for a GET that changes something. HEAD of the path then does not run the handler. */
  writes?: boolean;
  /** True if the last part of the path may be base64 with an encoded slash. */
  takesBase64Name?: boolean;
}

export interface BareRouteSpec<Q, B> extends RouteShape<Q, B> {
  auth: 'none' | 'login';
  /** True if the body need not be JSON. `call.raw` then contains it as text, with the headers. */
  hasRawBody?: boolean;
  /** True if a batch may contain this call. This is the default for calls of an app. */
  isBatchable?: boolean;
  /** Checks the secret in the path before the body is read. Throws a refusal. */
  admit?(params: Record<string, string>, services: Services): Promise<void> | void;
  handle(call: Call<Q, B>, services: Services): Promise<Reply> | Reply;
}

/**
 * Route of the admin API. If the caller's token is limited to some apps, it may call only paths of
 * these apps (`:appId`).
 */
export interface AdminRouteSpec<Q, B> extends RouteShape<Q, B> {
  auth: 'admin';
  /** Lowest role that may call it. */
  role: OperatorRole;
  /** True if the path names no app, and the service filters the reply by the apps of the caller. */
  isFiltered?: boolean;
  /** True if the call changes nothing, even if its method suggests a change. It is not audited. */
  changesNothing?: boolean;
  handle(call: AdminCall<Q, B>, services: Services): Promise<Reply> | Reply;
}

export interface AppRouteSpec<Q, B> extends RouteShape<Q, B> {
  auth: AppAccess;
  /**
   * Finds the owner of the session token. `required` refuses calls without a valid token with 403,
   * unless they have the master key.
   */
  session?: 'optional' | 'required';
  /** True if the body may be any JSON. `call.sent` contains it as text. */
  forwardsBody?: boolean;
  /** True if the body contains other calls. No batch may contain this call. */
  isBatch?: boolean;
  handle(call: AppCall<Q, B>, services: Services): Promise<Reply> | Reply;
}

/** Declared endpoint with all defaults. The server checks query and body before it calls `run`. */
export interface Route {
  method: Method;
  paths: string[];
  operation: string;
  summary: string;
  replies: Replies;
  refusals: readonly ErrorName[];
  auth: Access;
  /** Lowest role that may call a route of the admin API. Undefined for other routes. */
  role: OperatorRole | undefined;
  isFiltered: boolean;
  changesNothing: boolean;
  session: 'optional' | 'required' | undefined;
  query: z.ZodType | undefined;
  body: z.ZodType | undefined;
  limit: Limit;
  status: number;
  hasRawBody: boolean;
  forwardsBody: boolean;
  isBodyRequired: boolean;
  acceptsNullBody: boolean;
  /** True if no credential is checked before the body is read. */
  isPublic: boolean;
  writes: boolean;
  takesBase64Name: boolean;
  isBatch: boolean;
  isBatchable: boolean;
  admit(params: Record<string, string>, services: Services): Promise<void> | void;
  run(call: AnyCall, services: Services): Promise<Reply> | Reply;
}

const isOfApp = (auth: Access): boolean => auth !== 'none' && auth !== 'login' && auth !== 'admin';

const repliesOf = ({
  reply,
  status = 200,
}: Pick<RouteShape<unknown, unknown>, 'reply' | 'status'>): Replies =>
  reply instanceof z.ZodType ? { [status]: reply } : reply;

/** Returns the members that only routes of the admin API declare. */
function adminMembers(spec: object): Pick<Route, 'role' | 'isFiltered' | 'changesNothing'> {
  const {
    role,
    isFiltered = false,
    changesNothing = false,
  }: Partial<AdminRouteSpec<unknown, unknown>> = spec;
  return { role, isFiltered, changesNothing };
}

/** Declares an endpoint. `handle` gets query and body in the form that their schemas return. */
export function route<Q, B>(
  spec: BareRouteSpec<Q, B> | AdminRouteSpec<Q, B> | AppRouteSpec<Q, B>,
): Route {
  return {
    method: spec.method,
    paths: typeof spec.path === 'string' ? [spec.path] : spec.path,
    operation: spec.operation,
    summary: spec.summary,
    replies: repliesOf(spec),
    refusals: spec.refusals,
    auth: spec.auth,
    ...adminMembers(spec),
    session: 'session' in spec ? spec.session : undefined,
    query: spec.query,
    body: spec.body,
    limit: spec.limit,
    status: spec.status ?? 200,
    hasRawBody: 'hasRawBody' in spec && spec.hasRawBody === true,
    forwardsBody: 'forwardsBody' in spec && spec.forwardsBody === true,
    isBodyRequired: spec.isBodyRequired === true,
    acceptsNullBody: spec.acceptsNullBody ?? spec.body === undefined,
    isPublic: (spec.auth === 'none' || spec.auth === 'login') && !('admit' in spec),
    writes: spec.writes === true,
    takesBase64Name: spec.takesBase64Name === true,
    isBatch: 'isBatch' in spec && spec.isBatch === true,
    isBatchable: 'isBatchable' in spec ? spec.isBatchable === true : isOfApp(spec.auth),
    admit: ('admit' in spec ? spec.admit : undefined) ?? (() => undefined),
    // The server passes the results of the schemas. This cast makes casts in the endpoints
    // unnecessary.
    run: (call, services) => spec.handle(call as AppCall<Q, B> & AdminCall<Q, B>, services),
  };
}

/** Returns a reply with a JSON body. */
export function json(body: JsonObject | JsonLike, extra: Omit<Reply, 'body'> = {}): Reply {
  return { body, ...extra };
}
