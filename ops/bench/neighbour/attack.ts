import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { z } from 'zod';
import { moduleUrl } from '../../../shared/process/module-url.ts';
import type { HostileCall } from './patterns.ts';

/** Start options of the worker. */
export const attackOrder = z.object({
  url: z.string(),
  headers: z.record(z.string(), z.string()),
  clients: z.number(),
});
export type AttackOrder = z.infer<typeof attackOrder>;

/** Number of calls by status. */
export const answers = z.record(z.string(), z.number());
export type Answers = z.infer<typeof answers>;

/** Clients of the hostile app, in a separate thread, so that they do not delay the measured calls. */
export class Attack {
  readonly #worker: Worker;

  constructor(order: AttackOrder) {
    this.#worker = new Worker(moduleUrl('./hostile-worker.ts', import.meta.url), { workerData: order });
  }

  /** Starts these calls at every client, one after the other without a pause. */
  begin(calls: HostileCall[]): void {
    this.#worker.postMessage(calls);
  }

  /** Aborts the running calls. Returns the statuses of the others. */
  async end(): Promise<Answers> {
    const reply = once(this.#worker, 'message');
    this.#worker.postMessage([]);
    const [message] = await reply;
    return answers.parse(message);
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}
