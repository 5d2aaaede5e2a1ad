import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { z } from 'zod';
import { moduleUrl } from '../../../shared/process/module-url.ts';

/**
 * Migrates a database in a thread of its own and returns the names of what ran: `npm start` keeps
 * none of the libraries that migrate, which take 10 MB. Rejects as `migrate` does.
 */
export async function migrateInThread(databaseUrl: string): Promise<string[]> {
  const thread = new Worker(moduleUrl('./migrate-worker.ts', import.meta.url), {
    workerData: databaseUrl,
  });
  const [ran]: unknown[] = await once(thread, 'message');
  await thread.terminate();
  return z.array(z.string()).parse(ran);
}
