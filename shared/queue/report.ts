import { z } from 'zod';
import { isDoneWithin } from '../clock.ts';
import { failureKinds } from '../db/limits/database-errors.ts';
import type { Database, Handle } from '../db/pool.ts';
import { query } from '../db/query.ts';
import type { DatabaseReadiness } from '../db/schema/readiness.ts';
import { readStandbyLag } from '../db/standby.ts';
import { countTokenStates } from '../db/tables/console.ts';
import { countKeptTokens } from '../db/tables/invalid-tokens.ts';
import { listWaitingApprovals } from '../db/tables/scheduled-pushes.ts';
import { listWebhookUse } from '../db/tables/webhook-deliveries.ts';
import { planLimits } from '../domain/apps/app.ts';
import type { Metrics } from '../metrics.ts';
import { queueNames } from './jobs.ts';
import type { JobQueue } from './queue.ts';

/**
 * Maximum rows of each kind in a sample. They become metric labels, which must not grow with the
 * number of apps.
 */
const maxRows = 100;
const accountsSample = {
  column: 'accounts',
  nextAt: 'accounts_next_at',
  minIntervalMs: 30_000,
  claimMs: 120_000,
} as const;

const profile = { appId: z.string(), connector: z.string(), profile: z.string() };
/** Day of a use, by the database's clock. Samples of version 0.4 have none. */
const day = z.string().default('');
const accountSample = z.object({
  /** Apps that have used most of their daily cap today (UTC). */
  caps: z.array(z.object({ appId: z.string(), usedRatio: z.number(), day })),
  /**
   * Profiles that have sent most today (time in China). Profiles whose quota is used up come first.
   */
  quotas: z.array(z.object({ ...profile, recipients: z.number(), isUsedUp: z.boolean(), day })),
  /** Credentials that expire first. */
  credentials: z.array(z.object({ ...profile, endsAtMs: z.number() })),
  /**
   * Number of encrypted values that are not encrypted with the first key of CARILLON_SECRET, by
   * column. Empty with a single key.
   */
  oldSecrets: z.record(z.string(), z.number()).default({}),
  /** Rotations of credentials that are open, or that ended within a day. */
  rotations: z.array(z.object({ ...profile, state: z.string() })).default([]),
  /** Number of pushes that wait for the approval of a second person, by app. */
  approvals: z.array(z.object({ appId: z.string(), pushes: z.number() })).default([]),
  /** Number of invalid tokens that pushes of the last day kept, by profile. */
  keptTokens: z.array(z.object({ ...profile, tokens: z.number() })).default([]),
  /** Waiting deliveries of webhooks by owner, and webhooks that the service switched off. */
  webhooks: z
    .array(
      z.object({
        appId: z.string(),
        waiting: z.number(),
        oldestSeconds: z.number(),
        off: z.number(),
      }),
    )
    .default([]),
  /** Number of admin API tokens: valid, expiring within 30 days, expired. */
  tokens: z.record(z.string(), z.number()).default({}),
});

/**
 * A sample of caps, quotas and expiring credentials. It contains the apps that need an operator's
 * attention first.
 */
type AccountSample = z.infer<typeof accountSample>;

/** Quotas and caps of a sample. */
export type UsedQuotas = Pick<AccountSample, 'caps' | 'quotas'>;

/** A profile whose credentials expire. */
export type EndingCredentials = AccountSample['credentials'][number];

/**
 * Takes a sample and stores it for all processes, unless a dispatcher has done so recently. Returns
 * whether it took one. `onRead` runs before the sample is stored.
 */
export const refreshAccountSample = (
  db: Handle,
  read: () => Promise<Pick<AccountSample, 'credentials' | 'oldSecrets'>>,
  onRead: (sample: AccountSample) => Promise<void> = () => Promise.resolve(),
): Promise<boolean> =>
  refreshSample(db, accountsSample, async (): Promise<AccountSample> => {
    const { credentials, oldSecrets } = await read();
    const sample = {
      caps: await readCaps(db),
      quotas: await readQuotas(db),
      credentials: credentials.toSorted((a, b) => a.endsAtMs - b.endsAtMs).slice(0, maxRows),
      oldSecrets,
      rotations: await readRotations(db),
      approvals: await listWaitingApprovals(db, maxRows),
      keptTokens: await countKeptTokens(db, maxRows),
      webhooks: await listWebhookUse(db, maxRows),
      tokens: await countTokenStates(db),
    };
    await onRead(sample);
    return sample;
  });

