import type { Readable } from 'node:stream';
import { z } from 'zod';
import type { OperatorRole } from '../shared/domain/admin/operator.ts';
import type { ErrorName } from '../shared/domain/errors/errors.ts';
import type { JsonObject } from '../shared/domain/json.ts';
import type { AdminCall, AnyCall, AppCall, Call } from './calls/call.ts';
import type { Services } from './services/services.ts';

/**
 * HTTP methods of routes. A route declares an endpoint in one place
 * (develop/architecture.md#endpoints). It knows no koa, no database and no queue: it takes a
 * checked call and the services, and returns a reply.
 */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/**
 * Credentials that a call needs: none; none yet, as the call logs in to the console; a token or
 * session of the admin API; either key of an app; a key that may push (the master key, or either
 * key when the app allows client push); the master key; the master key for a scan, which refuses
 * the app key with code 1 in place of 403 (protocol/queries.md#scan).
 */
export type Access = 'none' | 'login' | 'admin' | AppAccess;
/** Credentials of calls of an app. */
export type AppAccess = 'app' | 'push' | 'master' | 'scan';

/** Result of a route handler. */
export interface Reply {
  status?: number;
  headers?: Record<string, string>;
  /** JSON; or text, bytes or a stream of them with `type`. */
  body: JsonObject | JsonLike | string | Buffer | Readable;
  /** Content type of a body that is not JSON. */
  type?: string;
}

/** Value that JSON.stringify writes as an object or array. */
export type JsonLike = object;

/** Limits of a request. Every route declares them. */
export interface Limit {
  /** A body of this size or more, decompressed, is refused with 413. At 0 no body is read. */
  bodyBytesBelow: number;
  /**
   * The body is an object or a push: over the limit it is code 116
   * (protocol/clients.md#request-limits), from 20 MB on 413.
   */
  isObject?: boolean;
  /** The call counts for `pushCallsPerMinute` of the app (protocol/push.md#call-rate). */
  rate?: 'push';
  /**
   * Calls that it counts as for the limit of its token, if its work takes longer
   * (protocol/admin-api.md#limits-of-a-token).
   */
  weight?: number;
}

/** Size of a body with a few scalars; also the most that is read of a sender without a key. */
export const smallBytes = 16 * 1024;
/** Largest body that any endpoint reads (protocol/clients.md#request-limits). */
export const maxBodyBytes = 20 * 1024 * 1024;

/** Limit of calls that read no body. */
export const noBody: Limit = { bodyBytesBelow: 0 };
/** Limit of calls whose body holds a few scalars. */
export const smallBody: Limit = { bodyBytesBelow: smallBytes + 1 };
/** Limit of calls of the operator: certificates, templates, options. */
export const operatorBody: Limit = { bodyBytesBelow: 1024 * 1024 };
/** Limit of calls with a user, which is at most 1 MB. */
export const userBody: Limit = { bodyBytesBelow: 1024 * 1024, isObject: true };
/** Limit of calls with an installation, which is at most 128 KB. */
export const installationBody: Limit = { bodyBytesBelow: 128 * 1024, isObject: true };
/** Limit of batches and of arguments of functions. */
export const largestBody: Limit = { bodyBytesBelow: maxBodyBytes };

/** Body of a reply: a schema of its JSON, or the content type of a page, an image or a text. */
export type ReplyBody = z.ZodType | { contentType: string };

/**
 * Bodies of replies by HTTP status; `default` stands for every status that the route hands on from
 * another server.
 */
export type Replies = Readonly<Partial<Record<number | 'default', ReplyBody>>>;

interface RouteShape<Q, B> {
  method: Method;
  /** One path or several aliases, with `:params`. */
  path: string | string[];
  /**
   * Name of the operation in `/openapi.json`, camelCase; clients that are generated use it, so it
   * never changes.
   */
  operation: string;
  /**
   * Sentence for the reference (docs/reference/http-api.md): what the call does, and the members it
   * reads.
   */
  summary: string;
  /** Body of a success with `status`, or bodies by status. */
  reply: z.ZodType | Replies;
  /**
   * Refusals of the service behind the route; those of every call with this access and body are
   * added (openapi/refusals.ts).
   */
  refusals: readonly ErrorName[];
  /** Check and description of the query. */
  query?: z.ZodType<Q>;
  /** Check and description of the body (requests/checked.ts). */
  body?: z.ZodType<B>;
  limit: Limit;
  /** An empty body is refused with 107. */
  isBodyRequired?: boolean;
  /**
   * A body `null` counts as empty (protocol/clients.md#empty-bodies); the default for routes
   * without a body schema.
   */
  acceptsNullBody?: boolean;
  /** Status of a success; 200 when absent. */
  status?: number;
  /** A GET that changes something: HEAD of the path is answered without the handler. */
  writes?: boolean;
}

export interface BareRouteSpec<Q, B> extends RouteShape<Q, B> {
  auth: 'none' | 'login';
  /** The body need not be JSON: `call.raw` has it as text, with the headers. */
  hasRawBody?: boolean;
  /** A batch may contain this call; the default for calls of an app. */
  isBatchable?: boolean;
  /** Checks the secret in the path before the body is read; throws a refusal. */
  admit?(params: Record<string, string>, services: Services): Promise<void> | void;
  handle(call: Call<Q, B>, services: Services): Promise<Reply> | Reply;
}

/**
 * Route of the admin API. A caller whose token is for some apps only gets the paths of these apps
 * (`:appId`).
 */
export interface AdminRouteSpec<Q, B> extends RouteShape<Q, B> {
  auth: 'admin';
  /** Lowest role that may call it. */
  role: OperatorRole;
  /** The path names no app, and the service leaves out what is of other apps than the caller's. */
  isFiltered?: boolean;
  /** The call changes nothing, whatever its method: it is not audited. */
  changesNothing?: boolean;
  handle(call: AdminCall<Q, B>, services: Services): Promise<Reply> | Reply;
}

export interface AppRouteSpec<Q, B> extends RouteShape<Q, B> {
  auth: AppAccess;
  /**
   * Looks up the owner of the session token; `required` refuses calls without one (403), except
   * with the master key.
   */
  session?: 'optional' | 'required';
  /** The body may be any JSON: `call.sent` has it as text. */
  forwardsBody?: boolean;
  /** The body contains other calls: no batch may contain it. */
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
  /** Lowest role that may call a route of the admin API; undefined for the others. */
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
  /** No credential is checked before the body is read. */
  isPublic: boolean;
  writes: boolean;
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

/** Returns what only routes of the admin API declare. */
function adminTerms(spec: object): Pick<Route, 'role' | 'isFiltered' | 'changesNothing'> {
  const {
    role,
    isFiltered = false,
    changesNothing = false,
  }: Partial<AdminRouteSpec<unknown, unknown>> = spec;
  return { role, isFiltered, changesNothing };
}

/** Declares an endpoint. `handle` gets query and body as their schemas returned them. */
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
    ...adminTerms(spec),
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
    isBatch: 'isBatch' in spec && spec.isBatch === true,
    isBatchable: 'isBatchable' in spec ? spec.isBatchable === true : isOfApp(spec.auth),
    admit: ('admit' in spec ? spec.admit : undefined) ?? (() => undefined),
    // The server passes the results of the schemas: one cast here saves one in every endpoint.
    run: (call, services) => spec.handle(call as AppCall<Q, B> & AdminCall<Q, B>, services),
  };
}

/** Returns a reply with a JSON body. */
export function json(body: JsonObject | JsonLike, extra: Omit<Reply, 'body'> = {}): Reply {
  return { body, ...extra };
}
