import { parseExactly } from '../../../../shared/domain/exact-numbers.ts';
import { isReplyText, type ReplyText } from '../../../../shared/domain/reasons.ts';
import {
  type AdminRequest,
  adminBase,
  type Call,
  createCall,
  isRefused,
  requestOf,
  WrongPathPart,
} from '../../../client/client.ts';

/** Refusal of the admin API, or a failure to reach it (`status` 0). */
export class ApiError extends Error {
  readonly status: number;
  readonly code: number;
  readonly requestId: string | null;
  /** Name of the refusal in the error table. Null if the server sent none. */
  readonly kind: string | null;
  /**
   * Code and values of a text that is more specific than the text of `kind`. Null if the server
   * sent none.
   */
  readonly detail: ReplyText | null;
  /** Whole JSON of the refusal. Some refusals contain more than code and text. */
  readonly reply: unknown;

  constructor(message: string, details: RefusalDetails) {
    super(message);
    this.status = details.status;
    this.code = details.code;
    this.requestId = details.requestId;
    this.kind = details.kind ?? null;
    this.detail = details.detail ?? null;
    this.reply = details.reply;
  }
}

/** Returns whether the API refused a call because the object does not exist. */
export const isMissing = (error: unknown): boolean =>
  error instanceof ApiError && error.status === 404;

interface RefusalDetails {
  status: number;
  code: number;
  requestId: string | null;
  kind?: string | null;
  detail?: ReplyText | null;
  reply?: unknown;
}

type Listener = () => void;
const listeners = new Set<Listener>();

/**
 * Calls `listener` when a call is refused because the session has ended. Returns a function that
 * removes the listener.
 */
export function onSessionEnd(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Calls an operation of the admin API with the session of this browser. Throws `ApiError`. */
export const call: Call = async (operation, ...input) => {
  try {
    return await callInSession(operation, ...input);
  } catch (error) {
    if (!(error instanceof WrongPathPart)) throw error;
    throw new ApiError('Not a name.', {
      status: 400,
      code: 1,
      requestId: null,
      kind: 'invalidParameter',
    });
  }
};

/** Like `call`, but with a token instead of the session. The session does not change. */
export const callWithToken = (token: string): Call =>
  createCall((request) => send(request, { credentials: 'omit', Authorization: `Bearer ${token}` }));

const sessionPath = requestOf('getConsoleSession').path;

const callInSession = createCall((request) =>
  send(request, { credentials: 'same-origin' }).catch((error: unknown) => {
    const isUnknown = error instanceof ApiError && error.status === 401;
    if (isUnknown && request.path !== sessionPath) for (const listener of listeners) listener();
    throw error;
  }),
);

interface Identity {
  credentials: 'omit' | 'same-origin';
  Authorization?: string;
}

/**
 * Sends a request. Every request that changes something is JSON, even without a body, because the
 * server refuses other content types with a cookie session.
 */
async function send(
  request: AdminRequest,
  { credentials, ...identity }: Identity,
): Promise<unknown> {
  const { method, path, body, headers, signal } = request;
  const isChange = method !== 'GET';
  let response: Response;
  try {
    response = await fetch(`${adminBase}${path}`, {
      method,
      credentials,
      // Requests English texts. The page has its own Chinese texts and shows the server's text next
      // to them.
      headers: {
        ...(isChange ? { 'Content-Type': 'application/json' } : {}),
        'Accept-Language': 'en',
        ...identity,
        ...headers,
      },
      ...(isChange ? { body: body ?? '{}' } : {}),
      ...(signal ? { signal } : {}),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError('', { status: 0, code: 0, requestId: null });
  }
  const reply: unknown = await response
    .text()
    .then(parseExactly)
    .catch(() => undefined);
  if (response.ok) return reply;
  throw refusalOf(response, reply);
}

function refusalOf({ status, headers }: Response, reply: unknown): ApiError {
  const { error, code } = isRefused(reply) ? reply : { error: '', code: status };
  const requestId = headers.get('x-request-id');
  const kind = headers.get('x-carillon-refusal');
  const detail = detailIn(headers.get('x-carillon-refusal-detail'));
  return new ApiError(error, { status, code, requestId, kind, detail, reply });
}

function detailIn(header: string | null): ReplyText | null {
  if (header === null) return null;
  const detail: unknown = JSON.parse(decodeURIComponent(header));
  return isReplyText(detail) ? detail : null;
}
