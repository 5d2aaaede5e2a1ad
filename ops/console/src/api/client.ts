import { parseExactly } from '../../../../shared/domain/exact-numbers.ts';

/** Refusal of the admin API, or a failure to reach it (`status` 0). */
export class ApiError extends Error {
  readonly status: number;
  readonly code: number;
  readonly requestId: string | null;
  /** Name of the refusal in the table of errors; null if the server gave none. */
  readonly kind: string | null;
  /** Its text in Chinese where that is not the text of its kind; null if the server gave none. */
  readonly detail: string | null;
  /** Whole JSON of the refusal; some name more than code and text. */
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

interface RefusalDetails {
  status: number;
  code: number;
  requestId: string | null;
  kind?: string | null;
  detail?: string | null;
  reply?: unknown;
}

const base = '/console/api';
type Listener = () => void;
const listeners = new Set<Listener>();

/** Calls `listener` when a call is refused because the session has ended. Returns a function that removes it. */
export function onSessionEnd(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

interface CallOptions {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  body?: object;
  /** Body as JSON text, in place of `body`: numbers stay as they were typed. */
  text?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
}

/**
 * Makes a call to the admin API and returns its JSON. Throws `ApiError`. Every changing call is JSON, also without a body:
 * the server refuses others from a cookie.
 */
export async function call<T>(path: string, options: CallOptions = {}): Promise<T> {
  const { method = 'GET', body, text, headers = {}, signal } = options;
  const isChange = method !== 'GET';
  let response: Response;
  try {
    response = await fetch(`${base}${path}`, {
      method,
      credentials: 'same-origin',
      // The page has the other language, and shows the text of the server beside it.
      headers: {
        ...(isChange ? { 'Content-Type': 'application/json' } : {}),
        'Accept-Language': 'en',
        ...headers,
      },
      ...(isChange ? { body: text ?? JSON.stringify(body ?? {}) } : {}),
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
  if (response.ok) return reply as T;
  if (response.status === 401 && path !== '/session') for (const listener of listeners) listener();
  throw refusalOf(response, reply);
}

function refusalOf(response: Response, reply: unknown): ApiError {
  const requestId = response.headers.get('x-request-id');
  const kind = response.headers.get('x-carillon-refusal');
  const isRefusal = typeof reply === 'object' && reply !== null && 'error' in reply && 'code' in reply;
  const message = isRefusal ? String(reply.error) : '';
  const code = isRefusal ? Number(reply.code) : response.status;
  const detail = detailIn(response.headers.get('x-carillon-refusal-detail'));
  return new ApiError(message, { status: response.status, code, requestId, kind, detail, reply });
}

/** Returns the Chinese text of a refusal that is not that of its kind. */
function detailIn(header: string | null): string | null {
  if (header === null) return null;
  const detail: unknown = JSON.parse(decodeURIComponent(header));
  return typeof detail === 'object' && detail !== null && 'zh' in detail ? String(detail.zh) : null;
}

/** Returns a query string of the members that have a value, with its `?`; an empty text without any. */
export function queryOf(members: Record<string, string | number | boolean | null | undefined>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(members))
    if (value !== undefined && value !== null && value !== '') search.set(name, String(value));
  const text = search.toString();
  return text === '' ? '' : `?${text}`;
}

/**
 * Encodes a part of a path. Throws `ApiError` for one that a browser resolves, so that the path
 * would name something else, such as the whole app; the server refuses the others that no path can
 * hold.
 */
export function pathPart(part: string | number): string {
  const text = String(part);
  if (text !== '' && text !== '.' && text !== '..') return encodeURIComponent(text);
  throw new ApiError('Not a name.', { status: 400, code: 1, requestId: null, kind: 'invalidParameter' });
}

/** Returns the path of an app's resource; every part is encoded. Throws as `pathPart`. */
export function appPath(appId: string, ...parts: (string | number)[]): string {
  return ['/apps', ...[appId, ...parts].map(pathPart)].join('/');
}
