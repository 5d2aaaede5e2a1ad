import { type Clock, sleep } from '../../clock.ts';
import type { Vault } from '../../crypto.ts';
import type { Logger } from '../../process/logging.ts';
import { changeMaxAgeMs, TtlCache } from '../../ttl-cache.ts';
import { isConnectionFailure, isUndefinedTable } from '../limits/database-errors.ts';
import type { Handle } from '../pool.ts';
import { query } from '../query.ts';
import { countSealedApps } from '../tables/apps.ts';
import { migrationNames, migrationTable } from './migrate.ts';

const notMigrated = 'The database is not migrated: run `carillon migrate`.';
const wrongSecret =
  'CARILLON_SECRET does not open what is in the database: set it to the key that this database was used with before.';

const newerQueue =
  'The queue of the database is newer than this version can use: stop this process, and start the new version.';

const notReachable = 'The database cannot be reached.';

/** Intervals of a waiting process in ms: between checks, and between log messages. */
const checkEveryMs = 1000;
const logEveryMs = 10_000;

/** Queue schema that this version requires. */
interface QueueNeeds {
  /** Reads the queue schema of the database. Returns undefined without the tables of pg-boss. */
  read(db: Handle): Promise<{ version: number; names: string[] } | undefined>;
  /** Version of pg-boss's tables. pg-boss starts with no other version. */
  schemaVersion: number;
  names: readonly string[];
}

interface ReadinessOptions {
  vault: Vault;
  clock: Clock;
  log: Logger;
  queue: QueueNeeds;
}

/** Hint to the operator why the database is not ready. Undefined if it is ready. */
type ReadinessHint = string | undefined;

/**
 * Checks whether the database is ready: all migrations of this version have run, its queues exist,
 * and CARILLON_SECRET decrypts the apps. Further migrations of a newer version are accepted
 * (develop/decisions.md#why-expand-migrate-contract). Checks at most every half second, whatever
 * the number of callers.
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
   * Result of the last check: migrations of this version that are missing, and migrations of a
   * newer version.
   */
  get skew(): { pending: number; newer: number } {
    return { pending: this.#pending, newer: this.#newer };
  }

  /** Returns the current hint, and logs every change. Throws if the database is unavailable. */
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
   * Resolves when the database is ready. Logs the hint every 10 s. `isBlocking` selects the hints
   * to wait for, in addition to an unavailable database. Rejects with the signal's reason.
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
    const { ran, newer } = await query(this.#db).one<{ ran: number; newer: number }>(
      `SELECT count(*) FILTER (WHERE name = ANY($1)) AS ran, count(*)
        FILTER (WHERE name <> ALL($1)) AS newer
         FROM ${migrationTable}`,
      [this.#migrations],
    );
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

/** Returns whether a hint is about the schema. No call works with a wrong schema. */
export const isAboutSchema = (hint: string): boolean => hint === notMigrated || hint === newerQueue;
