import type { Clock } from '../../../../shared/clock.ts';
import { Refusal } from '../../../../shared/domain/errors/errors.ts';
import { isJsonObject, type JsonObject, parseExactly } from '../../../../shared/domain/json.ts';
import { createHttpClient, type HttpClient, type HttpRequest } from '../../../../shared/http/client.ts';
import { isTemporaryStatus } from '../../../../shared/http/result.ts';

/** Short timeouts: a login waits for the reply. */
const timing = { connectMs: 3000, requestMs: 5000, drainMs: 1000 };
const maxClients = 100;

/** HTTP clients of platforms, cached by URL and certificate. */
export class PlatformClients {
  readonly #clock: Clock;
  readonly #clients = new Map<string, HttpClient>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Returns the JSON body of a successful reply; undefined when the platform refuses the request.
   * Throws 503 for no reply, a temporary status, and a body that the platform did not write: such
   * an answer says nothing about the token.
   */
  async fetchJson(at: { baseUrl: string; ca?: string | undefined }, request: HttpRequest): Promise<unknown> {
    const reply = await this.#client(at).request(request);
    const body =
      reply.kind === 'response' && !isTemporaryStatus(reply.status) ? bodyOf(reply.body) : undefined;
    if (reply.kind === 'response' && body && reply.status < 300) return body;
    if (body && hasOwnError(body)) return undefined;
    throw new Refusal('unavailable', { text: 'The platform could not be asked.', retryAfterSeconds: 5 });
  }

  #client({ baseUrl, ca }: { baseUrl: string; ca?: string | undefined }): HttpClient {
    const key = `${baseUrl} ${ca ?? ''}`;
    const known = this.#clients.get(key);
    if (known) return known;
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

/** QQ's wrapping of a JSON text. */
const wrapped = /^\s*callback\s*\(\s*(\{.*\})\s*\)\s*;?\s*$/s;

/** Returns the JSON object of a platform's body; undefined for any other text. */
const bodyOf = (text: string): JsonObject | undefined => {
  try {
    const value: unknown = parseExactly(wrapped.exec(text)?.[1] ?? text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
};

/** Members with the error number of a platform. Proxies write texts, or the HTTP status. */
const errorMembers = ['errcode', 'error_code', 'error', 'ret'];

const hasOwnError = (body: JsonObject): boolean =>
  errorMembers.some((name) => typeof body[name] === 'number' && Math.abs(body[name]) >= 1000);
