import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Clock, sleep } from '../clock.ts';
import type { Vault } from '../crypto.ts';
import type { Logger } from '../process/logging.ts';
import { ShortCache } from './cache/short-cache.ts';
import { type Handle, isConnectionFailure, isUndefinedTable } from './pool.ts';
import { countSealedApps } from './tables/apps/apps.ts';

const notMigrated = 'The database is not migrated: run `carillon migrate`.';
const wrongSecret =
  'CARILLON_SECRET does not open what is in the database: set it to the key that this database was used with before.';

const notReachable = 'The database cannot be reached.';

/** Intervals of a waiting process: between checks, and between log messages. */
const lookEveryMs = 1000;
const sayEveryMs = 10_000;

/** Hint to the operator on why the database is not ready; undefined if it is. */
export type ReadinessProblem = string | undefined;

/**
 * Readiness check of the database: all migrations of this version have run, and CARILLON_SECRET opens the apps. Checks
 * at most every half second, however many callers there are.
 */
export class DatabaseReadiness {
  readonly #db: Handle;
  readonly #vault: Vault;
  readonly #memory: ShortCache<ReadinessProblem>;
  readonly #log: Logger;
  readonly #migrations: string[];
  #told: ReadinessProblem;

  constructor(db: Handle, { vault, clock, log }: { vault: Vault; clock: Clock; log: Logger }) {
    this.#db = db;
    this.#vault = vault;
    this.#log = log;
    this.#memory = new ShortCache(clock, () => this.#look());
    this.#migrations = migrationNames();
  }

  /** Returns the current problem and logs every change. Throws if the database is unreachable. */
  async message(): Promise<ReadinessProblem> {
    const problem = await this.#memory.get('');
    if (problem !== this.#told) {
      if (problem === undefined) this.#log.info('the database is fit to work on');
      else this.#log.error(problem);
    }
    this.#told = problem;
    return problem;
  }

  /**
   * Resolves when the database is ready, and logs the problem now and then. `isBlocking` selects the problems to wait
   * for, beside an unreachable database. Rejects with the signal's reason.
   */
  async whenReady(signal: AbortSignal, isBlocking: (problem: string) => boolean = () => true): Promise<void> {
    for (let waitedMs = 0; ; waitedMs += lookEveryMs) {
      signal.throwIfAborted();
      const problem = await this.message().catch(unreachable);
      if (problem === undefined || !(problem === notReachable || isBlocking(problem))) return;
      if (waitedMs > 0 && waitedMs % sayEveryMs === 0) this.#log.error(problem);
      await sleep(lookEveryMs, signal);
    }
  }

  async #look(): Promise<ReadinessProblem> {
    try {
      if (!(await this.#isMigrated())) return notMigrated;
      const { open, closed } = await countSealedApps(this.#db, this.#vault);
      // New apps can exist under a wrong key, and a few old apps may not open: compare the numbers.
      return closed > open ? wrongSecret : undefined;
    } catch (error) {
      if (isUndefinedTable(error)) return notMigrated;
      throw error;
    }
  }

  async #isMigrated(): Promise<boolean> {
    const { rows } = await this.#db.query<{ ran: number; has_queue: boolean }>(
      `SELECT count(*) AS ran, to_regclass('pgboss.job') IS NOT NULL AS has_queue
         FROM carillon_migration WHERE name = ANY($1)`,
      [this.#migrations],
    );
    const [row] = rows;
    return row?.has_queue === true && row.ran >= this.#migrations.length;
  }
}

function unreachable(error: unknown): string {
  if (isConnectionFailure(error)) return notReachable;
  throw error;
}

/** Returns whether a problem is a missing migration. */
export const isNotMigrated = (problem: string): boolean => problem === notMigrated;

/** Returns the migrations of this version, by their names in the database. */
function migrationNames(): string[] {
  return readdirSync(fileURLToPath(new URL('./migrations', import.meta.url)))
    .filter((name) => name.endsWith('.sql'))
    .map((name) => name.slice(0, -'.sql'.length));
}
