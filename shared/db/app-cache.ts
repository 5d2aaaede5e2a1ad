import { Batcher } from '../batcher.ts';
import type { Clock } from '../clock.ts';
import type { Vault } from '../crypto.ts';
import type { App } from '../domain/apps/app.ts';
import { changeMaxAgeMs, TtlCache } from '../ttl-cache.ts';
import { isConnectionFailure } from './limits/database-errors.ts';
import type { Handle } from './pool.ts';
import { type AppVersions, findApp, readAppVersions } from './tables/apps.ts';
import { openProfiles, type StoredProfile } from './tables/profiles.ts';
import { readSubscriptions, type Subscription } from './tables/webhooks.ts';

/** Maximum apps whose versions one statement reads, and maximum concurrent statements. */
const batchLimits = { size: 100, concurrency: 2 };

interface Versioned<V> {
  version: string;
  value: V;
}

/**
 * Cache of apps and their profiles, at most half a second old. An older value is used again if its
 * version in the database is unchanged, because loading, decrypting and checking it costs much more
 * than reading the version.
 */
export class AppCache {
  readonly #db: Handle;
  readonly #vault: Vault;
  readonly #versions: Batcher<string, AppVersions | undefined>;
  readonly #apps: TtlCache<string, Promise<App | undefined>>;
  readonly #profiles: TtlCache<string, Promise<StoredProfile[]>>;
  readonly #webhooks: TtlCache<string, Promise<readonly Subscription[]>>;
  readonly #keptApps = new TtlCache<string, Versioned<App | undefined>>({});
  readonly #keptProfiles = new TtlCache<string, Versioned<StoredProfile[]>>({});

  constructor(db: Handle, vault: Vault, clock: Clock) {
    this.#db = db;
    this.#vault = vault;
    this.#versions = new Batcher({
      ...batchLimits,
      run: (appIds) => readAppVersions(db, appIds),
      runOne: async (appId) => (await readAppVersions(db, [appId]))[0],
      isShared: isConnectionFailure,
    });
    this.#apps = new TtlCache({ clock, maxAgeMs: changeMaxAgeMs });
    this.#profiles = new TtlCache({ clock, maxAgeMs: changeMaxAgeMs });
    this.#webhooks = new TtlCache({ clock, maxAgeMs: changeMaxAgeMs });
  }

  app(appId: string): Promise<App | undefined> {
    return this.#apps.getOrMake(appId, async () => {
      const versions = this.#versions.run(appId);
      this.#keepWebhooks(appId, versions);
      const version = (await versions)?.app;
      const read = () => findApp(this.#db, this.#vault, appId);
      return keep(this.#keptApps, { appId, version, read });
    });
  }

  profiles(appId: string): Promise<StoredProfile[]> {
    return this.#profiles.getOrMake(appId, async () => {
      const version = (await this.#versions.run(appId))?.profiles;
      const read = () => openProfiles(this.#db, this.#vault, appId);
      return keep(this.#keptProfiles, { appId, version, read });
    });
  }

  /**
   * Returns the enabled webhooks of an app, or of the service (`serviceOwner`). The versions of the
   * app contain them, so an app without webhooks rarely needs a further statement. A transaction
   * passes its own handle: if it waited for a second connection, transactions that wait for its row
   * locks could hold all of them.
   */
  webhooks(db: Handle, owner: string): Promise<readonly Subscription[]> {
    return this.#webhooks.getOrMake(owner, () => readSubscriptions(db, owner));
  }

  #keepWebhooks(appId: string, versions: Promise<AppVersions | undefined>): void {
    const webhooks = versions.then((found) => found?.webhooks ?? []);
    // A failure is reported to the caller that reads the app.
    webhooks.catch(() => this.#webhooks.delete(appId));
    this.#webhooks.set(appId, webhooks);
  }

  /**
   * Drops an app from the cache. The process that changes an app calls this to see the change at
   * once.
   */
  forget(appId: string): void {
    this.#apps.delete(appId);
    this.#profiles.delete(appId);
    this.#webhooks.delete(appId);
  }
}

/**
 * Returns the cached value of an app if it has this version. Otherwise loads it. Unknown apps are
 * not cached.
 */
async function keep<V>(
  kept: TtlCache<string, Versioned<V>>,
  { appId, version, read }: { appId: string; version: string | undefined; read: () => Promise<V> },
): Promise<V> {
  const cached = kept.get(appId);
  if (cached && cached.version === version) return cached.value;
  kept.delete(appId);
  // The value may be newer than the version: then the next question finds another version, and
  // reads it once more.
  const value = await read();
  if (version !== undefined) kept.set(appId, { version, value });
  return value;
}
