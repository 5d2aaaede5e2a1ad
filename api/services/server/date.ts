import type { JsonObject } from '../../../shared/domain/json.ts';
import type { ApiDeps } from '../deps.ts';

/** Returns the server's time in the encoding of clients (protocol/clients.md#server-time). */
export class DateService {
  readonly #deps: Pick<ApiDeps, 'clock'>;

  constructor(deps: Pick<ApiDeps, 'clock'>) {
    this.#deps = deps;
  }

  /** Returns the time in epoch milliseconds. */
  nowMs(): number {
    return this.#deps.clock.now();
  }

  now(): JsonObject {
    return { __type: 'Date', iso: new Date(this.#deps.clock.now()).toISOString() };
  }
}
