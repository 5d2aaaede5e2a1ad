import pg from 'pg';

/**
 * Pooler between the processes and PostgreSQL (production.md#connections): none, or one that gives
 * a connection of the server to another client after each transaction (PgBouncer's `pool_mode =
 * transaction`).
 */
export type Pooler = 'none' | 'transaction';

/** Settings of the server by name. */
export type ServerSettings = Readonly<Record<string, string | number>>;

/** Connections of a pool, and the calls that wait for one. */
export interface PoolUse {
  name: string;
  used: number;
  idle: number;
  waiting: number;
  limit: number;
}

/**
 * Client that sends prepared statements without their names, since the next statement may run on
 * another connection.
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

/** Returns a statement without its name; a cursor or COPY, which runs itself, stays as it is. */
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
