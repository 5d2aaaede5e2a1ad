import type { Handle } from './pool.ts';
import { query } from './query.ts';

/** Returns the database's time in epoch milliseconds: the one clock that all processes share. */
export async function databaseNow(db: Handle): Promise<number> {
  const { now } = await query(db).one<{ now: Date }>('SELECT clock_timestamp()::timestamptz(3) AS now');
  return now.getTime();
}

/** Returns the time `afterMs` from now by the database's clock: the clocks of hosts may differ. */
export async function dueIn(db: Handle, afterMs: number): Promise<Date> {
  const text = "SELECT clock_timestamp() + $1 * interval '1 millisecond' AS due";
  return (await query(db).one<{ due: Date }>(text, [afterMs])).due;
}
