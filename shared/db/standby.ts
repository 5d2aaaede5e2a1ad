import { sleep } from '../clock.ts';
import type { Database } from './pool.ts';
import { query } from './query.ts';

/** Maximum time that a scan waits for the standby. A healthy standby is milliseconds behind. */
const patienceMs = 1000;
const pollMs = 5;

/**
 * Chooses the database of a scan. Returns the standby once it has replayed the primary's current
 * position, so that devices registered before the push are found. Returns the primary if the
 * standby lags, is unreachable or does not answer (develop/architecture.md#processes).
 */
export async function chooseScanDatabase(primary: Database, standby: Database): Promise<Database> {
  if (primary.url === standby.url) return standby;
  const lsn = await query(primary).value<string>('SELECT pg_current_wal_insert_lsn()::text AS lsn');
  const end = new AbortController();
  // The statement timeout of scans is long, and a server that was lost never applies it.
  const isReady = await Promise.race([
    hasReplayed(standby, lsn, end.signal).catch(() => false),
    sleep(patienceMs, end.signal).then(() => false),
  ]);
  end.abort();
  return isReady ? standby : primary;
}

/** Waits until a standby has replayed a position. Returns false if the signal aborts before. */
async function hasReplayed(
  standby: Database,
  lsn: string | undefined,
  signal: AbortSignal,
): Promise<boolean> {
  while (!signal.aborted) {
    const text = 'SELECT coalesce(pg_last_wal_replay_lsn() >= $1::pg_lsn, true)';
    if (await query(standby).boolean(text, [lsn])) return true;
    await sleep(pollMs, signal);
  }
  return false;
}

/**
 * Returns by how many seconds a standby is behind. Returns 0 for a primary, and for a standby that
 * has replayed everything and still receives changes. If the standby receives nothing, the lag is
 * the time since its last change. Some roles may not read the state of the stream. They only see
 * whether its process runs.
 */
export async function readStandbyLag(standby: Database): Promise<number> {
  const lag = await query(standby).value<
    number | null
  >(`SELECT CASE WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn()
                   AND EXISTS (SELECT FROM pg_stat_wal_receiver
                     WHERE coalesce(status, 'streaming') = 'streaming') THEN 0
                 ELSE extract(epoch
                   FROM now() - pg_last_xact_replay_timestamp())::float8 END AS lag`);
  return lag ?? 0;
}
