import { openTrialGateway } from '../../connectors/trial/gateway.ts';
import { hourMs, sleep } from '../../shared/clock.ts';
import { findRecentProfiles } from '../../shared/db/tables/pushes/recent-profiles.ts';
import type { DispatcherDeps } from '../deps.ts';
import { warmScans } from '../limits.ts';
import type { SenderPool } from '../sending/pool.ts';
import { customPlans, repeat } from '../sending/trial-pushes.ts';
import { planTrialPages, runPushStatements, runScanStatements } from './trial-plans.ts';

/** Limits of a warm-up: the profiles whose gateways are connected to, and the longest delay of the start. */
export const warmUpLimits = { profiles: 50, usedWithinMs: hourMs, totalMs: 5000 };

interface WarmUpOptions {
  limits?: typeof warmUpLimits;
  /** Whether the code is compiled too, which takes half a second of processor time for each thread. */
  hasTrialPushes?: boolean;
}

/**
 * Prepares a fresh process for its first push, which would otherwise be two to three times slower: starts the threads, opens
 * the connections to the database and to recently used gateways, runs the statements of a batch, and lets each thread send
 * pushes of no device to a gateway in this process (sending/trial-pushes.ts). Changes nothing and sends no request to a
 * gateway of a profile. Never rejects: a failure is logged.
 */
export async function warmUp(
  deps: Pick<DispatcherDeps, 'db' | 'readDb' | 'queue' | 'small' | 'clock' | 'log' | 'vault'> & {
    pool: Pick<SenderPool, 'warmUp'>;
  },
  stopped: AbortSignal,
  { limits = warmUpLimits, hasTrialPushes = false }: WarmUpOptions = {},
): Promise<void> {
  const { db, readDb, queue, small, pool, clock, log, vault } = deps;
  const startedAtMs = clock.monotonicMs();
  const end = new AbortController();
  const signal = AbortSignal.any([stopped, end.signal]);
  // The first decryption takes 5 ms; planning a push decrypts the profiles of its app.
  vault.open(vault.seal({}, ''), '');
  const warn = (error: unknown) => void log.warn({ err: error }, 'could not warm up');
  const warmUpThreads = async () => {
    const sinceMs = clock.now() - limits.usedWithinMs;
    const profiles = await findRecentProfiles(db, { sinceMs, limit: limits.profiles });
    const trial = hasTrialPushes ? await openTrialGateway(clock.now()).catch(warn) : undefined;
    await pool.warmUp({ profiles, trialGateway: trial?.gateway }, signal).finally(trial?.close);
  };
  const rounds = hasTrialPushes ? customPlans : 1;
  if (hasTrialPushes) planTrialPages();
  const parts = [
    warmUpThreads(),
    db.warmUp((connection) => repeat(rounds, () => runPushStatements(connection, deps))),
    readDb.warmUp((connection) => repeat(rounds, () => runScanStatements(connection)), warmScans),
    ...(queue.isSpread ? [] : [small.warmUp()]),
  ];
  const work = Promise.all(parts.map((part) => part.catch(warn)));
  await Promise.race([work, sleep(limits.totalMs, signal)]);
  end.abort();
  log.debug({ tookMs: clock.monotonicMs() - startedAtMs }, 'warmed up');
}
