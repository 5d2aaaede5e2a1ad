import { refuse } from '../../../../shared/domain/errors/errors.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import { queueNames } from '../../../../shared/queue/jobs.ts';
import {
  type JobFilter,
  listWaitingJobs,
  type QueueState,
  type WaitingJob,
} from '../../../../shared/queue/queue-sql.ts';
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

  /** Lists jobs of a queue that are not done, the oldest first. Throws 404 when there is no such queue, 124. */
  async jobs(queue: string, filter: JobFilter) {
    if (!queueNames.includes(queue)) throw refuse('notFound', detail('noQueue'));
    const results = await listWaitingJobs(this.#deps.db, queue, filter);
    return results.map((job) => ({ ...job, ...textIds(job) }));
  }
}

/** Returns the ids of a job as texts, so that large ones stay exact in JSON. */
function textIds({ pushId, batchId, messageId }: WaitingJob) {
  const text = (id: number | null) => (id === null ? null : String(id));
  return { pushId: text(pushId), batchId: text(batchId), messageId: text(messageId) };
}
