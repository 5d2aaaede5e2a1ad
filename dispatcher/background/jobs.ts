import { minuteMs, sleep } from '../../shared/clock.ts';
import { PartialFailure } from '../../shared/db/outage.ts';
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
   * Does a limited amount of work, and resolves with the amount. A full pass is followed by the
   * next one at once. A job that does all work in one pass resolves with no number. If a part of a
   * full pass fails (`PartialFailure`), the next pass follows within a second.
   */
  runOnce(deps: DispatcherDeps): Promise<unknown>;
}

const rowsAtOnce = 500;

/** Background jobs without a memory. */
const statelessJobs: readonly BackgroundJob[] = [
  // Renews the breaker states that the admin API shows.
  { name: 'breakers', pauseMs: 2000, runOnce: ({ breakers }) => breakers.maintain() },
  // Creates the pushes of recurring pushes within 1 s of their times.
  { name: 'recurring pushes', pauseMs: 500, runOnce: (deps) => startRecurring(deps, rowsAtOnce) },
  // Closes settled pushes that were not closed with their last batch.
  { name: 'reaper', pauseMs: 2000, runOnce: closeSettledPushes },
  // Resumes paused pushes that have expired, so that their recipients are counted
  // (protocol/delivery.md#promise-2).
  { name: 'pause ender', pauseMs: 2000, runOnce: (deps) => resumeExpiredPushes(deps, rowsAtOnce) },
  // Continues the pushes that a freeze has held.
  { name: 'freeze ender', pauseMs: 500, runOnce: (deps) => endFreezes(deps, rowsAtOnce) },
  // Deletes rows after their retention.
  { name: 'cleaner', pauseMs: minuteMs, runOnce: (deps) => cleanOnce(deps, rowsAtOnce) },
  // Deletes expired codes, captchas, links and messages.
  {
    name: 'verification cleaner',
    pauseMs: minuteMs,
    runOnce: ({ db, clock }) => cleanVerification(db, clock.now(), rowsAtOnce),
  },
  // Deletes idle installations in small statements. Pushes skip an installation as soon as it is
  // idle.
  {
    name: 'idle installations',
    pauseMs: 10 * minuteMs,
    runOnce: (deps) => deleteIdle(deps, rowsAtOnce),
  },
  // Merges installations of the same device.
  {
    name: 'device merger',
    pauseMs: 10 * minuteMs,
    runOnce: (deps) => mergeDevices(deps, rowsAtOnce),
  },
  // Encrypts platform secrets that older versions stored in plain text.
  {
    name: 'token sealer',
    pauseMs: 10 * minuteMs,
    runOnce: ({ db, vault }) => sealAuthDataOfOldRows(db, vault, rowsAtOnce),
  },
  // Encrypts values under the first key of CARILLON_SECRET while a rotation is requested.
  { name: 'secret rotation', pauseMs: 1000, runOnce: rotateForAWhile },
  // Promotes and ends canaries of credentials by their age.
  { name: 'credential canaries', pauseMs: 15_000, runOnce: reviewCanaries },
  // Updates which endpoints of webhooks are full, and counts the events that were dropped.
  { name: 'webhook limits', pauseMs: 2000, runOnce: ({ webhooks }) => webhooks.maintain() },
  // Runs ANALYZE on tables that have grown, before autovacuum does.
  { name: 'statistics', pauseMs: 2000, runOnce: ({ db }) => analyzeGrownTables(db) },
  // Writes the gateway usage of the last second.
  { name: 'gateway usage', pauseMs: 1000, runOnce: ({ gatewayUsage }) => gatewayUsage.flush() },
  // Computes totals by day.
  { name: 'reports', pauseMs: minuteMs, runOnce: computeReports },
];

/** Creates the background jobs of one dispatcher. */
export function openBackgroundJobs(): BackgroundJob[] {
  const scheduler = new Scheduler();
  const keeper = new JobKeeper();
  const inboxLimit = new InboxLimit();
  const reader = new AccountReader();
  return [
    ...statelessJobs,
    // Fires scheduled pushes within 1 s of their time (protocol/delivery.md#promise-8).
    {
      name: 'scheduler',
      get pauseMs() {
        return scheduler.pauseMs;
      },
      runOnce: (deps) => scheduler.fireDue(deps, rowsAtOnce),
    },
    // Gives jobs to open pushes and batches that have lost their job.
    { name: 'job keeper', pauseMs: 15_000, runOnce: (deps) => keeper.run(deps) },
    // Keeps the inboxes of devices within their limit.
    { name: 'inbox limit', pauseMs: 5000, runOnce: (deps) => inboxLimit.run(deps) },
    // Reads caps, quotas and the expiry of credentials for the metrics of all processes.
    { name: 'account reading', pauseMs: 15_000, runOnce: (deps) => reader.run(deps) },
  ];
}

/**
 * Interval of warnings about a background job that keeps failing. The scheduler runs at least twice
 * a second.
 */
const warnEveryMs = 30_000;

/**
 * Maximum pause after a full pass of which a part failed, in ms. A large app or table must not have
 * to wait for one that keeps failing.
 */
const partialPauseMs = 1000;

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
    let pauseMs: number | undefined;
    try {
      let rows = rowsAtOnce;
      while (!signal.aborted && rows >= rowsAtOnce) {
        const done = await job.runOnce(deps);
        rows = typeof done === 'number' ? done : 0;
        metrics.backgroundJobRows.inc(labels, rows);
      }
      metrics.backgroundJobLastSuccess.set(labels, clock.now() / 1000);
      if (failures > 0) log.info({ duty: job.name, failures }, 'a background job works again');
      failures = 0;
      warnedAtMs = Number.NEGATIVE_INFINITY;
    } catch (caught) {
      const isPartial = caught instanceof PartialFailure;
      const error = isPartial ? caught.cause : caught;
      if (isPartial) metrics.backgroundJobRows.inc(labels, caught.amount);
      if (isPartial && caught.amount >= rowsAtOnce) pauseMs = Math.min(job.pauseMs, partialPauseMs);
      failures += 1;
      metrics.backgroundJobFailures.inc(labels);
      if (clock.monotonicMs() - warnedAtMs >= warnEveryMs) {
        log.warn({ err: error, duty: job.name, failures }, 'a background job failed');
        warnedAtMs = clock.monotonicMs();
      }
    }
    await sleep(pauseMs ?? job.pauseMs, signal);
  }
}