/** Returns the newest sample. Returns undefined before the first sample. */
export const readAccounts = async (db: Handle): Promise<AccountSample | undefined> =>
  accountSample.safeParse(await query(db).value('SELECT accounts FROM shared_reading')).data;

const readRotations = (db: Handle) =>
  query(db).rows<AccountSample['rotations'][number]>(
    `SELECT app_id AS "appId", connector, name AS profile, state FROM profile_rotation
      WHERE state IN ('staged', 'checked', 'canary') OR changed_at > now() - interval '1 day'
      ORDER BY changed_at DESC LIMIT ${maxRows}`,
  );

const readCaps = (db: Handle) =>
  query(db).rows<AccountSample['caps'][number]>(
    `SELECT app_id AS "appId",
            recipients / greatest(1, coalesce(options ->> 'dailyRecipientCap',
            $1::jsonb -> plan ->> 'dailyRecipientCap')::float8)
              AS "usedRatio", day::text AS day
       FROM usage_day JOIN app USING (app_id)
      WHERE day = (now() AT TIME ZONE 'UTC')::date AND recipients > 0
      ORDER BY "usedRatio" DESC LIMIT ${maxRows}`,
    [JSON.stringify(planLimits)],
  );

const readQuotas = (db: Handle) =>
  query(db).rows<AccountSample['quotas'][number]>(
    `SELECT app_id AS "appId", connector, profile, sum(recipients)::float8 AS recipients,
            bool_or(closed_reason IS NOT NULL) AS "isUsedUp", day::text AS day
       FROM gateway_day WHERE day = (now() AT TIME ZONE 'Asia/Shanghai')::date
      GROUP BY app_id, connector, profile, day ORDER BY "isUsedUp" DESC, recipients DESC
        LIMIT ${maxRows}`,
  );

/** Maximum time that a scrape waits for a sample, in ms. Prometheus gives up after ten seconds. */
const patienceMs = 5000;
/**
 * Age from which a sample in progress counts as lost with its connection, in ms. The timeout of its
 * statements is 30 s.
 */
const lostAfterMs = 60_000;

/**
 * Delay that the scheduler may have by design (protocol/delivery.md#promise-8). A smaller lag is
 * shown as measured. A greater lag grows in the gauge until the next measurement.
 */
const usualLagSeconds = 1;

/** Samples that the gauges of a process show. */
interface ScrapeState {
  /**
   * When the sample of queues and pushes was taken. Before the first sample, when the first scrape
   * came (monotonic ms).
   */
  madeAtMs: number;
  /** The sample in progress, and when it began (monotonic ms). */
  pending: { ended: Promise<void>; atMs: number } | undefined;
}

const scrapeStates = new WeakMap<Metrics, ScrapeState>();

/**
 * Updates the gauges of queues and open pushes for a scrape. If the database is unavailable or a
 * sample hangs, the gauges keep their values, and their age grows. A process takes one sample at a
 * time. Scrapes wait for it until it has run for `waitMs`.
 */
export async function reportQueues(
  db: Handle,
  queue: JobQueue,
  metrics: Metrics,
  waitMs = patienceMs,
): Promise<void> {
  const state = scrapeStates.get(metrics) ?? { madeAtMs: performance.now(), pending: undefined };
  scrapeStates.set(metrics, state);
  const nowMs = performance.now();
  if (state.pending === undefined || nowMs - state.pending.atMs > lostAfterMs) {
    const begun = { atMs: nowMs, ended: readAll(db, queue, metrics) };
    state.pending = begun;
    void begun.ended.then(() => {
      if (state.pending === begun) state.pending = undefined;
    });
  }
  const { ended, atMs } = state.pending;
  await waitForPart(ended, Math.max(0, atMs + waitMs - nowMs));
  metrics.sharedSampleAge.set((performance.now() - state.madeAtMs) / 1000);
}

/** Never rejects. */
async function readAll(db: Handle, queue: JobQueue, metrics: Metrics): Promise<void> {
  const aged = await readSharedState(db, queue).catch(() => undefined);
  if (aged) recordSharedState(metrics, aged);
  const accounts = await readAccounts(db).catch(() => undefined);
  if (accounts) recordAccounts(metrics, accounts);
}

