/**
 * Batches of no push that a fresh thread sends to a gateway in its own process (connectors/trial/gateway.ts), so that its code is
 * compiled before the first push. Nothing is written to the database.
 */
import { generateKeyPairSync } from 'node:crypto';
import type { TrialGateway } from '../../connectors/trial/gateway.ts';
import { hourMs } from '../../shared/clock.ts';
import type { StoredProfile } from '../../shared/db/tables/apps/profiles.ts';
import {
  findTrialBatch,
  loadTrialRecipients,
  trial,
} from '../../shared/db/tables/processes/trial-batches.ts';
import type { Push } from '../../shared/domain/pushes/record.ts';
import { BatchSender, type BatchSenderDeps } from './batch-sender.ts';
import { InFlightBatch } from './in-flight-batch.ts';
import { SenderCache, type SenderCacheOptions } from './sender-cache.ts';

/**
 * Executions of a prepared statement for which PostgreSQL makes a plan of its own. The next one makes the plan that the
 * connection keeps: it belongs to a push, since the tables may be empty before.
 */
export const customPlans = 5;

/** Does `work` several times, one after the other. */
export async function repeat(times: number, work: () => Promise<void>): Promise<void> {
  for (let i = 0; i < times; i += 1) await work();
}

/** Trial pushes, and the recipients of their batches: as planning makes them at the beginning of a push. */
const pushes = 4;
const batchSizes = [1000, 2500, 2500];
/** Longest time that the trial pushes take. */
const totalMs = 3000;

type TrialDeps = Omit<BatchSenderDeps, 'senders' | 'appCache'> &
  Pick<SenderCacheOptions, 'vault' | 'publicUrl'>;

/**
 * Sends trial pushes until the time is over or `isOver`, or one of them fails. Each has a sender of its own, since
 * the code for the beginning of a connection would otherwise run once.
 */
export async function sendTrialPushes(
  deps: TrialDeps,
  gateway: TrialGateway,
  isOver: () => boolean,
): Promise<void> {
  const { clock } = deps;
  const endsAtMs = clock.monotonicMs() + totalMs;
  for (let i = 0; i < pushes; i += 1) {
    const profile = profileOf(gateway);
    const appCache = { app: async () => undefined, profiles: async () => [profile] };
    const senders = new SenderCache({ ...deps, appCache });
    try {
      for (const size of batchSizes) {
        if (isOver() || clock.monotonicMs() > endsAtMs) return;
        if (!(await sendTrialBatch({ ...deps, appCache, senders }, size))) return;
      }
    } finally {
      await senders.close();
    }
  }
}

/** Returns whether the gateway took every request. */
async function sendTrialBatch(deps: BatchSenderDeps, size: number): Promise<boolean> {
  const push = trialPush(deps.clock.now());
  const load = async () => {
    const [batch, groups] = await Promise.all([
      findTrialBatch(deps.db, size),
      loadTrialRecipients(deps.db, size),
    ]);
    return { batch, groups, push };
  };
  const { appId, connector } = trial;
  const progressMemory = new InFlightBatch().memory;
  const task = { appId, pushId: push.id, batchId: 0, connector, progressMemory };
  const { health } = await new BatchSender({ ...deps, load }, task).run();
  return health.asked === size && health.failed === 0;
}

function profileOf({ endpoint, ca }: TrialGateway): StoredProfile {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    connector: trial.connector,
    name: trial.profile,
    updatedAt: new Date(0),
    credentials: {
      auth: 'token',
      teamId: 'TRIALTRIAL',
      keyId: 'TRIALTRIAL',
      privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }),
      topics: [trial.topic],
      ca,
      endpoint,
    },
  };
}

function trialPush(nowMs: number): Push {
  const at = new Date(nowMs);
  return {
    appId: trial.appId,
    id: 0,
    objectId: '0123456789abcdef',
    notificationId: '0123456789abcdef',
    state: 'sending',
    error: null,
    pushOrder: {
      data: { alert: 'Trial' },
      target: { kind: 'query', where: {}, channels: null },
      prod: 'prod',
      topic: null,
      teamId: null,
      flowControl: null,
      notificationChannel: null,
    },
    fromService: '',
    createdBy: null,
    createdToken: null,
    pushTime: at,
    expiresAt: new Date(nowMs + hourMs),
    plannedThrough: 0,
    isPlanned: false,
    devices: 0,
    totals: null,
    acked: 0,
    repeats: 0,
    redriven: 0,
    quietWaits: 0,
    keptTokens: [],
    displaced: 0,
    profileErrors: {},
    createdAt: at,
    updatedAt: at,
    firstSentAt: null,
    finishedAt: null,
  };
}
