import { createHash } from 'node:crypto';

/**
 * A statement that a connection parses once. After a few executions PostgreSQL also plans it only
 * once.
 */
export interface PreparedStatement {
  name: string;
  text: string;
}

/**
 * Creates a prepared statement. Its name is derived from its text. Use it only for frequent
 * statements for which one plan is good for all values: without OR between parameters, and without
 * a parameter in a condition that may be NULL. List the columns of the result, because `*` fails
 * after a migration that adds a column.
 */
export const prepare = (text: string): PreparedStatement => ({
  name: createHash('sha256').update(text).digest('base64url').slice(0, 16),
  text,
});

/**
 * Maximum prepared statements of one function whose text varies. Every connection keeps each text.
 */
export const maxStatements = 100;

/**
 * Prepared statements of a function whose text varies, by text. Texts beyond the limit are not
 * prepared.
 */
export class PreparedStatements {
  readonly #statements = new Map<string, PreparedStatement>();

  of(text: string): PreparedStatement | string {
    const cached = this.#statements.get(text);
    if (cached) return cached;
    if (this.#statements.size >= maxStatements) return text;
    const statement = prepare(text);
    this.#statements.set(text, statement);
    return statement;
  }
}

/**
 * Returns a condition that PostgreSQL only checks on rows found by other conditions. Without it, a
 * statement over a list of keys may read all open rows by an index on their state: few rows are
 * open when PostgreSQL counts them, so it expects fewer open rows than keys.
 */
export const notIndexed = (condition: string): string =>
  `CASE WHEN ${condition} THEN true ELSE false END`;

/**
 * Returns the columns of a table under the names of object members: `object_id` of table `push`
 * becomes `push.object_id AS "objectId"`.
 */
export const membersOf = (table: string, columns: string): string =>
  columns
    .split(/,\s*/)
    .map((column) => {
      const member = column.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
      return `${table}.${column} AS "${member}"`;
    })
    .join(', ');
