import type { Clock } from '../../clock.ts';
import type { Vault } from '../../crypto.ts';
import type { App } from '../../domain/apps/app.ts';
import type { Handle } from '../pool.ts';
import { findApp } from '../tables/apps/apps.ts';
import { openProfiles, type StoredProfile } from '../tables/apps/profiles.ts';
import { ShortCache } from './short-cache.ts';

/** Cache of apps and their profiles, at most half a second old. */
export class AppCache {
  readonly #apps: ShortCache<App | undefined>;
  readonly #profiles: ShortCache<StoredProfile[]>;

  constructor(db: Handle, vault: Vault, clock: Clock) {
    this.#apps = new ShortCache(clock, (appId) => findApp(db, vault, appId));
    this.#profiles = new ShortCache(clock, (appId) => openProfiles(db, vault, appId));
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
