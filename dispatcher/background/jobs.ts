import { sleep } from '../../shared/clock.ts';
import { analyzeGrownTables } from '../../shared/db/schema/migrate.ts';
import { sealAuthDataOfOldRows } from '../../shared/db/tables/users.ts';
import { endFreezes, resumeExpiredPushes } from '../delivery/holding.ts';
import type { DispatcherDeps } from '../deps.ts';
import { closeSettledPushes } from '../recording/recorder.ts';
import { AccountReader } from './account-reader.ts';
import { cleanOnce, cleanVerification, deleteIdle, InboxLimit, mergeDevices } from './cleaner.ts';
import { JobKeeper } from './job-keeper.ts';
import { reviewCanaries } from './profiles.ts';
import { computeReports } from './reports.ts';
import { Scheduler, startRecurring } from './scheduler.ts';
import { rotateForAWhile } from './secret-rotation.ts';

/** A background job: work that the dispatcher repeats for as long as it runs. */
export interface BackgroundJob {
  name: string;
  /** Pause after a pass that was not full, in ms. Read after each pass. */
  readonly pauseMs: number;
  /**
   * Does a limited amount of work. Returns the amount. A full pass is followed by the next one at
   * once.
   */
  runOnce(deps: DispatcherDeps): Promise<number>;
}

const rowsAtOnce = 500;

/** Closes settled pushes that were not closed with their last batch. */
const reaper: BackgroundJob = { name: 'reaper', pauseMs: 2000, runOnce: closeSettledPushes };

/**
 * Resumes paused pushes that have expired, so that their recipients are counted
 * (protocol/delivery.md#promise-2).
 */
const pauseEnder: BackgroundJob = {
  name: 'pause ender',
  pauseMs: 2000,
  runOnce: (deps) => resumeExpiredPushes(deps, rowsAtOnce),
};

/** Continues the pushes that a freeze has held. */
const freezeEnder: BackgroundJob = {
  name: 'freeze ender',
  pauseMs: 500,
  runOnce: (deps) => endFreezes(deps, rowsAtOnce),
};

/** Deletes rows after their retention (`cleaner.ts`). */
const cleaner: BackgroundJob = {
  name: 'cleaner',
  pauseMs: 60_000,
  runOnce: (deps) => cleanOnce(deps, rowsAtOnce),
};

/**
 * Fires scheduled pushes within 1 s of their time (protocol/delivery.md#promise-8). It caches the
 * next time.
 */
function scheduling(): BackgroundJob {
  const scheduler = new Scheduler();
  return {
    name: 'scheduler',
    get pauseMs() {
      return scheduler.pauseMs;
    },
    runOnce: (deps) => scheduler.fireDue(deps, rowsAtOnce),
  };
}

/** Creates the pushes of recurring pushes within 1 s of their times. */
const recurring: BackgroundJob = {
  name: 'recurring pushes',
  pauseMs: 500,
  runOnce: (deps) => startRecurring(deps, rowsAtOnce),
};

/** Renews the breaker states that the admin API shows. */
const breakers: BackgroundJob = {
  name: 'breakers',
  pauseMs: 2000,
  async runOnce(deps) {
    await deps.breakers.maintain();
    return 0;
  },
};

/** Writes the gateway usage of the last second. */
const gatewayUsage: BackgroundJob = {
  name: 'gateway usage',
  pauseMs: 1000,
  async runOnce(deps) {
    await deps.gatewayUsage.flush();
    return 0;
  },
};

/** Deletes expired codes, captchas, links and messages. */
const verificationCleaner: BackgroundJob = {
  name: 'verification cleaner',
  pauseMs: 60_000,
  runOnce: ({ db, clock }) => cleanVerification(db, clock.now(), rowsAtOnce),
};

/**
 * Deletes idle installations in small statements. Pushes skip an installation as soon as it is
 * idle.
 */
const idleEnder: BackgroundJob = {
  name: 'idle installations',
  pauseMs: 10 * 60_000,
  runOnce: (deps) => deleteIdle(deps, rowsAtOnce),
};

/** Merges installations of the same device. */
const deviceMerger: BackgroundJob = {
  name: 'device merger',
  pauseMs: 10 * 60_000,
  runOnce: (deps) => mergeDevices(deps, rowsAtOnce),
};

/** Encrypts platform secrets that older versions stored in plain text. */
const tokenSealer: BackgroundJob = {
  name: 'token sealer',
  pauseMs: 10 * 60_000,
  runOnce: ({ db, vault }) => sealAuthDataOfOldRows(db, vault, rowsAtOnce),
};

