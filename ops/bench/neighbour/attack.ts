import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { z } from 'zod';
import { moduleUrl } from '../../../shared/process/module-url.ts';
import type { HostileCall } from './patterns.ts';

/** What the worker is started with. */
export const attackOrder = z.object({
  url: z.string(),
  headers: z.record(z.string(), z.string()),
  clients: z.number(),
});
export type AttackOrder = z.infer<typeof attackOrder>;

/** How many calls were answered with which status. */
export const answers = z.record(z.string(), z.number());
export type Answers = z.infer<typeof answers>;

/** Clients of the hostile app, in a thread of their own, so that their answers do not delay what is measured. */
export class Attack {
  readonly #worker: Worker;

  constructor(order: AttackOrder) {
    this.#worker = new Worker(moduleUrl('./hostile-worker.ts', import.meta.url), { workerData: order });
  }

  /** From now on every client makes these calls, one after the other without a pause. */
  begin(calls: HostileCall[]): void {
    this.#worker.postMessage(calls);
  }

  /** Breaks off the calls under way; gives what the others were answered. */
  async end(): Promise<Answers> {
    const told = once(this.#worker, 'message');
    this.#worker.postMessage([]);
    const [message] = await told;
    return answers.parse(message);
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}
