import pg from 'pg';

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

/**
 * Returns a statement without its name. Cursors and COPY submit themselves, so they are returned
 * unchanged.
 */
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
