import type { Handle } from '../pool.ts';

/** Rows from which a wrong plan costs more than reading a table that has no statistics. */
const leastRows = 25;
/** Growth since its last statistics from which a table is analyzed; autovacuum analyzes after smaller growth. */
const growth = 10;
/** Tables of one call; the time of each is bounded by PostgreSQL's sample of it. */
const tablesAtOnce = 10;

/**
 * Analyzes our tables, and those of the queue library, that have at least 25 rows and ten times as many as PostgreSQL last counted,
 * or were never counted; returns how many. Without statistics, or with those of an empty table, all indexes look equally good for a
 * condition of one row, and prepared statements keep a plan that reads all rows of an app or of a queue
 * (develop/decisions.md#why-new-tables-are-analyzed-at-once). Leaves out tables that are being analyzed, and those of another owner.
 */
export async function analyzeGrownTables(db: Handle): Promise<number> {
  // `reltuples` is -1 before the first count.
  const { rows } = await db.query<{ name: string }>(
    `SELECT format('%I.%I', s.schemaname, s.relname) AS name
       FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid
      WHERE s.schemaname IN (current_schema(), 'pgboss') AND pg_has_role(c.relowner, 'USAGE')
        AND s.n_live_tup >= $1 AND s.n_live_tup >= $2 * c.reltuples
      ORDER BY s.n_live_tup LIMIT $3`,
    [leastRows, growth, tablesAtOnce],
  );
  for (const { name } of rows) await db.query(`ANALYZE (SKIP_LOCKED) ${name}`);
  return rows.length;
}
