import type { Handle } from './pool.ts';

/** Returns the database's time in epoch milliseconds: the one clock that all processes share. */
export async function databaseNow(db: Handle): Promise<number> {
  const { rows } = await db.query<{ now: Date }>('SELECT clock_timestamp()::timestamptz(3) AS now');
  const now = rows[0]?.now;
  if (!now) throw new Error('the database returned no row');
  return now.getTime();
}

/** Returns the time `afterMs` from now by the database's clock: the clocks of hosts may differ. */
export async function dueIn(db: Handle, afterMs: number): Promise<Date> {
  const { rows } = await db.query<{ due: Date }>(
    "SELECT clock_timestamp() + $1 * interval '1 millisecond' AS due",
    [afterMs],
  );
  return rows[0]?.due ?? new Date(0);
}
