import { sleep } from '../clock.ts';
import { failureKinds } from '../db/limits/database-errors.ts';
import type { Database, Handle } from '../db/pool.ts';
import type { DatabaseReadiness } from '../db/schema/readiness.ts';
import { readStandbyLag } from '../db/standby.ts';
import type { Metrics } from '../metrics.ts';
import { type AccountReading, readAccounts } from './account-reading.ts';
import { queueNames } from './jobs.ts';
import type { JobQueue } from './queue.ts';
import { type AgedReading, readSharedState } from './shared-reading.ts';

/** Time that scrapes wait for a reading; Prometheus gives up after ten seconds. */
const patienceMs = 5000;
/** Age from which a reading counts as lost with its connection: the time limit of its statements is 30 s. */
const lostAfterMs = 60_000;

/**
 * Lag with which scheduled pushes fire (protocol/delivery.md#promise-8): while many are due, one is always late by a part of
 * it, and it has fired soon after the reading. Only a greater lag goes on growing until the next reading.
 */
const usualLagSeconds = 1;

/** Readings that the gauges of a process show. */
interface Shown {
  /** When the reading of queues and pushes was made, or the first scrape before that; monotonic. */
  madeAtMs: number;
  /** Reading that has not ended, and when it began; monotonic. */
  pending: { ended: Promise<void>; atMs: number } | undefined;
}

const shownBy = new WeakMap<Metrics, Shown>();

/**
 * Updates the gauges of queues and open pushes for a scrape. Without a database, or while a reading hangs, they keep their
 * values and their age grows. A process has one reading at a time, for which scrapes wait until it is `waitMs` old.
 */
export async function reportQueues(
  db: Handle,
  queue: JobQueue,
  metrics: Metrics,
  waitMs = patienceMs,
): Promise<void> {
  const shown = shownBy.get(metrics) ?? { madeAtMs: performance.now(), pending: undefined };
  shownBy.set(metrics, shown);
  const nowMs = performance.now();
  if (shown.pending === undefined || nowMs - shown.pending.atMs > lostAfterMs) {
    const begun = { atMs: nowMs, ended: readAll(db, queue, metrics) };
    shown.pending = begun;
    void begun.ended.then(() => {
      if (shown.pending === begun) shown.pending = undefined;
    });
  }
  const { ended, atMs } = shown.pending;
  const waited = new AbortController();
  await Promise.race([ended, sleep(Math.max(0, atMs + waitMs - nowMs), waited.signal)]);
  waited.abort();
  metrics.sharedReadingAge.set((performance.now() - shown.madeAtMs) / 1000);
}

/** Never rejects. */
async function readAll(db: Handle, queue: JobQueue, metrics: Metrics): Promise<void> {
  const aged = await readSharedState(db, queue).catch(() => undefined);
  if (aged) recordSharedState(metrics, aged);
  const accounts = await readAccounts(db).catch(() => undefined);
  if (accounts) recordAccounts(metrics, accounts);
}

/** Sets the gauges of apps and profiles; those that are no longer in the reading disappear. */
function recordAccounts(metrics: Metrics, accounts: AccountReading): void {
  const { capUsed, quotaUsedUp, gatewayDayRecipients, credentialExpiry, oldSecretValues, profileRotations } =
    metrics;
  for (const gauge of [
    capUsed,
    quotaUsedUp,
    gatewayDayRecipients,
    credentialExpiry,
    oldSecretValues,
    profileRotations,
    metrics.approvalsWaiting,
    metrics.consoleTokens,
    metrics.keptTokens,
  ])
    gauge.reset();
  for (const { appId, usedRatio } of accounts.caps) capUsed.set({ app: appId }, usedRatio);
  for (const { appId, connector, profile, recipients, isUsedUp } of accounts.quotas) {
    const labels = { connector, app: appId, profile };
    gatewayDayRecipients.set(labels, recipients);
    quotaUsedUp.set(labels, isUsedUp ? 1 : 0);
  }
  for (const { appId, connector, profile, endsAtMs } of accounts.credentials)
    credentialExpiry.set({ connector, app: appId, profile }, endsAtMs / 1000);
  for (const { appId, connector, profile, state } of accounts.rotations)
    profileRotations.set({ connector, app: appId, profile, state }, 1);
  for (const [column, values] of Object.entries(accounts.oldSecrets)) oldSecretValues.set({ column }, values);
  for (const { appId, connector, profile, tokens } of accounts.keptTokens)
    metrics.keptTokens.set({ connector, app: appId, profile }, tokens);
  for (const { appId, pushes } of accounts.approvals) metrics.approvalsWaiting.set({ app: appId }, pushes);
  for (const [state, n] of Object.entries(accounts.tokens)) metrics.consoleTokens.set({ state }, n);
}

/** Sets the gauges of shared state; a queue that is absent from the reading is empty. */
function recordSharedState(metrics: Metrics, { reading, ageSeconds }: AgedReading): void {
  const states = new Map(reading.queues.map((state) => [state.queue, state]));
  for (const queue of queueNames) {
    const { ready = 0, waiting = 0, active = 0, oldestSeconds = 0 } = states.get(queue) ?? {};
    metrics.queueDepth.set({ queue }, ready);
    metrics.queueOldestSeconds.set({ queue }, ready > 0 ? oldestSeconds + ageSeconds : 0);
    metrics.queueJobs.set({ queue, state: 'ready' }, ready);
    metrics.queueJobs.set({ queue, state: 'delayed' }, waiting);
    metrics.queueJobs.set({ queue, state: 'active' }, active);
  }
  const counts = new Map(reading.pushes.map(({ state, count }) => [state, count]));
  for (const state of ['queued', 'sending', 'paused'])
    metrics.pushesOpen.set({ state }, counts.get(state) ?? 0);
  const working = reading.pushes.filter(({ state }) => state !== 'paused');
  metrics.pushOldestOpen.set(Math.max(0, ...working.map(({ oldestSeconds }) => oldestSeconds + ageSeconds)));
  metrics.scheduledPushes.set(reading.scheduled.count);
  const { lateSeconds } = reading.scheduled;
  metrics.scheduledLag.set(lateSeconds > usualLagSeconds ? lateSeconds + ageSeconds : lateSeconds);
  const shown = shownBy.get(metrics);
  if (shown) shown.madeAtMs = performance.now() - ageSeconds * 1000;
}

/** Databases of a process, and what their gauges need. */
interface ReportedDatabases {
  databases: readonly Database[];
  readiness: DatabaseReadiness;
}

/** Updates the metrics of connections, failed statements and the schema for a scrape. */
export async function reportDatabases(
  { databases, readiness }: ReportedDatabases,
  metrics: Metrics,
): Promise<void> {
  // Without probes of /readyz nothing else checks the schema of a running process.
  await readiness.hint().catch(() => undefined);
  for (const database of databases) {
    const { name, ...use } = database.use;
    const pool = name.replace(/^carillon /, '');
    metrics.poolWaitSeconds.add(pool, database.takeWaits());
    for (const [state, value] of Object.entries(use)) metrics.poolConnections.set({ pool, state }, value);
    const failures = database.takeFailures();
    for (const kind of failureKinds) metrics.databaseErrors.inc({ kind }, failures[kind] ?? 0);
  }
  metrics.schemaPending.set(readiness.skew.pending);
  metrics.schemaNewer.set(readiness.skew.newer);
}

/** Updates the lag of the standby for a scrape; 0 without a standby. */
export async function reportStandby(primary: Database, standby: Database, metrics: Metrics): Promise<void> {
  if (primary.url === standby.url) return;
  metrics.standbyLag.set(await readStandbyLag(standby));
}
