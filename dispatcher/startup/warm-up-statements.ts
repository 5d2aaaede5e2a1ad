import { randomUUID } from 'node:crypto';
import type { Clock } from '../../shared/clock.ts';
import type { Vault } from '../../shared/crypto.ts';
import { AppCache } from '../../shared/db/app-cache.ts';
import type { Handle } from '../../shared/db/pool.ts';
import { listFreezes } from '../../shared/db/tables/apps/freezes.ts';
import { readBreakerOverrides } from '../../shared/db/tables/gateways/breakers.ts';
import { findBatchesWithoutJob, lockBatch } from '../../shared/db/tables/pushes/batches.ts';
import { advancePlanning, countOpenPushes } from '../../shared/db/tables/pushes/progress.ts';
import { loadRecipients } from '../../shared/db/tables/pushes/recipients.ts';
import { targetPageQuery } from '../../shared/query/targets/targets.ts';
import { deliverJob } from '../../shared/queue/jobs.ts';
import { highestPriority } from '../../shared/queue/queue-sql.ts';
import type { DispatcherDeps } from '../deps.ts';
import { pageSize } from '../planning/pages.ts';

/** A push and a batch that do not exist. */
const none = { appId: '', id: 0, batchId: 0 };

/**
 * Runs the statements of planning and of a batch that `BatchedQueries` does not have, for a push that does not exist: PostgreSQL then has its tables in the
 * connection's caches.
 */
export async function runPushStatements(
  connection: Handle,
  { queue, vault, clock }: Pick<DispatcherDeps, 'queue' | 'vault' | 'clock'>,
): Promise<void> {
  const { appId, id } = none;
  const kind = deliverJob('apns');
  const noJob = { id: randomUUID(), retryCount: 0 };
  await listFreezes(connection);
  await readBreakerOverrides(connection);
  await readApp(connection, vault, clock);
  await findBatchesWithoutJob(connection, appId, id);
  await withinTransaction(connection, async () => {
    await advancePlanning(connection, none, { from: 0, through: 0, devices: 0, isLast: false });
    await highestPriority(connection, kind);
    await countOpenPushes(connection, appId);
  });
  const job = { ...noJob, data: { appId, pushId: id, batchId: none.batchId } };
  await withinTransaction(connection, async () => {
    await lockBatch(connection, appId, none.batchId);
    await queue.end(kind, job, connection);
  });
}

/** Reads an app that does not exist, and its profiles, as the first batch of a push does in its thread. */
export async function readApp(connection: Handle, vault: Vault, clock: Clock): Promise<void> {
  const cache = new AppCache(connection, vault, clock);
  await cache.app(none.appId);
  await cache.profiles(none.appId);
}

/** Runs statements that change nothing. Rolls back, so that a failed one leaves no transaction open in its connection. */
async function withinTransaction(connection: Handle, work: () => Promise<unknown>): Promise<void> {
  await connection.query('BEGIN');
  await work().finally(() => connection.query('ROLLBACK'));
}

/** Reads the targets of such a push. */
export async function runScanStatements(connection: Handle): Promise<void> {
  const app = { appId: none.appId, options: { installationValidityDays: 1 } };
  const target = { kind: 'query', where: {}, channels: null } as const;
  const order = { ...noContent, target };
  const { text, values } = targetPageQuery(app, order, { afterId: 0, nowMs: 0, size: pageSize });
  await connection.query(text, values);
  await loadRecipients(connection, [none], 'deviceToken');
}

const noContent = {
  data: {},
  prod: 'prod',
  topic: null,
  teamId: null,
  flowControl: null,
  notificationChannel: null,
} as const;
