import { AsyncLocalStorage } from 'node:async_hooks';
import pg from 'pg';
import { addDuration, type DurationCounts, noDurations } from '../../process/operation-metrics.ts';

type ConnectCallback = (
  error: Error | undefined,
  client: pg.PoolClient | undefined,
  release: (release?: unknown) => void,
) => void;

/**
 * Pool that counts how long calls wait for a connection: for one that is free, and for new ones to
 * open.
 */
export class TimedPool extends pg.Pool {
  #waits = noDurations();
  #askedAtMs: number | undefined;

  /**
   * Runs `work`, whose first connection, asked for before it returns, counts as waited for since
   * `askedAtMs` (monotonic).
   */
  since<T>(askedAtMs: number, work: () => T): T {
    this.#askedAtMs = askedAtMs;
    try {
      return work();
    } finally {
      this.#askedAtMs = undefined;
    }
  }

  /**
   * Returns the waits that ended since the last call, also those for a connection that could not be
   * opened.
   */
  takeWaits(): DurationCounts {
    const taken = this.#waits;
    this.#waits = noDurations();
    return taken;
  }

  override connect(): Promise<pg.PoolClient>;
  override connect(callback: ConnectCallback): void;
  override connect(callback?: ConnectCallback): Promise<pg.PoolClient> | undefined {
    const askedAtMs = this.#askedAtMs ?? performance.now();
    this.#askedAtMs = undefined;
    const end = () => addDuration(this.#waits, (performance.now() - askedAtMs) / 1000);
    if (callback === undefined) return super.connect().finally(end);
    super.connect((error, client, release) => {
      end();
      callback(error, client, release);
    });
    return undefined;
  }
}

const lanes = new AsyncLocalStorage<string>();

/**
 * Runs `work` in the lane of an app: connections that it takes from a pool with `turns`, at any
 * depth, count for this app. Work outside of all lanes shares one.
 */
export const runInLane = <T>(appId: string, work: () => T): T => lanes.run(appId, work);

export const currentLane = (): string => lanes.getStore() ?? '';
