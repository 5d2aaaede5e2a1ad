import type { Connector, GatewayCall, MessageStore, Sender } from '../../connectors/contract/connector.ts';
import { connectors } from '../../connectors/registry.ts';
import { type Clock, sleep } from '../../shared/clock.ts';
import type { Vault } from '../../shared/crypto.ts';
import type { AppCache } from '../../shared/db/cache/app-cache.ts';
import type { Database } from '../../shared/db/pool.ts';
import { enqueueMessage } from '../../shared/db/tables/channel/messages.ts';
import type { RecentProfile } from '../../shared/db/tables/pushes/recent-profiles.ts';
import type { ConnectorId } from '../../shared/domain/labels.ts';
import { callbackUrl } from '../../shared/http/callback-url.ts';
import { addDuration, type DurationCounts, noDurations } from '../../shared/process/durations.ts';
import { dayQuota, tokenStore } from './gateway-state.ts';
import type { CallCount } from './task.ts';
import { TransportLog, type TransportReading } from './transports.ts';

/** Time without use after which a sender is closed. */
const idleMs = 10 * 60_000;

/** Longest wait for a connection before there is a push. */
const connectMs = 2000;

interface Entry {
  connector: ConnectorId;
  sender: Sender;
  /** Version of the profile that it was opened with. */
  version: number;
  usedAtMs: number;
  users: number;
}

export interface SenderCacheOptions {
  db: Database;
  appCache: Pick<AppCache, 'app' | 'profiles'>;
  clock: Clock;
  vault: Vault;
  /** PUBLIC_URL, to which gateways send delivery receipts. */
  publicUrl: string;
}

/** Profile that a sender is opened with. */
interface OpenProfile {
  appId: string;
  profile: string;
  /** As they are stored. */
  credentials: unknown;
  version: number;
}

const keyOf = (appId: string, connector: ConnectorId, profile: string) =>
  JSON.stringify([appId, connector, profile]);

/** A sender in use; its holder releases it at the end of the batch. */
export interface Lease {
  sender: Sender;
  connector: Connector;
  release(): void;
}

/** Requests to one profile's gateway. */
interface Calls {
  calls: CallCount[];
  durations: DurationCounts;
}

/** Answers of one profile's gateway since the last drain. */
class CallLog {
  #counts = new Map<string, CallCount>();
  /** The one that was counted last: nearly all answers are alike. */
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
    const drained = { calls: [...this.#counts.values()], durations: this.#durations };
    this.#counts = new Map();
    this.#last = undefined;
    this.#durations = noDurations();
    return drained;
  }
}

/**
 * Long-lived senders of this thread, one per app, connector and profile. A changed profile gets a new sender; the old one
 * is closed after its last batch.
 */
export class SenderCache {
  readonly #options: SenderCacheOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #calls = new Map<string, CallLog>();
  readonly #transportLog = new TransportLog();
  readonly #closer: NodeJS.Timeout;

  constructor(options: SenderCacheOptions) {
    this.#options = options;
    this.#closer = setInterval(() => this.#closeIdle(), idleMs / 10).unref();
  }

