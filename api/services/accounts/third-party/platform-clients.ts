import type { Clock } from '../../../../shared/clock.ts';
import { Refusal } from '../../../../shared/domain/errors/errors.ts';
import { parseExactly } from '../../../../shared/domain/json.ts';
import { createHttpClient, type HttpClient, type HttpRequest } from '../../../../shared/http/client.ts';

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
   * Returns the body of a successful reply as JSON; undefined for any other reply below 500. Throws 503 when the platform
   * did not reply or answered with a 5xx.
   */
  async fetchJson(at: { baseUrl: string; ca?: string | undefined }, request: HttpRequest): Promise<unknown> {
    const reply = await this.#client(at).request(request);
    if (reply.kind !== 'response' || reply.status >= 500)
      throw new Refusal('unavailable', { text: 'The platform could not be asked.', retryAfterSeconds: 5 });
    if (reply.status >= 300) return undefined;
    try {
      return parseExactly(reply.body);
    } catch {
      return undefined;
    }
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
