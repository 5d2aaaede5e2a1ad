import { isPathPart } from '../../shared/domain/path.ts';
import { type Operation, type Operations, operations } from './operations.ts';

export type { Operation, Operations } from './operations.ts';

/** Path of the admin API. */
export const adminBase = '/console/api';

/** Parameters and body of an operation. */
export type Input<O extends Operation> = Operations[O]['input'];

/** Reply of an operation. */
export type Reply<O extends Operation> = Operations[O]['reply'];

/**
 * Request body as JSON text. The text keeps the digits of numbers exactly as a person typed them.
 * Only the service validates it.
 */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

declare const unchecked: unique symbol;

/** Body that a person wrote. Only the service validates it. */
export type Unchecked = Readonly<Record<string, unknown>> & { readonly [unchecked]: true };

/** Casts a body that a person wrote, so that it can be passed to any operation. */
export const asUnchecked = (body: object): Unchecked => body as Unchecked;

/** `Input` plus request options. The body may be unchecked instead of typed. */
export type CallInput<O extends Operation> = WithUnchecked<Input<O>> & RequestOptions;

type WithUnchecked<I> = { [M in keyof I]: M extends 'body' ? I[M] | Unchecked | JsonText : I[M] };

interface RequestOptions {
  headers?: Record<string, string>;
  /** Aborts the call. */
  signal?: AbortSignal;
}

/** Input as an argument. The argument is optional if all of its members are optional. */
type InputArgument<O extends Operation> =
  object extends Input<O> ? [input?: CallInput<O>] : [input: CallInput<O>];

/** Request to the admin API, ready to be sent. */
export interface AdminRequest {
  method: string;
  /** Path after `adminBase`, with the query. */
  path: string;
  /** JSON text, or undefined for no body. */
  body: string | undefined;
  headers: Record<string, string>;
  signal: AbortSignal | undefined;
}

/** Sends a request and returns the JSON of a successful reply. Throws on any other reply. */
export type Send = (request: AdminRequest) => Promise<unknown>;

/** Calls an operation of the admin API by its name. */
export type Call = <O extends Operation>(
  operation: O,
  ...input: InputArgument<O>
) => Promise<Reply<O>>;

/**
 * Creates the client of the admin API. It does no I/O itself, so the console uses it in the browser
 * too.
 */
export function createCall(send: Send): Call {
  return async <O extends Operation>(operation: O, input: RequestParts = {}) =>
    // The cast is safe: the service's tests check all replies against the schema that the types
    // come from.
    (await send(buildRequest(operation, input))) as Reply<O>;
}

/** Thrown for an id or name that would change the path of a request, such as `..`. */
export class WrongPathPart extends Error {
  override name = 'WrongPathPart';
}

/** Input of any operation. Undefined and null members are left out of the query. */
export interface RequestParts extends RequestOptions {
  path?: Readonly<Record<string, string | number>>;
  query?: Readonly<Record<string, string | number | boolean | null | undefined>>;
  body?: unknown;
}

/** Builds the request of an operation without sending it. Throws `WrongPathPart`. */
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

/** Reply of the admin API to a refused call. */
export interface RefusedReply {
  code: number;
  error: string;
}

/** True if the JSON of a reply is a refusal of the admin API. */
export const isRefused = (reply: unknown): reply is RefusedReply =>
  typeof reply === 'object' &&
  reply !== null &&
  'code' in reply &&
  typeof reply.code === 'number' &&
  'error' in reply &&
  typeof reply.error === 'string';
