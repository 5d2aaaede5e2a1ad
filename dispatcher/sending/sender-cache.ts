import type {
  Connector,
  DayQuota,
  GatewayCall,
  MessageStore,
  Sender,
  SenderContext,
  TokenStore,
} from '../../connectors/contract/connector.ts';
import { connectors } from '../../connectors/registry.ts';
import { type Clock, isDoneWithin } from '../../shared/clock.ts';
import { SealError, type Vault } from '../../shared/crypto.ts';
import type { AppCache } from '../../shared/db/app-cache.ts';
import type { Database } from '../../shared/db/pool.ts';
import { enqueueMessage } from '../../shared/db/tables/channel-enqueue.ts';
import {
  closeClass,
  closedReason,
  type ProfileKey,
} from '../../shared/db/tables/gateway-limits.ts';
import {
  claimGatewayToken,
  readGatewayToken,
  releaseGatewayToken,
  saveGatewayToken,
} from '../../shared/db/tables/gateways.ts';
import { deleteWaitingMessages } from '../../shared/db/tables/recalls.ts';
import type { RecentProfile } from '../../shared/db/tables/recipients.ts';
import type { BreakerKey } from '../../shared/domain/breaker.ts';
import { type ConnectorId, isConnectorId } from '../../shared/domain/labels.ts';
import { reason, reasonText } from '../../shared/domain/reasons.ts';
import { callbackUrl } from '../../shared/http/outbound-addresses.ts';
import type { ThreadMetrics } from '../../shared/metrics.ts';
import { addDuration, noDurations } from '../../shared/process/operation-metrics.ts';
import { CanaryBatches, CanarySender } from './canary.ts';
import type { CallCount, DeliverResult } from './task.ts';

/** A sender that is unused for this time is closed. */
const idleMs = 10 * 60_000;

/** Maximum wait for a connection while threads are prepared. */
const connectMs = 2000;

type TransportFact = Parameters<NonNullable<SenderContext['onTransport']>>[0];

interface Entry {
  connector: ConnectorId;
  sender: Sender;
  /** Version of the profile with which the sender was opened. */
  version: string;
  usedAtMs: number;
  users: number;
}

export interface SenderCacheOptions {
  db: Database;
  appCache: Pick<AppCache, 'app' | 'profiles'>;
  clock: Clock;
  vault: Vault;
  /** PUBLIC_URL. Gateways send delivery receipts to it. */
  publicUrl: string;
  metrics: ThreadMetrics;
}

/** One version of a profile, with everything that opening its sender needs. */
interface OpenProfile {
  connector: Connector;
  /** Credentials in their stored form. */
  credentials: unknown;
  version: string;
  /** Option `receiptUrlGeneration` of the app. */
  receiptGeneration: number;
  /** Candidate version of the credentials, which some batches try. */
  canary?: { credentials: unknown; stagedAt: Date } | undefined;
}

const keyOf = ({ appId, connector, profile }: BreakerKey) =>
  JSON.stringify([appId, connector, profile]);

/** A sender in use. The holder releases it at the end of the batch. */
export interface Lease {
  sender: Sender;
  connector: Connector;
  /**
   * Records the answers of a batch that was sent with a candidate version. Absent for other
   * batches.
   */
  settle?(): Promise<void>;
  release(): void;
}

/**
 * Long-lived senders of this thread, one per app, connector and profile. If a profile changes, it
 * gets a new sender, and the old sender is closed after its last batch.
 */
export class SenderCache {
  readonly #options: SenderCacheOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #calls = new Map<string, CallLog>();
  readonly #canaries: CanaryBatches;
  readonly #closer: NodeJS.Timeout;

  constructor(options: SenderCacheOptions) {
    this.#options = options;
    this.#canaries = new CanaryBatches(options.db, options.clock);
    this.#closer = setInterval(() => this.#closeIdle(), idleMs / 10).unref();
  }

