import { isPathPart } from '../../shared/domain/path.ts';
import { type Operation, type Operations, operations } from './operations.ts';

export type { Operation, Operations } from './operations.ts';

/** Path of the admin API. */
export const adminBase = '/console/api';

/** What an operation takes: the parameters of its path and query, and its body. */
export type Input<O extends Operation> = Operations[O]['input'];

/** What an operation answers. */
export type Reply<O extends Operation> = Operations[O]['reply'];

/**
 * Body as JSON text, whose numbers keep the digits that a person typed. Only the service checks its
 * members.
 */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

declare const unchecked: unique symbol;

/** A body that a person wrote. Only the service checks its members. */
export type Unchecked = Readonly<Record<string, unknown>> & { readonly [unchecked]: true };

/** Marks a body that a person wrote, so that it may stand for the body of any operation. */
export const asUnchecked = (body: object): Unchecked => body as Unchecked;

/** As `Input`, with options of the request, and with an unchecked body in place of a typed one. */
export type CallInput<O extends Operation> = WithUnchecked<Input<O>> & RequestOptions;

type WithUnchecked<I> = { [M in keyof I]: M extends 'body' ? I[M] | Unchecked | JsonText : I[M] };

interface RequestOptions {
  headers?: Record<string, string>;
  /** Ends the call. */
  signal?: AbortSignal;
}

/** Input as an argument, which may be missing if all of its members may be. */
type InputArgument<O extends Operation> =
  object extends Input<O> ? [input?: CallInput<O>] : [input: CallInput<O>];

/** Request to the admin API, for the code that sends it. */
export interface AdminRequest {
  method: string;
  /** Path after `adminBase`, with the query. */
  path: string;
  /** JSON text; undefined for none. */
  body: string | undefined;
  headers: Record<string, string>;
  signal: AbortSignal | undefined;
}

/** Sends a request and returns the JSON of its successful answer. Throws for every other answer. */
export type Send = (request: AdminRequest) => Promise<unknown>;

/** Calls operations of the admin API by their names. */
export type Call = <O extends Operation>(
  operation: O,
  ...input: InputArgument<O>
) => Promise<Reply<O>>;

/** Creates the client of the admin API. It has no I/O of its own, so that a page can use it too. */
export function createCall(send: Send): Call {
  return async <O extends Operation>(operation: O, input: RequestParts = {}) =>
    // The service checks its replies in its tests against the description that the types come from.
    (await send(buildRequest(operation, input))) as Reply<O>;
}

/** Error for an id or a name that would change the path of a request, such as `..`. */
export class WrongPathPart extends Error {
  override name = 'WrongPathPart';
}

/** Input of any operation. Members without a value are left out of the query. */
export interface RequestParts extends RequestOptions {
  path?: Readonly<Record<string, string | number>>;
  query?: Readonly<Record<string, string | number | boolean | null | undefined>>;
  body?: unknown;
}

/** Returns the request of an operation, without sending it. Throws `WrongPathPart`. */
export const requestOf: <O extends Operation>(
  operation: O,
  ...input: InputArgument<O>
) => AdminRequest = buildRequest;

function buildRequest(operation: Operation, input: RequestParts = {}): AdminRequest {
  const { path = {}, query = {}, body, headers = {}, signal } = input;
  const [method, template] = operations[operation];
  const filled = template.replaceAll(/\{(\w+)\}/g, (_whole, name: string) =>
    pathPart(path[name] ?? ''),
  );
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== null) search.set(name, String(value));
  const pathWithQuery = search.size > 0 ? `${filled}?${search}` : filled;
  return { method, path: pathWithQuery, body: textOf(body), headers, signal };
}

function textOf(body: unknown): string | undefined {
  if (body instanceof JsonText) return body.text;
  return body === undefined ? undefined : JSON.stringify(body);
}

function pathPart(part: string | number): string {
  const text = String(part);
  if (!isPathPart(text))
    throw new WrongPathPart(`${JSON.stringify(text)} is neither an id nor a name`);
  return encodeURIComponent(text);
}

/** What the admin API answers to a call that it refuses. */
export interface RefusedReply {
  code: number;
  error: string;
}

/** Tells whether the JSON of an answer is a refusal of the admin API. */
export const isRefused = (reply: unknown): reply is RefusedReply =>
  typeof reply === 'object' &&
  reply !== null &&
  'code' in reply &&
  typeof reply.code === 'number' &&
  'error' in reply &&
  typeof reply.error === 'string';
