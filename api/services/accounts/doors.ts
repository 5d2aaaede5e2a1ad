import type { Clock } from '../../../shared/clock.ts';
import { Refusal } from '../../../shared/domain/errors.ts';
import { type HttpDoor, type HttpRequest, openHttpDoor } from '../../../shared/http.ts';

/** Somebody waits for the login. */
const timing = { connectMs: 3000, requestMs: 5000, drainMs: 1000 };
const maxDoors = 100;

/** Connections to platforms, kept by address. */
export class Doors {
  readonly #clock: Clock;
  readonly #doors = new Map<string, HttpDoor>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * The body of a successful answer as JSON, undefined for an answer that is none. Throws 503 when the platform gave
   * no answer, or one that says that it is ill itself.
   */
  async json(at: { baseUrl: string; ca?: string | undefined }, request: HttpRequest): Promise<unknown> {
    const reply = await this.#door(at).request(request);
    if (reply.kind !== 'response' || reply.status >= 500)
      throw new Refusal('unavailable', { text: 'The platform could not be asked.', retryAfterSeconds: 5 });
    if (reply.status >= 300) return undefined;
    try {
      return JSON.parse(reply.body);
    } catch {
      return undefined;
    }
  }

  #door({ baseUrl, ca }: { baseUrl: string; ca?: string | undefined }): HttpDoor {
    const key = `${baseUrl} ${ca ?? ''}`;
    const known = this.#doors.get(key);
    if (known) return known;
    const [oldest] = this.#doors;
    if (oldest && this.#doors.size >= maxDoors) {
      this.#doors.delete(oldest[0]);
      void oldest[1].close();
    }
    const door = openHttpDoor({ baseUrl, ca, timing, clock: this.#clock });
    this.#doors.set(key, door);
    return door;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#doors.values()].map((door) => door.close()));
  }
}
