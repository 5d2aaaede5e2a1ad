import { AsyncLocalStorage } from 'node:async_hooks';
import pg from 'pg';
import { addDuration, type DurationCounts, noDurations } from '../../process/operation-metrics.ts';

type ConnectCallback = (
  error: Error | undefined,
  client: pg.PoolClient | undefined,
  release: (release?: unknown) => void,
) => void;

/**
 * Pool that measures how long calls wait for a connection: for a free one, and for a new one to
 * open.
 */
export class TimedPool extends pg.Pool {
  #waits = noDurations();
  #requestedAtMs: number | undefined;

  /**
   * Runs `work`. The wait for its first connection counts from `requestedAtMs` (monotonic) if
   * `work` requests it before it returns.
   */
  since<T>(requestedAtMs: number, work: () => T): T {
    this.#requestedAtMs = requestedAtMs;
    try {
      return work();
    } finally {
      this.#requestedAtMs = undefined;
    }
  }

  /**
   * Returns the waits that ended since the last call. Includes waits for connections that could not
   * be opened.
   */
  takeWaits(): DurationCounts {
    const taken = this.#waits;
    this.#waits = noDurations();
    return taken;
  }

  override connect(): Promise<pg.PoolClient>;
  override connect(callback: ConnectCallback): void;
  override connect(callback?: ConnectCallback): Promise<pg.PoolClient> | undefined {
    const requestedAtMs = this.#requestedAtMs ?? performance.now();
    this.#requestedAtMs = undefined;
    const end = () => addDuration(this.#waits, (performance.now() - requestedAtMs) / 1000);
    if (callback === undefined) return super.connect().finally(end);
    super.connect((error, client, release) => {
      end();
      callback(error, client, release);
    });
    return undefined;
  }
}

const appOfWork = new AsyncLocalStorage<string>();

/**
 * Runs `work` on behalf of an app. Connections that `work` takes from a pool with `fairShare`, at
 * any depth, count for this app. All work outside of `runForApp` counts as one app.
 */
export const runForApp = <T>(appId: string, work: () => T): T => appOfWork.run(appId, work);

export const currentApp = (): string => appOfWork.getStore() ?? '';