/** Sets the gauges of apps and profiles. Removes the gauges that are not in the sample. */
function recordAccounts(metrics: Metrics, accounts: AccountSample): void {
  for (const gauge of [
    metrics.capUsed,
    metrics.quotaUsedUp,
    metrics.gatewayDayRecipients,
    metrics.credentialExpiry,
    metrics.oldSecretValues,
    metrics.profileRotations,
    metrics.approvalsWaiting,
    metrics.consoleTokens,
    metrics.keptTokens,
    metrics.webhookWaiting,
    metrics.webhookOldestSeconds,
    metrics.webhooksOff,
  ])
    gauge.reset();
  for (const { appId, usedRatio } of accounts.caps) metrics.capUsed.set({ app: appId }, usedRatio);
  for (const { appId, connector, profile, recipients, isUsedUp } of accounts.quotas) {
    const labels = { connector, app: appId, profile };
    metrics.gatewayDayRecipients.set(labels, recipients);
    metrics.quotaUsedUp.set(labels, isUsedUp ? 1 : 0);
  }
  for (const { appId, connector, profile, endsAtMs } of accounts.credentials)
    metrics.credentialExpiry.set({ connector, app: appId, profile }, endsAtMs / 1000);
  for (const { appId, connector, profile, state } of accounts.rotations)
    metrics.profileRotations.set({ connector, app: appId, profile, state }, 1);
  for (const [column, values] of Object.entries(accounts.oldSecrets))
    metrics.oldSecretValues.set({ column }, values);
  for (const { appId, connector, profile, tokens } of accounts.keptTokens)
    metrics.keptTokens.set({ connector, app: appId, profile }, tokens);
  for (const { appId: app, waiting, oldestSeconds, off } of accounts.webhooks) {
    metrics.webhookWaiting.set({ app }, waiting);
    metrics.webhookOldestSeconds.set({ app }, oldestSeconds);
    metrics.webhooksOff.set({ app }, off);
  }
  for (const { appId, pushes } of accounts.approvals)
    metrics.approvalsWaiting.set({ app: appId }, pushes);
  for (const [state, n] of Object.entries(accounts.tokens)) metrics.consoleTokens.set({ state }, n);
}

/** Sets the gauges of the shared state. A queue that is not in the sample is empty. */
function recordSharedState(metrics: Metrics, { reading, ageSeconds }: AgedSample): void {
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
  metrics.pushOldestOpen.set(
    Math.max(0, ...working.map(({ oldestSeconds }) => oldestSeconds + ageSeconds)),
  );
  metrics.scheduledPushes.set(reading.scheduled.count);
  const { lateSeconds } = reading.scheduled;
  metrics.scheduledLag.set(lateSeconds > usualLagSeconds ? lateSeconds + ageSeconds : lateSeconds);
  const scrapeState = scrapeStates.get(metrics);
  if (scrapeState) scrapeState.madeAtMs = performance.now() - ageSeconds * 1000;
}

/** Databases of a process, and what their gauges need. */
interface ReportedDatabases {
  databases: readonly Database[];
  readiness: DatabaseReadiness;
}

/**
 * Maximum time that a scrape waits for each other part that reads a database, in ms. Together with
 * `patienceMs` it is less than the ten seconds of Prometheus.
 */
const partPatienceMs = 1000;

/**
 * Waits for a part of a scrape, for a limited time. Never rejects. A server that was lost without
 * closing its connections would otherwise delay the other metrics for minutes.
 */
export async function waitForPart(
  part: Promise<unknown>,
  maxMs: number = partPatienceMs,
): Promise<void> {
  await isDoneWithin(
    part.catch(() => undefined),
    maxMs,
  );
}

/** Updates the metrics of connections, failed statements and the schema for a scrape. */
export async function reportDatabases(
  { databases, readiness }: ReportedDatabases,
  metrics: Metrics,
): Promise<void> {
  // If nothing probes /readyz, this is the only check of the schema in a running process.
  await waitForPart(readiness.hint());
  for (const database of databases) {
    const { name, ...use } = database.use;
    const pool = name.replace(/^carillon /, '');
    metrics.poolWaitSeconds.add(pool, database.takeWaits());
    for (const [state, value] of Object.entries(use))
      metrics.poolConnections.set({ pool, state }, value);
    const failures = database.takeFailures();
    for (const kind of failureKinds) metrics.databaseErrors.inc({ kind }, failures[kind] ?? 0);
  }
  metrics.schemaPending.set(readiness.skew.pending);
  metrics.schemaNewer.set(readiness.skew.newer);
}

/** Updates the lag of the standby for a scrape; 0 without a standby. */
export async function reportStandby(
  primary: Database,
  standby: Database,
  metrics: Metrics,
): Promise<void> {
  if (primary.url === standby.url) return;
  metrics.standbyLag.set(await readStandbyLag(standby));
}

