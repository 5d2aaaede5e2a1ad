import { type Clock, sleep } from '../../clock.ts';
import type { Vault } from '../../crypto.ts';
import type { Logger } from '../../process/logging.ts';
import { changeMaxAgeMs, TtlCache } from '../../ttl-cache.ts';
import { isConnectionFailure, isUndefinedTable } from '../limits/database-errors.ts';
import type { Handle } from '../pool.ts';
import { countSealedApps } from '../tables/apps.ts';
import { migrationNames, migrationTable } from './migrate.ts';

const notMigrated = 'The database is not migrated: run `carillon migrate`.';
const wrongSecret =
  'CARILLON_SECRET does not open what is in the database: set it to the key that this database was used with before.';

const newerQueue =
  'The queue of the database is newer than this version can use: stop this process, and start the new version.';

const notReachable = 'The database cannot be reached.';

/** Intervals of a waiting process: between checks, and between log messages. */
const checkEveryMs = 1000;
const logEveryMs = 10_000;

/** What this version needs of the queue's schema. */
interface QueueNeeds {
  /** Reads what the database has; undefined without the tables of pg-boss. */
  read(db: Handle): Promise<{ version: number; names: string[] } | undefined>;
  /** Version of pg-boss's own tables: it runs with no other. */
  schemaVersion: number;
  names: readonly string[];
}

interface ReadinessOptions {
  vault: Vault;
  clock: Clock;
  log: Logger;
  queue: QueueNeeds;
}

/** Hint to the operator on why the database is not ready; undefined if it is. */
type ReadinessHint = string | undefined;

/**
 * Readiness check of the database: all migrations of this version have run, its queues exist, and
 * CARILLON_SECRET opens the apps. A database that has further migrations, of a newer version, is
 * accepted (develop/decisions.md#why-expand-migrate-contract). Checks at most every half second,
 * however many callers there are.
 */
export class DatabaseReadiness {
  readonly #db: Handle;
  readonly #vault: Vault;
  readonly #cache: TtlCache<'hint', Promise<ReadinessHint>>;
  readonly #log: Logger;
  readonly #migrations: string[];
  readonly #queue: QueueNeeds;
  #lastHint: ReadinessHint;
  #newer = 0;
  #pending = 0;

  constructor(db: Handle, { vault, clock, log, queue }: ReadinessOptions) {
    this.#db = db;
    this.#vault = vault;
    this.#log = log;
    this.#queue = queue;
    this.#cache = new TtlCache({ clock, maxAgeMs: changeMaxAgeMs });
    this.#migrations = migrationNames();
  }

  /**
   * Migrations of this version that the database lacks, and those of a newer one that it has, at
   * the last check.
   */
  get skew(): { pending: number; newer: number } {
    return { pending: this.#pending, newer: this.#newer };
  }

  /** Returns the current hint and logs every change. Throws if the database is unreachable. */
  async hint(): Promise<ReadinessHint> {
    const hint = await this.#cache.getOrMake('hint', () => this.#check());
    if (hint !== this.#lastHint) {
      if (hint === undefined) this.#log.info('the database is fit to work on');
      else this.#log.error(hint);
    }
    this.#lastHint = hint;
    return hint;
  }

  /**
   * Resolves when the database is ready, and logs the hint every 10 s. `isBlocking` selects the
   * hints to wait for, beside an unreachable database. Rejects with the signal's reason.
   */
  async whenReady(
    signal: AbortSignal,
    isBlocking: (hint: string) => boolean = () => true,
  ): Promise<void> {
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
      const schemaHint = await this.#checkSchema();
      if (schemaHint !== undefined) return schemaHint;
      const { open, closed } = await countSealedApps(this.#db, this.#vault);
      // New apps can exist under a wrong key, and a few old apps may not open: compare the numbers.
      return closed > open ? wrongSecret : undefined;
    } catch (error) {
      if (!isUndefinedTable(error)) throw error;
      this.#pending = this.#migrations.length;
      return notMigrated;
    }
  }

  async #checkSchema(): Promise<ReadinessHint> {
    const { rows } = await this.#db.query<{ ran: number; newer: number }>(
      `SELECT count(*) FILTER (WHERE name = ANY($1)) AS ran, count(*) FILTER (WHERE name <> ALL($1)) AS newer
         FROM ${migrationTable}`,
      [this.#migrations],
    );
    const { ran = 0, newer = 0 } = rows[0] ?? {};
    this.#pending = this.#migrations.length - ran;
    this.#tellNewer(newer);
    const { read, schemaVersion, names: needed } = this.#queue;
    const { version, names } = (await read(this.#db)) ?? { version: 0, names: [] };
    if (version > schemaVersion) return newerQueue;
    const hasQueues = needed.every((name) => names.includes(name));
    return this.#pending <= 0 && version === schemaVersion && hasQueues ? undefined : notMigrated;
  }

  #tellNewer(newer: number): void {
    if (newer > 0 && newer !== this.#newer)
      this.#log.info(
        { newer },
        'the database has migrations of a newer version: this one works with it',
      );
    this.#newer = newer;
  }
}

function unreachable(error: unknown): string {
  if (isConnectionFailure(error)) return notReachable;
  throw error;
}

/** Returns whether a hint is about the schema: without the right one no call works. */
export const isAboutSchema = (hint: string): boolean => hint === notMigrated || hint === newerQueue;
