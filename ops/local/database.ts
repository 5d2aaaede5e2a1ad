import { setTimeout as sleep } from 'node:timers/promises';
import { type EmbeddedPostgres, startEmbeddedPostgres } from './postgres/server.ts';

const restartMs = 200;

export interface KeptDatabase {
  /** Stays the same over restarts. */
  databaseUrl: string;
  readonly pid: number;
  urlFor(database: string): string;
  stop(): Promise<void>;
}

export interface KeptDatabaseOptions {
  dataDir: string;
  /** false only for benchmarks and tests. */
  durable?: boolean;
  log: (line: string) => void;
}

/** Longest wait for a clean end before the server is told to leave recovery to the next start. */
const cleanStopMs = 3000;

/** The embedded PostgreSQL, started again at the same address when it dies. */
export async function keepDatabase(options: KeptDatabaseOptions): Promise<KeptDatabase> {
  const lines = quiet(options.log);
  let isStopping = false;
  let server = await startEmbeddedPostgres({ ...options, log: lines });
  const { socketDir } = server;
  const watch = async (watched: EmbeddedPostgres): Promise<void> => {
    const { code, signal } = await watched.exited;
    if (isStopping) return;
    options.log(`the database ended (${signal ?? `exit code ${code}`}); starting it again`);
    while (!isStopping) {
      try {
        server = await startEmbeddedPostgres({ ...options, log: lines, socketDir });
        void watch(server);
        return;
      } catch (error) {
        options.log(`the database did not start: ${error instanceof Error ? error.message : error}`);
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
      const hurry = setTimeout(() => void server.stop('immediate'), cleanStopMs);
      await server.stop('fast');
      clearTimeout(hurry);
    },
  };
}

/** PostgreSQL's own log, less what is its everyday life. */
function quiet(log: (line: string) => void): (line: string) => void {
  return (line) => {
    if (/\b(FATAL|PANIC|WARNING):/.test(line)) log(`database: ${line}`);
  };
}
