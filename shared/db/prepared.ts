import { createHash } from 'node:crypto';

/**
 * Statement that a connection parses once. After a few executions PostgreSQL plans it once, too.
 */
export interface PreparedStatement {
  name: string;
  text: string;
}

/**
 * Names a statement by its text. Only for frequent statements with one good plan for all values: no
 * OR between parameters and no parameter that may be NULL in a condition. They list their columns,
 * because a migration that adds a column would make `*` fail.
 */
export const prepare = (text: string): PreparedStatement => ({
  name: createHash('sha256').update(text).digest('base64url').slice(0, 16),
  text,
});

/**
 * Most texts of one function: every connection keeps each of them, so a text that is made of values
 * must not fill it.
 */
export const maxStatements = 100;

/**
 * Prepared statements of a function with several texts, by text; those beyond the limit are not
 * prepared.
 */
export class PreparedStatements {
  readonly #statements = new Map<string, PreparedStatement>();

  of(text: string): PreparedStatement | string {
    const known = this.#statements.get(text);
    if (known) return known;
    if (this.#statements.size >= maxStatements) return text;
    const statement = prepare(text);
    this.#statements.set(text, statement);
    return statement;
  }
}

/**
 * Returns columns (`object_id, name`) of a table under the names of members: `push.object_id AS
 * "objectId"`.
 */
export const membersOf = (table: string, columns: string): string =>
  columns
    .split(/,\s*/)
    .map((column) => {
      const member = column.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
      return `${table}.${column} AS "${member}"`;
    })
    .join(', ');
