import { hourMs, sleep } from '../../shared/clock.ts';
import { findRecentProfiles } from '../../shared/db/tables/pushes/recent-profiles.ts';
import type { DispatcherDeps } from '../deps.ts';
import { warmScans } from '../limits.ts';
import type { SenderPool } from '../sending/pool.ts';
import { runPushStatements, runScanStatements } from './warm-up-statements.ts';

/** Limits of a warm-up: the profiles whose gateways are connected to, and the longest delay of the start. */
export const warmUpLimits = { profiles: 50, usedWithinMs: hourMs, totalMs: 5000 };

/**
 * Prepares a fresh process for its first push, which would otherwise be two to three times slower:
 * starts the threads, opens the connections to the database and to recently used gateways, and runs
 * the statements of a batch. Changes nothing and sends no request to a gateway. Never rejects: a
 * failure is logged.
 */
export async function warmUp(
  deps: Pick<DispatcherDeps, 'db' | 'readDb' | 'queue' | 'queries' | 'clock' | 'log' | 'vault'> & {
    pool: Pick<SenderPool, 'warmUp'>;
  },
  stopped: AbortSignal,
  limits = warmUpLimits,
): Promise<void> {
  const { db, readDb, queries, pool, clock, log, vault } = deps;
  const startedAtMs = clock.monotonicMs();
  const end = new AbortController();
  const signal = AbortSignal.any([stopped, end.signal]);
  // The first decryption takes 5 ms; planning a push decrypts the profiles of its app.
  vault.open(vault.seal({}, ''), '');
  const warn = (error: unknown) => void log.warn({ err: error }, 'could not warm up');
  const warmUpThreads = async () => {
    const sinceMs = clock.now() - limits.usedWithinMs;
    const profiles = await findRecentProfiles(db, { sinceMs, limit: limits.profiles });
    await pool.warmUp(profiles, signal);
  };
  const parts = [
    warmUpThreads(),
    db.warmUp((connection) => runPushStatements(connection, deps)),
    readDb.warmUp(runScanStatements, warmScans),
    queries.warmUp(),
  ];
  const work = Promise.all(parts.map((part) => part.catch(warn)));
  await Promise.race([work, sleep(limits.totalMs, signal)]);
  end.abort();
  log.debug({ tookMs: clock.monotonicMs() - startedAtMs }, 'warmed up');
}
