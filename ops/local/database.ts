import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { z } from 'zod';
import { moduleUrl } from '../../shared/process/module-url.ts';
import { say } from '../cli/language.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from './postgres/server.ts';

const restartMs = 200;

export interface SupervisedDatabase {
  /** Stays the same after a restart. */
  databaseUrl: string;
  readonly pid: number;
  urlFor(database: string): string;
  stop(): Promise<void>;
}

export interface SupervisedDatabaseOptions {
  dataDir: string;
  /** False only in benchmarks and tests. */
  durable?: boolean;
  log: (line: string) => void;
}

/**
 * Maximum time for a clean stop. After it, the server stops at once, and the next start recovers
 * the data.
 */
const cleanStopMs = 3000;

/** Starts the embedded PostgreSQL. If it exits, restarts it at the same address. */
export async function superviseDatabase(
  options: SupervisedDatabaseOptions,
): Promise<SupervisedDatabase> {
  const lines = onlyProblems(options.log);
  let isStopping = false;
  let server = await startEmbeddedPostgres({ ...options, log: lines });
  const { socketDir } = server;
  const watch = async (watched: EmbeddedPostgres): Promise<void> => {
    const { code, signal } = await watched.exited;
    if (isStopping) return;
    const reason = signal ?? say('exit code {code}', { code });
    options.log(
      say('{name} ended ({reason}); starting it again', { name: say('the database'), reason }),
    );
    while (!isStopping) {
      try {
        server = await startEmbeddedPostgres({ ...options, log: lines, socketDir });
        void watch(server);
        return;
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        options.log(say('the database did not start: {reason}', { reason }));
        await sleep(restartMs);
      }
    }
  };
  void watch(server);
  return {
    databaseUrl: server.databaseUrl,
    get pid() {
      return server.pid;
    },
    urlFor: (database) => server.urlFor(database),
    async stop() {
      isStopping = true;
      const forceTimer = setTimeout(() => void server.stop('immediate'), cleanStopMs);
      await server.stop('fast');
      clearTimeout(forceTimer);
    },
  };
}

/** Passes on only the warnings and errors of PostgreSQL's log. */
function onlyProblems(log: (line: string) => void): (line: string) => void {
  return (line) => {
    if (/\b(FATAL|PANIC|WARNING):/.test(line)) log(`database: ${line}`);
  };
}

/**
 * Migrates a database in a worker thread and returns the names of the migrations that ran. The
 * thread keeps the migration libraries out of the memory of `npm start`. Rejects with the errors of
 * `migrate`.
 */
export async function migrateInThread(databaseUrl: string): Promise<string[]> {
  const thread = new Worker(moduleUrl('./postgres/migrate-worker.ts', import.meta.url), {
    workerData: databaseUrl,
  });
  const [ran]: unknown[] = await once(thread, 'message');
  await thread.terminate();
  return z.array(z.string()).parse(ran);
}
