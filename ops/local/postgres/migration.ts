import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { z } from 'zod';
import { moduleUrl } from '../../../shared/process/module-url.ts';

/**
 * Migrates a database in a worker thread and returns the names of the migrations that ran. The
 * thread keeps the migration libraries out of the memory of `npm start`. Rejects with the errors of
 * `migrate`.
 */
export async function migrateInThread(databaseUrl: string): Promise<string[]> {
  const thread = new Worker(moduleUrl('./migrate-worker.ts', import.meta.url), {
    workerData: databaseUrl,
  });
  const [ran]: unknown[] = await once(thread, 'message');
  await thread.terminate();
  return z.array(z.string()).parse(ran);
}
