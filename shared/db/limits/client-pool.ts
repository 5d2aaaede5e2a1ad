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

/**
 * TCP options of a connection. The system finds out within 20 s that the server of an idle
 * connection is lost; by default it takes two hours.
 */
export const keepAlive = { keepAlive: true, keepAliveInitialDelayMillis: 10_000 };

const appOfWork = new AsyncLocalStorage<string>();

/**
 * Runs `work` on behalf of an app. Connections that `work` takes from a pool with `fairShare`, at
 * any depth, count for this app. All work outside of `runForApp` counts as one app.
 */
export const runForApp = <T>(appId: string, work: () => T): T => appOfWork.run(appId, work);

export const currentApp = (): string => appOfWork.getStore() ?? '';

/**
 * Pooler between the processes and PostgreSQL (production.md#connections). `transaction`: after
 * each transaction the pooler gives the server connection to another client, as PgBouncer does with
 * `pool_mode = transaction`.
 */
export type Pooler = 'none' | 'transaction';

/** PostgreSQL settings by name. */
export type ServerSettings = Readonly<Record<string, string | number>>;

/** Number of connections in use, and number of calls that wait for a connection. */
export interface PoolUse {
  name: string;
  used: number;
  idle: number;
  waiting: number;
  limit: number;
}

/**
 * Client that sends prepared statements without their names, because the next statement may use
 * another server connection.
 */
export class UnnamedClient extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config);
    Object.defineProperty(this, 'query', {
      value: (statement: unknown, ...rest: unknown[]) =>
        Reflect.apply(pg.Client.prototype.query, this, [withoutName(statement), ...rest]),
    });
  }
}

/** Returns a statement without its name. A COPY submits itself, so it is returned unchanged. */
function withoutName(statement: unknown): unknown {
  if (typeof statement !== 'object' || statement === null) return statement;
  if (!('name' in statement) || 'submit' in statement) return statement;
  const { name: _, ...unnamed } = statement;
  return unnamed;
}

/** Returns a function that applies settings to a new connection. */
export const settingsOf = (settings: ServerSettings) => async (client: pg.ClientBase) => {
  const statements = Object.entries(settings).map(([name, value]) => `SET ${name} = '${value}'`);
  await client.query(statements.join('; '));
};

/** Returns the statements that apply settings to one transaction, to follow BEGIN. */
export const localSettings = (settings: ServerSettings): string =>
  Object.entries(settings)
    .map(([name, value]) => `; SET LOCAL ${name} = '${value}'`)
    .join('');
