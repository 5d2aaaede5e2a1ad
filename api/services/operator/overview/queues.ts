import type { QueueState } from '../../../../shared/queue/queue.ts';
import type { ApiDeps } from '../../deps.ts';

/** Reads the queues of all dispatchers (protocol/admin-api.md#queues). */
export class QueueService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  list(): Promise<QueueState[]> {
    return this.#deps.queue.states();
  }
}
