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
const checkEveryMs = 1000;
const logEveryMs = 10_000;

/** Hint to the operator on why the database is not ready; undefined if it is. */
export type ReadinessHint = string | undefined;

/**
 * Readiness check of the database: all migrations of this version have run, and CARILLON_SECRET opens the apps. Checks
 * at most every half second, however many callers there are.
 */
export class DatabaseReadiness {
  readonly #db: Handle;
  readonly #vault: Vault;
  readonly #cache: ShortCache<ReadinessHint>;
  readonly #log: Logger;
  readonly #migrations: string[];
  #lastHint: ReadinessHint;

  constructor(db: Handle, { vault, clock, log }: { vault: Vault; clock: Clock; log: Logger }) {
    this.#db = db;
    this.#vault = vault;
    this.#log = log;
    this.#cache = new ShortCache(clock, () => this.#check());
    this.#migrations = migrationNames();
  }

  /** Returns the current hint and logs every change. Throws if the database is unreachable. */
  async hint(): Promise<ReadinessHint> {
    const hint = await this.#cache.get('');
    if (hint !== this.#lastHint) {
      if (hint === undefined) this.#log.info('the database is fit to work on');
      else this.#log.error(hint);
    }
    this.#lastHint = hint;
    return hint;
  }

  /**
   * Resolves when the database is ready, and logs the hint every 10 s. `isBlocking` selects the hints to wait
   * for, beside an unreachable database. Rejects with the signal's reason.
   */
  async whenReady(signal: AbortSignal, isBlocking: (hint: string) => boolean = () => true): Promise<void> {
    for (let waitedMs = 0; ; waitedMs += checkEveryMs) {
      signal.throwIfAborted();
      const hint = await this.hint().catch(unreachable);
      if (hint === undefined || !(hint === notReachable || isBlocking(hint))) return;
      if (waitedMs > 0 && waitedMs % logEveryMs === 0) this.#log.error(hint);
      await sleep(checkEveryMs, signal);
    }
  }

  async #check(): Promise<ReadinessHint> {
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

/** Returns whether a hint is about a missing migration. */
export const isNotMigrated = (hint: string): boolean => hint === notMigrated;

/** Returns the migrations of this version, by their names in the database. */
function migrationNames(): string[] {
  return readdirSync(fileURLToPath(new URL('./migrations', import.meta.url)))
    .filter((name) => name.endsWith('.sql'))
    .map((name) => name.slice(0, -'.sql'.length));
}