/**
 * Pause after a sample, as a multiple of its duration: a sample that took 1 s is repeated after 20
 * s. This limits the load of all processes together.
 */
const pausePerDuration = 20;

/** A kind of sample: its columns in the table `shared_reading`, and how often it is taken. */
interface SampleKind {
  column: 'reading' | 'accounts';
  nextAt: 'next_at' | 'accounts_next_at';
  /** Minimum time between two samples of all processes. */
  minIntervalMs: number;
  /**
   * Time after which another process takes the sample, if the first process has not finished it.
   */
  claimMs: number;
}

/**
 * Takes a sample and stores it for all processes, unless a process has done so recently. One
 * process at a time does this. The longer a sample takes, the rarer it is. Returns whether it took
 * one.
 */
async function refreshSample(
  db: Handle,
  { column, nextAt, minIntervalMs, claimMs }: SampleKind,
  read: () => Promise<object>,
): Promise<boolean> {
  const startedAtMs = performance.now();
  const isClaimed = await query(db).hasRows(
    `INSERT INTO shared_reading AS r (id, next_at, accounts_next_at)
     VALUES (true, clock_timestamp() + $1 * interval '1 ms',
       clock_timestamp() + $2 * interval '1 ms')
     ON CONFLICT (id) DO UPDATE SET ${nextAt} = excluded.${nextAt}
           WHERE r.${nextAt} IS NULL OR r.${nextAt} <= clock_timestamp()`,
    nextAt === 'next_at' ? [claimMs, 0] : [0, claimMs],
  );
  if (!isClaimed) return false;
  const reading = await read();
  const restMs = Math.max(minIntervalMs, (performance.now() - startedAtMs) * pausePerDuration);
  const readAt = column === 'reading' ? 'read_at = clock_timestamp(),' : '';
  await db.query(
    `UPDATE shared_reading
      SET ${column} = $1, ${readAt} ${nextAt} = clock_timestamp() + $2 * interval '1 ms'`,
    [JSON.stringify(reading), restMs],
  );
  return true;
}

const count = z.number();
const sharedSample = z.object({
  queues: z.array(
    z.object({
      queue: z.string(),
      ready: count,
      waiting: count,
      active: count,
      oldestSeconds: count,
    }),
  ),
  pushes: z.array(z.object({ state: z.string(), count, oldestSeconds: count })),
  scheduled: z.object({ count, lateSeconds: count }),
});

/** State of the queues and of open pushes. All processes share the sample. */
export type SharedSample = z.infer<typeof sharedSample>;

/** A sample and its age. */
export interface AgedSample {
  reading: SharedSample;
  ageSeconds: number;
}

const stateSample = {
  column: 'reading',
  nextAt: 'next_at',
  minIntervalMs: 25,
  claimMs: 10_000,
} as const;

/**
 * Returns the newest sample, and undefined before the first one. The larger the queue, the rarer
 * the sample: counting a million jobs takes a second of CPU time, and Prometheus scrapes every
 * process.
 */
export async function readSharedState(
  db: Handle,
  queue: JobQueue,
): Promise<AgedSample | undefined> {
  await refreshSample(db, stateSample, async () => ({
    queues: await queue.states(),
    pushes: await readOpenPushes(db),
    scheduled: await readScheduled(db),
  }));
  const row = await query(db).row<{ reading: unknown; age: number }>(
    `SELECT reading, extract(epoch FROM clock_timestamp() - read_at)::float8 AS age
       FROM shared_reading WHERE reading IS NOT NULL`,
  );
  const parsed = sharedSample.safeParse(row?.reading);
  return parsed.success && row ? { reading: parsed.data, ageSeconds: row.age } : undefined;
}

const readOpenPushes = (db: Handle) =>
  query(db).rows<SharedSample['pushes'][number]>(
    `SELECT state, count(*) AS count,
            greatest(0, extract(epoch
            FROM now() - min(coalesce(push_time, created_at))))::float8 AS "oldestSeconds"
       FROM notification WHERE state IN ('queued', 'sending', 'paused') GROUP BY state`,
  );

const readScheduled = (db: Handle) =>
  query(db).one<SharedSample['scheduled']>(
    `SELECT count(*) AS count,
            coalesce(greatest(0, extract(epoch FROM now() - min(push_time))),
            0)::float8 AS "lateSeconds"
       FROM scheduled_push`,
  );
