import type { z } from 'zod';
import type { Clock } from '../../../../shared/clock.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { Refusal } from '../../../../shared/domain/errors/errors.ts';
import {
  isJsonObject,
  type Json,
  type JsonObject,
  parseExactly,
} from '../../../../shared/domain/json.ts';
import {
  createHttpClient,
  type HttpClient,
  type HttpRequest,
} from '../../../../shared/http/client.ts';
import { isTemporaryStatus, PeerError, peerErrorOf } from '../../../../shared/http/result.ts';

/** The timeouts are short because a login waits for the reply. */
const timing = { connectMs: 3000, requestMs: 5000, drainMs: 1000 };
const maxClients = 1000;

/** Server of a platform. */
export interface PlatformAddress {
  baseUrl: string;
  ca?: string | undefined;
  /** App whose connections are used. Absent if all apps share them. */
  appId?: string;
}

/** Form of a platform's replies. */
export interface AnswerForm<T> {
  /** Body of a successful reply. */
  reply: z.ZodType<T>;
  /**
   * Returns the error code of a body, in the form of `codeText`. Returns undefined if the body
   * contains no error.
   */
  codeOf: (body: JsonObject) => string | undefined;
  /** Error codes which mean that the client's credential is wrong. */
  refusals: ReadonlySet<string>;
}

/** Asks platforms for an app. */
export type PlatformClient = Pick<PlatformClients, 'ask'>;

/**
 * HTTP clients of platforms, cached by app, URL and certificate. Each app has its own connections,
 * so that its logins do not wait for those of other apps.
 */
export class PlatformClients {
  readonly #clock: Clock;
  readonly #clients = new Map<string, HttpClient>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns the client of an app. */
  of({ appId }: App): PlatformClient {
    return { ask: (at, request, form) => this.ask({ ...at, appId }, request, form) };
  }

  /**
   * Sends a request to a platform and classifies the reply (protocol/users.md#checked-platforms).
   * Only this method decides what a reply means:
   *
   * - A reply of the form `reply` means yes and is returned.
   * - A listed error code means no. Returns undefined.
   * - Everything else says nothing about the account and throws error 503 with `Retry-After`: no
   *   reply, a temporary status, a page of another server, an unlisted code.
   *
   * If the platform replies that it is busy, the request is repeated once.
   */
  async ask<T>(
    at: PlatformAddress,
    request: HttpRequest,
    form: AnswerForm<T>,
  ): Promise<T | undefined> {
    const first = await this.#answer(at, request);
    const isBusy = form.codeOf(first.body) === busyCode;
    const { status, body } = isBusy ? await this.#answer(at, request) : first;
    const code = form.codeOf(body);
    if (code !== undefined && form.refusals.has(code)) return undefined;
    const reply = code === undefined && status < 300 ? form.reply.safeParse(body) : undefined;
    if (reply?.success) return reply.data;
    const what = code === undefined ? `unusable answer with status ${status}` : `code ${code}`;
    const text = code === undefined ? undefined : `The platform answered with the code ${code}.`;
    throw unclearReply(new PeerError(at.baseUrl, what), { text });
  }

  /** Fetches a JSON object from a successful reply. Throws error 503 for any other reply. */
  async fetchJson(at: PlatformAddress, request: HttpRequest): Promise<JsonObject> {
    const { status, body } = await this.#answer(at, request);
    if (status < 300) return body;
    throw unclearReply(new PeerError(at.baseUrl, `status ${status}`));
  }

  /**
   * Returns the status and the JSON object of a reply. Throws error 503 if there is no reply or its
   * status is temporary.
   */
  async #answer(
    at: PlatformAddress,
    request: HttpRequest,
  ): Promise<{ status: number; body: JsonObject }> {
    const reply = await this.#client(at).request(request);
    if (reply.kind !== 'response') throw unclearReply(peerErrorOf(at.baseUrl, reply));
    const { status, retryAfterMs } = reply;
    const body = isTemporaryStatus(status) ? undefined : bodyOf(reply.body);
    if (!body) throw unclearReply(peerErrorOf(at.baseUrl, reply), { retryAfterMs });
    return { status, body };
  }

  #client({ baseUrl, ca, appId = '' }: PlatformAddress): HttpClient {
    const key = `${appId} ${baseUrl} ${ca ?? ''}`;
    const cached = this.#clients.get(key);
    if (cached) {
      // Moves the client to the end, so that the least recently used client is closed first.
      this.#clients.delete(key);
      this.#clients.set(key, cached);
      return cached;
    }
    const [oldest] = this.#clients;
    if (oldest && this.#clients.size >= maxClients) {
      this.#clients.delete(oldest[0]);
      void oldest[1].close();
    }
    const client = createHttpClient({ baseUrl, ca, timing, clock: this.#clock });
    this.#clients.set(key, client);
    return client;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#clients.values()].map((client) => client.close()));
  }
}

/** JSON text as QQ wraps it. */
const wrapped = /^\s*callback\s*\(\s*(\{.*\})\s*\)\s*;?\s*$/s;

/** Returns the JSON object of a platform's body. Returns undefined for other texts. */
const bodyOf = (text: string): JsonObject | undefined => {
  try {
    const value: unknown = parseExactly(wrapped.exec(text)?.[1] ?? text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
};

/** Code with which WeChat and QQ say that the system is busy. */
const busyCode = '-1';
const minRetryAfterMs = 5_000;
const maxRetryAfterMs = 300_000;

/**
 * Returns the refusal of a call whose platform gave no clear answer. `Retry-After` is the
 * platform's value within limits.
 */
function unclearReply(
  cause: PeerError,
  {
    text = 'The platform could not be asked.',
    retryAfterMs = null,
  }: { text?: string | undefined; retryAfterMs?: number | null } = {},
): Refusal {
  const waitMs = Math.min(maxRetryAfterMs, Math.max(minRetryAfterMs, retryAfterMs ?? 0));
  return new Refusal('unavailable', { text, cause, retryAfterSeconds: Math.ceil(waitMs / 1000) });
}

/**
 * Returns an error code as a text. Returns undefined if the value means success or is not a code.
 */
export function codeText(value: Json | undefined): string | undefined {
  const text = typeof value === 'number' ? String(value) : value;
  return typeof text === 'string' && /^[\w-]{1,64}$/.test(text) && text !== '0' ? text : undefined;
}
