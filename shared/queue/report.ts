import { type Metrics, recordQueues } from '../metrics.ts';
import { queueNames } from './jobs.ts';
import type { JobQueue } from './queue.ts';

/** Updates the gauges of the queues for a scrape; without a database they keep their values. */
export async function reportQueues(queue: JobQueue, metrics: Metrics): Promise<void> {
  const depths = await queue.depths().catch(() => undefined);
  if (depths) recordQueues(metrics, queueNames, depths);
}
