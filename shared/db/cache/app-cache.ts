import type { Clock } from '../../clock.ts';
import type { Vault } from '../../crypto.ts';
import type { App } from '../../domain/apps/app.ts';
import { QueryBatcher } from '../../fairness/query-batcher.ts';
import { isConnectionFailure } from '../limits/database-errors.ts';
import type { Handle } from '../pool.ts';
import { findApp } from '../tables/apps/apps.ts';
import { openProfiles, type StoredProfile } from '../tables/apps/profiles.ts';
import { type AppVersions, readAppVersions } from '../tables/apps/versions.ts';
import { ShortCache } from './short-cache.ts';

/** Most apps whose versions one statement reads, and such statements at a time. */
const appsAtOnce = 100;
const concurrency = 2;

/** Most values that are kept while nothing is written. */
const maxKept = 10_000;

/**
 * Cache of apps and their profiles, at most half a second old. A value that is older is kept if its version is unchanged:
 * reading, decrypting and checking it again costs many times the question.
 */
export class AppCache {
  readonly #apps: ShortCache<App | undefined>;
  readonly #profiles: ShortCache<StoredProfile[]>;
  readonly #versions: QueryBatcher<string, AppVersions | undefined>;
  readonly #keptApps = new Map<string, { version: string; value: App | undefined }>();
  readonly #keptProfiles = new Map<string, { version: string; value: StoredProfile[] }>();

  constructor(db: Handle, vault: Vault, clock: Clock) {
    this.#versions = new QueryBatcher({
      concurrency,
      size: appsAtOnce,
      isOfOneItem: (error) => !isConnectionFailure(error),
      run: (appIds) => readAppVersions(db, appIds),
    });
    this.#apps = new ShortCache(clock, async (appId) => {
      const version = (await this.#versions.load(appId))?.app;
      return keep(this.#keptApps, { appId, version, read: () => findApp(db, vault, appId) });
    });
    this.#profiles = new ShortCache(clock, async (appId) => {
      const version = (await this.#versions.load(appId))?.profiles;
      return keep(this.#keptProfiles, { appId, version, read: () => openProfiles(db, vault, appId) });
    });
  }

  app(appId: string): Promise<App | undefined> {
    return this.#apps.get(appId);
  }

  profiles(appId: string): Promise<StoredProfile[]> {
    return this.#profiles.get(appId);
  }

  /** Drops an app; the process that changes it calls this to see the change at once. */
  forget(appId: string): void {
    this.#apps.forget(appId);
    this.#profiles.forget(appId);
  }
}

/** Returns the kept value of an app if it has this version, else reads it; an unknown app is not kept. */
async function keep<V>(
  kept: Map<string, { version: string; value: V }>,
  { appId, version, read }: { appId: string; version: string | undefined; read: () => Promise<V> },
): Promise<V> {
  const known = kept.get(appId);
  if (known && known.version === version) return known.value;
  kept.delete(appId);
  // The value may be newer than the version: then the next question finds another version, and reads it once more.
  const value = await read();
  if (kept.size >= maxKept) kept.clear();
  if (version !== undefined) kept.set(appId, { version, value });
  return value;
}