  /** Returns a sender for a profile, or a hint for the operator on the reason. */
  async lease(appId: string, connectorId: ConnectorId, profileName: string): Promise<Lease | string> {
    const connector = connectors.get(connectorId);
    if (!connector) return `${connectorId} is not available on this server`;
    const found = await this.#profile(appId, connector, profileName);
    if (!found) return `the ${connectorId} profile ${profileName} was deleted`;
    const key = keyOf(appId, connectorId, profileName);
    const entry =
      this.#current(key, found.version) ??
      this.#open(key, connector, { ...found, appId, profile: profileName });
    if (!entry) return `the ${connectorId} profile ${profileName} has invalid credentials`;
    entry.users += 1;
    return { sender: entry.sender, connector, release: () => this.#release(key, entry) };
  }

  /** Loads the app, opens the sender of a profile, renders a message and connects to the gateway. Sends nothing. */
  async warmUp({ appId, connector, profile, prod }: RecentProfile): Promise<void> {
    const found = [...connectors.keys()].find((id) => id === connector);
    if (!found) return;
    await this.#options.appCache.app(appId);
    const lease = await this.lease(appId, found, profile);
    if (typeof lease === 'string') return;
    const { clock } = this.#options;
    lease.connector.render(
      { objectId: '', data: { alert: '' }, prod, expiresAtMs: clock.now(), createdAtMs: clock.now() },
      'ios',
    );
    const connected = lease.sender.warmUp?.({ prod });
    await Promise.race([connected, sleep(connectMs)]).finally(() => lease.release());
  }

  drainCalls(appId: string, connector: ConnectorId, profile: string): Calls {
    return (
      this.#calls.get(keyOf(appId, connector, profile))?.drain() ?? { calls: [], durations: noDurations() }
    );
  }

  /** Returns the HTTP/2 events since the last call, and the current load. */
  drainTransports(): TransportReading[] {
    const loads = [...this.#entries.values()].map(({ connector, sender }) => ({
      connector,
      load: sender.load?.(),
    }));
    return this.#transportLog.drain(loads);
  }

  async #profile(
    appId: string,
    connector: Connector,
    profileName: string,
  ): Promise<Pick<OpenProfile, 'credentials' | 'version'> | undefined> {
    // Our own channel needs no credentials.
    if (connector.tokenField === 'installationId') return { credentials: {}, version: 0 };
    const profiles = await this.#options.appCache.profiles(appId);
    const profile = profiles.find((known) => known.connector === connector.id && known.name === profileName);
    return profile && { credentials: profile.credentials, version: profile.updatedAt.getTime() };
  }

  /** Returns the sender that was opened with this version of the profile. */
  #current(key: string, version: number): Entry | undefined {
    const known = this.#entries.get(key);
    if (known?.version !== version) return undefined;
    known.usedAtMs = this.#options.clock.monotonicMs();
    return known;
  }

  /**
   * Opens a sender; undefined if the credentials do not fit their schema. Reading keys and certificates takes a
   * millisecond.
   */
  #open(
    key: string,
    connector: Connector,
    { credentials, version, ...owner }: OpenProfile,
  ): Entry | undefined {
    const parsed = connector.credentials.safeParse(credentials);
    if (!parsed.success) return undefined;
    const known = this.#entries.get(key);
    const calls = this.#calls.get(key) ?? new CallLog();
    this.#calls.set(key, calls);
    const { clock, db, publicUrl, vault } = this.#options;
    const gateway = { ...owner, connector: connector.id };
    const sender = connector.open(parsed.data, {
      clock,
      messageStore: this.#messageStore(owner.appId),
      tokens: tokenStore(db, vault, gateway),
      quota: dayQuota(db, gateway),
      callbackUrl: callbackUrl(publicUrl, vault, gateway),
      onCall: (call) => calls.add(call),
      onTransport: (event) => this.#transportLog.add(connector.id, event),
    });
    const entry = { connector: connector.id, sender, version, usedAtMs: clock.monotonicMs(), users: 0 };
    this.#entries.set(key, entry);
    if (known?.users === 0) void known.sender.close();
    return entry;
  }

  #messageStore(appId: string): MessageStore {
    return {
      enqueue: async ({ pushId, content, expiresAtMs, recipients }) => {
        await enqueueMessage(this.#options.db, {
          appId,
          pushId,
          content,
          expiresAt: new Date(expiresAtMs),
          installations: recipients.map((recipient) => Number(recipient.id)),
        });
      },
    };
  }

  #release(key: string, entry: Entry): void {
    entry.users -= 1;
    entry.usedAtMs = this.#options.clock.monotonicMs();
    if (entry.users === 0 && this.#entries.get(key) !== entry) void entry.sender.close();
  }

  /** Closes all senders, of which none is in use. */
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
