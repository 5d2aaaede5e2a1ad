import { sleep } from '../clock.ts';
import type { Database } from './pool.ts';

/** How long a scan waits for the standby; a healthy one is milliseconds behind. */
const patienceMs = 1000;
const pollMs = 5;

/**
 * Where a scan reads: the standby once it has replayed what the primary holds now, so that a device that
 * registered before the push is seen; the primary when the standby lags or cannot be asked
 * (develop/architecture.md#processes).
 */
export async function chooseScanDatabase(primary: Database, standby: Database): Promise<Database> {
  if (primary.url === standby.url) return standby;
  const { rows } = await primary.query<{ lsn: string }>('SELECT pg_current_wal_insert_lsn()::text AS lsn');
  const lsn = rows[0]?.lsn;
  const endsAtMs = performance.now() + patienceMs;
  try {
    while (performance.now() < endsAtMs) {
      const answer = await standby.query<{ isThere: boolean }>(
        `SELECT coalesce(pg_last_wal_replay_lsn() >= $1::pg_lsn, true) AS "isThere"`,
        [lsn],
      );
      if (answer.rows[0]?.isThere) return standby;
      await sleep(pollMs);
    }
  } catch {
    // A standby that is away costs the push nothing: the primary is asked.
  }
  return primary;
}
