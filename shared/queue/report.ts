import { type Metrics, recordQueues } from '../metrics.ts';
import { queueNames } from './jobs.ts';
import type { JobQueue } from './queue.ts';

/** Reads the queues for a scrape. While the database is away the gauges stay as they were. */
export async function reportQueues(queue: JobQueue, metrics: Metrics): Promise<void> {
  const depths = await queue.depths().catch(() => undefined);
  if (depths) recordQueues(metrics, queueNames, depths);
}