/** Encrypts values under the first key of CARILLON_SECRET while a rotation is requested. */
const secretRotation: BackgroundJob = {
  name: 'secret rotation',
  pauseMs: 1000,
  runOnce: rotateForAWhile,
};

/** Runs ANALYZE on tables that have grown, before autovacuum does. */
const statistics: BackgroundJob = {
  name: 'statistics',
  pauseMs: 2000,
  runOnce: ({ db }) => analyzeGrownTables(db),
};

/** Promotes and ends canaries of credentials by their age. */
const canaries: BackgroundJob = {
  name: 'credential canaries',
  pauseMs: 15_000,
  runOnce: reviewCanaries,
};

/**
 * Gives jobs to open pushes and batches that have lost their job. It has a memory, so each
 * dispatcher creates its own.
 */
function jobKeeper(): BackgroundJob {
  const keeper = new JobKeeper();
  return { name: 'job keeper', pauseMs: 15_000, runOnce: (deps) => keeper.run(deps) };
}

/**
 * Reads caps, quotas and the expiry of credentials for the metrics of all processes. It caches the
 * expiry.
 */
function accountReader(): BackgroundJob {
  const reader = new AccountReader();
  return { name: 'account reading', pauseMs: 15_000, runOnce: (deps) => reader.run(deps) };
}

/**
 * Keeps the inboxes of devices within their limit. It remembers its position, so each dispatcher
 * creates its own.
 */
function inboxLimit(): BackgroundJob {
  const limit = new InboxLimit();
  return { name: 'inbox limit', pauseMs: 5000, runOnce: (deps) => limit.run(deps) };
}

/** Computes totals by day. One pass handles all apps whose turn it is. */
const reporter: BackgroundJob = {
  name: 'reports',
  pauseMs: 60_000,
  async runOnce(deps) {
    await computeReports(deps);
    return 0;
  },
};

/** Updates which endpoints of webhooks are full, and counts the events that were dropped. */
const webhooks: BackgroundJob = {
  name: 'webhook limits',
  pauseMs: 2000,
  async runOnce(deps) {
    await deps.webhooks.maintain();
    return 0;
  },
};

/** Creates the background jobs of one dispatcher. */
export const openBackgroundJobs = (): BackgroundJob[] => [
  breakers,
  scheduling(),
  recurring,
  reaper,
  pauseEnder,
  freezeEnder,
  jobKeeper(),
  cleaner,
  verificationCleaner,
  idleEnder,
  deviceMerger,
  tokenSealer,
  secretRotation,
  canaries,
  webhooks,
  statistics,
  inboxLimit(),
  gatewayUsage,
  accountReader(),
  reporter,
];

/**
 * Interval of warnings about a background job that keeps failing. The scheduler runs at least twice
 * a second.
 */
const warnEveryMs = 30_000;

/**
 * Runs a background job until the signal aborts. Repeats a failed pass after the pause. Logs the
 * first of consecutive failures, then one failure per half minute, and the first success after
 * them.
 */
export async function runBackgroundJob(
  deps: DispatcherDeps,
  job: BackgroundJob,
  signal: AbortSignal,
): Promise<void> {
  const { clock, log, metrics } = deps;
  const labels = { duty: job.name };
  // Starts the series at 0, so that a background job that never succeeds is visible.
  metrics.backgroundJobLastSuccess.set(labels, clock.now() / 1000);
  metrics.backgroundJobFailures.inc(labels, 0);
  let failures = 0;
  let warnedAtMs = Number.NEGATIVE_INFINITY;
  while (!signal.aborted) {
    try {
      let rows = rowsAtOnce;
      while (!signal.aborted && rows >= rowsAtOnce) {
        rows = await job.runOnce(deps);
        metrics.backgroundJobRows.inc(labels, rows);
      }
      metrics.backgroundJobLastSuccess.set(labels, clock.now() / 1000);
      if (failures > 0) log.info({ duty: job.name, failures }, 'a background job works again');
      failures = 0;
      warnedAtMs = Number.NEGATIVE_INFINITY;
    } catch (error) {
      failures += 1;
      metrics.backgroundJobFailures.inc(labels);
      if (clock.monotonicMs() - warnedAtMs >= warnEveryMs) {
        log.warn({ err: error, duty: job.name, failures }, 'a background job failed');
        warnedAtMs = clock.monotonicMs();
      }
    }
    await sleep(job.pauseMs, signal);
  }
}
