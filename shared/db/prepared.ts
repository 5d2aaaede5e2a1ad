import { createHash } from 'node:crypto';

/** Statement that a connection parses once. After a few executions PostgreSQL plans it once, too. */
export interface PreparedStatement {
  name: string;
  text: string;
}

/**
 * Names a statement by its text. Only for frequent statements with one good plan for all values: no OR between
 * parameters and no parameter that may be NULL in a condition. They list their columns, because a migration that adds a
 * column would make `*` fail.
 */
export const prepare = (text: string): PreparedStatement => ({
  name: createHash('sha256').update(text).digest('base64url').slice(0, 16),
  text,
});

/** Prepared statements of a function with several texts, by text. */
export class PreparedStatements {
  readonly #statements = new Map<string, PreparedStatement>();

  of(text: string): PreparedStatement {
    const known = this.#statements.get(text);
    if (known) return known;
    const statement = prepare(text);
    this.#statements.set(text, statement);
    return statement;
  }
}
