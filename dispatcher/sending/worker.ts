import { parentPort, threadId, workerData } from 'node:worker_threads';
import { z } from 'zod';
import { systemClock } from '../../shared/clock.ts';
import { Vault } from '../../shared/crypto.ts';
import { AppCache } from '../../shared/db/cache/app-cache.ts';
import { Database } from '../../shared/db/pool.ts';
import { createLogger } from '../../shared/process/logging.ts';
import { BatchSender } from './batch-sender.ts';
import { LatenessBudget } from './lateness.ts';
import { SenderCache } from './sender-cache.ts';
import type { DeliverTask, ThreadResult } from './task.ts';
import { readingEveryMs } from './transports.ts';

/** Database connections of one thread; its batches load and checkpoint in turns. */
const connectionsPerThread = 4;

const threadData = z.object({
  databaseUrl: z.string(),
  secrets: z.array(z.string()),
  publicUrl: z.string(),
  logLevel: z.string(),
  stopFlag: z.instanceof(SharedArrayBuffer),
  interrupts: z.instanceof(SharedArrayBuffer),
});

const data = threadData.parse(workerData);
const log = createLogger({ level: data.logLevel, name: 'dispatcher thread' });
const db = new Database({
  url: data.databaseUrl,
  applicationName: 'carillon dispatcher thread',
  maxConnections: connectionsPerThread,
  onError: (error) => log.warn({ err: error }, 'database connection lost'),
});
const vault = new Vault(data.secrets.map((key) => Buffer.from(key, 'base64')));
const appCache = new AppCache(db, vault, systemClock);
const senders = new SenderCache({
  db,
  appCache,
  clock: systemClock,
  vault,
  publicUrl: data.publicUrl,
});
const latenessBudget = new LatenessBudget();
setInterval(() => {
  parentPort?.postMessage({ thread: threadId, http2: senders.drainTransports() });
}, readingEveryMs).unref();
const stopFlag = new Int32Array(data.stopFlag);
const interrupts = new Int32Array(data.interrupts);

/** Sends one batch; piscina calls this function. */
export default async function deliver(task: DeliverTask): Promise<ThreadResult> {
  const deps = { db, senders, appCache, clock: systemClock, latenessBudget, log, stopFlag, interrupts };
  const { states, ...result } = await new BatchSender(deps, task).run();
  return { ...result, stateBytes: states.bytes };
}