  /**
   * Returns a sender for a batch. If the profile has no usable sender, returns the reason as a hint
   * for the operator.
   */
  async lease(key: BreakerKey): Promise<Lease | string> {
    const profile = await this.#find(key);
    if (typeof profile === 'string') return profile;
    const current = this.#take(key, profile);
    if (typeof current === 'string' || !profile.canary) return current;
    const { credentials, stagedAt } = profile.canary;
    const canary = { appId: key.appId, connector: key.connector, name: key.profile, stagedAt };
    if (!(await this.#canaries.takesNext(canary))) return current;
    const version = `${stagedAt.getTime()} ${profile.receiptGeneration}`;
    const candidate = this.#take(key, { ...profile, credentials, version }, 'candidate');
    if (typeof candidate === 'string') return current;
    const sender = new CanarySender(candidate.sender, current.sender);
    return {
      sender,
      connector: current.connector,
      settle: () => this.#canaries.record(canary, sender.answers),
      release() {
        candidate.release();
        current.release();
      },
    };
  }

  /** Reads the current version of a profile. */
  async #find({ appId, connector: id, profile: name }: BreakerKey): Promise<OpenProfile | string> {
    const connector = connectors.get(id);
    if (!connector) return reason('notOnThisServer', { connector: id });
    // The device channel needs no credentials.
    if (connector.tokenField === 'installationId')
      return { connector, credentials: {}, version: '', receiptGeneration: 0 };
    const { appCache } = this.#options;
    const [app, profiles] = await Promise.all([appCache.app(appId), appCache.profiles(appId)]);
    const found = profiles.find((one) => one.connector === id && one.name === name);
    if (!found) return `the ${id} profile ${name} was deleted`;
    const { credentials, canary } = found;
    const receiptGeneration = app?.options.receiptUrlGeneration ?? 0;
    const version = `${found.updatedAt.getTime()} ${receiptGeneration}`;
    return { connector, credentials, version, canary, receiptGeneration };
  }

  /** Returns the sender of one version of a profile. `kind` distinguishes the two versions. */
  #take(key: BreakerKey, profile: OpenProfile, kind = ''): Lease | string {
    const id = keyOf(key) + kind;
    const cached = this.#entries.get(id);
    const entry = cached?.version === profile.version ? cached : this.#open(id, key, profile);
    if (!entry) return `the ${key.connector} profile ${key.profile} has invalid credentials`;
    entry.users += 1;
    entry.usedAtMs = this.#options.clock.monotonicMs();
    const { sender } = entry;
    return { sender, connector: profile.connector, release: () => this.#release(id, entry) };
  }

  /**
   * Loads the app, opens the sender of a profile, renders a message and connects to the gateway.
   * Sends nothing.
   */
  async warmUp({ appId, connector, profile, prod }: RecentProfile): Promise<void> {
    if (!isConnectorId(connector)) return;
    await this.#options.appCache.app(appId);
    const key = { appId, connector, profile };
    const found = await this.#find(key);
    const lease = typeof found === 'string' ? found : this.#take(key, found);
    if (typeof lease === 'string') return;
    const { clock } = this.#options;
    const times = { expiresAtMs: clock.now(), createdAtMs: clock.now() };
    lease.connector.render({ objectId: '', data: { alert: '' }, prod, ...times }, 'ios');
    const connected = lease.sender.warmUp?.({ prod });
    await isDoneWithin(Promise.resolve(connected), connectMs).finally(() => lease.release());
  }

  /** Returns the answers of a profile's gateway since the last call. */
  drainCalls(key: BreakerKey): Calls {
    return (this.#calls.get(keyOf(key)) ?? new CallLog()).drain();
  }

  /** Sets the gauges of HTTP/2 connections and streams. */
  reportTo({ http2Connections, http2Streams }: ThreadMetrics): void {
    http2Connections.reset();
    http2Streams.reset();
    for (const { connector, sender } of this.#entries.values()) {
      const load = sender.load?.();
      if (!load) continue;
      http2Connections.inc({ connector }, load.connections);
      http2Streams.inc({ connector }, load.streams);
    }
  }

  /** Opens a sender. Returns undefined if the credentials do not fit their schema. */
  #open(
    id: string,
    key: BreakerKey,
    { connector, credentials, version, receiptGeneration }: OpenProfile,
  ): Entry | undefined {
    const parsed = connector.credentials.safeParse(credentials);
    if (!parsed.success) return undefined;
    const calls = this.#calls.get(keyOf(key)) ?? new CallLog();
    this.#calls.set(keyOf(key), calls);
    const { clock, db, publicUrl, vault, metrics } = this.#options;
    // The sender keeps these values. `key` may be a whole batch.
    const gateway = { appId: key.appId, connector: key.connector, profile: key.profile };
    const sender = connector.open(parsed.data, {
      clock,
      messageStore: messageStore(db, gateway.appId),
      tokens: tokenStore(db, vault, gateway),
      quota: dayQuota(db, gateway),
      callbackUrl: callbackUrl(publicUrl, vault, { ...gateway, generation: receiptGeneration }),
      onCall: (call) => calls.add(call),
      onTransport: (fact) => countTransport(metrics, connector.id, fact),
    });
    const entry = { connector: connector.id, sender, version, usedAtMs: 0, users: 0 };
    const previous = this.#entries.get(id);
    this.#entries.set(id, entry);
    if (previous?.users === 0) void previous.sender.close();
    return entry;
  }

  #release(key: string, entry: Entry): void {
    entry.users -= 1;
    entry.usedAtMs = this.#options.clock.monotonicMs();
    if (entry.users === 0 && this.#entries.get(key) !== entry) void entry.sender.close();
  }

  /** Closes all senders. None of them may be in use. */
  async close(): Promise<void> {
    clearInterval(this.#closer);
    await Promise.all([...this.#entries.values()].map(({ sender }) => sender.close()));
  }

  #closeIdle(): void {
    const nowMs = this.#options.clock.monotonicMs();
    for (const [key, entry] of this.#entries) {
      if (entry.users > 0 || nowMs - entry.usedAtMs < idleMs) continue;
      this.#entries.delete(key);
      this.#calls.delete(key);
      void entry.sender.close();
    }
  }
}

function countTransport(
  { http2Events, http2RoundTripSeconds }: ThreadMetrics,
  connector: ConnectorId,
  { event, seconds = 0 }: TransportFact,
): void {
  if (event === 'round_trip') http2RoundTripSeconds.observe({ connector }, seconds);
  else http2Events.inc({ connector, event });
}

/** Returns the access tokens of one app and connector, which are stored in the database. */
export function tokenStore(
  db: Database,
  vault: Vault,
  owner: { appId: string; connector: string },
): TokenStore {
  const keyOf = (credential: string) => ({ ...owner, credential });
  return {
    async read(credential) {
      try {
        return await readGatewayToken(db, vault, keyOf(credential));
      } catch (error) {
        // The token was encrypted with a retired key. Treat it as missing.
        if (error instanceof SealError) return null;
        throw error;
      }
    },
    claim: (credential, leaseMs) => claimGatewayToken(db, vault, keyOf(credential), leaseMs),
    keep: (credential, token) => saveGatewayToken(db, vault, keyOf(credential), token),
    release: (credential) => releaseGatewayToken(db, vault, keyOf(credential)),
  };
}

/** Returns the message store of one app for the device channel, which writes to the database. */
export const messageStore = (db: Database, appId: string): MessageStore => ({
  enqueue: async ({ pushId, content, expiresAtMs, recipients }) => {
    await enqueueMessage(db, {
      appId,
      pushId,
      content,
      expiresAt: new Date(expiresAtMs),
      installations: recipients.map(({ id }) => id),
    });
  },
  deleteWaiting: async ({ pushId, recipients }) => {
    const ids = recipients.map(({ id }) => id);
    return new Set(await deleteWaitingMessages(db, { appId, id: pushId }, ids));
  },
});

/** Returns the daily quotas of one profile, which are stored in the database. */
export function dayQuota(db: Database, key: ProfileKey): DayQuota {
  return {
    closed: (messageClass) => closedReason(db, key, messageClass),
    close: (messageClass, reason) => closeClass(db, key, { messageClass, reason }),
  };
}

/** Answers and durations of the requests to one profile's gateway. */
type Calls = Pick<DeliverResult, 'calls' | 'durations'>;

/** Collects the answers of one profile's gateway until the next drain. */
class CallLog {
  #counts = new Map<string, CallCount>();
  /** The entry that was counted last. Nearly all answers are equal, so it saves a search. */
  #last: CallCount | undefined;
  #durations = noDurations();

  add({ status, reason, seconds }: GatewayCall): void {
    addDuration(this.#durations, seconds);
    if (this.#last?.status !== status || this.#last.reason !== reason)
      this.#last = this.#find(status, reason);
    this.#last.count += 1;
  }

  #find(status: number, reason: string): CallCount {
    const key = `${status} ${reason}`;
    const count = this.#counts.get(key) ?? { status, reason, count: 0 };
    this.#counts.set(key, count);
    return count;
  }

  drain(): Calls {
    const calls = [...this.#counts.values()].map((call) => ({
      ...call,
      reason: reasonText(call.reason),
    }));
    const drained = { calls, durations: this.#durations };
    this.#counts = new Map();
    this.#last = undefined;
    this.#durations = noDurations();
    return drained;
  }
}
