import type { JsonObject } from '../../shared/domain/json.ts';
import type { Means } from './means.ts';

/** The server's time as clients encode times (protocol/clients.md#server-time). */
export class DateService {
  readonly #means: Pick<Means, 'clock'>;

  constructor(means: Pick<Means, 'clock'>) {
    this.#means = means;
  }

  now(): JsonObject {
    return { __type: 'Date', iso: new Date(this.#means.clock.now()).toISOString() };
  }
}
