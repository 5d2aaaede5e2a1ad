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
import { type Clock, sleep } from '../../shared/clock.ts';
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
import type { ConnectorId } from '../../shared/domain/labels.ts';
import { reason, reasonText } from '../../shared/domain/reasons.ts';
import { callbackUrl } from '../../shared/http/outbound-addresses.ts';
import type { ThreadMetrics } from '../../shared/metrics.ts';
import {
  addDuration,
  type DurationCounts,
  noDurations,
} from '../../shared/process/operation-metrics.ts';
import { type Canary, CanaryBatches, CanarySender } from './canary.ts';
import type { CallCount } from './task.ts';

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

/** Data of a profile that opening a sender needs. */
interface OpenProfile {
  appId: string;
  profile: string;
  /** Credentials in their stored form. */
  credentials: unknown;
  version: string;
  /** Option `receiptUrlGeneration` of the app. */
  receiptGeneration: number;
  /** Candidate version of the credentials, which some batches try. */
  canary?: { credentials: unknown; stagedAt: Date } | undefined;
}

const keyOf = (appId: string, connector: ConnectorId, profile: string) =>
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
  async lease(
    appId: string,
    connectorId: ConnectorId,
    profileName: string,
  ): Promise<Lease | string> {
    const found = await this.#find(appId, connectorId, profileName);
    if (typeof found === 'string') return found;
    const { connector, profile } = found;
    const lease = this.#take(connector, profile);
    if (typeof lease === 'string' || !profile.canary) return lease;
    const { credentials, stagedAt } = profile.canary;
    const canary = { appId, connector: connectorId, name: profileName, stagedAt };
    if (!(await this.#canaries.takesNext(canary))) return lease;
    const candidate = {
      ...profile,
      credentials,
      version: `${stagedAt.getTime()} ${profile.receiptGeneration}`,
    };
    const candidateLease = this.#take(connector, candidate, 'candidate');
    return typeof candidateLease === 'string' ? lease : this.#both(canary, candidateLease, lease);
  }

  /** Combines the senders of a candidate and of the current version. */
  #both(canary: Canary, candidate: Lease, current: Lease): Lease {
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

  async #find(
    appId: string,
    connectorId: ConnectorId,
    profileName: string,
  ): Promise<{ connector: Connector; profile: OpenProfile } | string> {
    const connector = connectors.get(connectorId);
    if (!connector) return reason('notOnThisServer', { connector: connectorId });
    const found = await this.#profile(appId, connector, profileName);
    if (!found) return `the ${connectorId} profile ${profileName} was deleted`;
    return { connector, profile: { ...found, appId, profile: profileName } };
  }

  /** Returns the sender of one version of a profile. `kind` distinguishes the two versions. */
  #take(connector: Connector, profile: OpenProfile, kind = ''): Lease | string {
    const key = keyOf(profile.appId, connector.id, profile.profile) + kind;
    const entry = this.#current(key, profile.version) ?? this.#open(key, connector, profile);
    if (!entry) return `the ${connector.id} profile ${profile.profile} has invalid credentials`;
    entry.users += 1;
    return { sender: entry.sender, connector, release: () => this.#release(key, entry) };
  }

  /**
   * Loads the app, opens the sender of a profile, renders a message and connects to the gateway.
   * Sends nothing.
   */
  async warmUp({ appId, connector, profile, prod }: RecentProfile): Promise<void> {
    const found = [...connectors.keys()].find((id) => id === connector);
    if (!found) return;
    await this.#options.appCache.app(appId);
    const profileFound = await this.#find(appId, found, profile);
    const lease =
      typeof profileFound === 'string'
        ? profileFound
        : this.#take(profileFound.connector, profileFound.profile);
    if (typeof lease === 'string') return;
    const { clock } = this.#options;
    lease.connector.render(
      {
        objectId: '',
        data: { alert: '' },
        prod,
        expiresAtMs: clock.now(),
        createdAtMs: clock.now(),
      },
      'ios',
    );
    const connected = lease.sender.warmUp?.({ prod });
    await Promise.race([connected, sleep(connectMs)]).finally(() => lease.release());
  }

  drainCalls(appId: string, connector: ConnectorId, profile: string): Calls {
    return (
      this.#calls.get(keyOf(appId, connector, profile))?.drain() ?? {
        calls: [],
        durations: noDurations(),
      }
    );
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

  async #profile(
    appId: string,
    connector: Connector,
    profileName: string,
  ): Promise<Omit<OpenProfile, 'appId' | 'profile'> | undefined> {
    // The device channel needs no credentials.
    if (connector.tokenField === 'installationId')
      return { credentials: {}, version: '', receiptGeneration: 0 };
    const { appCache } = this.#options;
    const [app, profiles] = await Promise.all([appCache.app(appId), appCache.profiles(appId)]);
    const profile = profiles.find(
      (candidate) => candidate.connector === connector.id && candidate.name === profileName,
    );
    if (!profile) return undefined;
    const { credentials, canary } = profile;
    const receiptGeneration = app?.options.receiptUrlGeneration ?? 0;
    const version = `${profile.updatedAt.getTime()} ${receiptGeneration}`;
    return { credentials, version, canary, receiptGeneration };
  }

  /** Returns the cached sender of this version of the profile. */
  #current(key: string, version: string): Entry | undefined {
    const cached = this.#entries.get(key);
    if (cached?.version !== version) return undefined;
    cached.usedAtMs = this.#options.clock.monotonicMs();
    return cached;
  }

  /** Opens a sender. Returns undefined if the credentials do not fit their schema. */
  #open(
    key: string,
    connector: Connector,
    { credentials, version, appId, profile, receiptGeneration }: OpenProfile,
  ): Entry | undefined {
    const parsed = connector.credentials.safeParse(credentials);
    if (!parsed.success) return undefined;
    const owner = { appId, profile };
    const previous = this.#entries.get(key);
    const callsKey = keyOf(owner.appId, connector.id, owner.profile);
    const calls = this.#calls.get(callsKey) ?? new CallLog();
    this.#calls.set(callsKey, calls);
    const { clock, db, publicUrl, vault, metrics } = this.#options;
    const gateway = { ...owner, connector: connector.id };
    const sender = connector.open(parsed.data, {
      clock,
      messageStore: messageStore(db, appId),
      tokens: tokenStore(db, vault, gateway),
      quota: dayQuota(db, gateway),
      callbackUrl: callbackUrl(publicUrl, vault, { ...gateway, generation: receiptGeneration }),
      onCall: (call) => calls.add(call),
      onTransport: (fact) => countTransport(metrics, connector.id, fact),
    });
    const entry = {
      connector: connector.id,
      sender,
      version,
      usedAtMs: clock.monotonicMs(),
      users: 0,
    };
    this.#entries.set(key, entry);
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
      installations: recipients.map((recipient) => Number(recipient.id)),
    });
  },
  deleteWaiting: async ({ pushId, recipients }) => {
    const ids = recipients.map(({ id }) => Number(id));
    const deleted = await deleteWaitingMessages(db, { appId, id: pushId }, ids);
    return new Set(deleted.map(String));
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
export interface Calls {
  calls: CallCount[];
  durations: DurationCounts;
}

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
