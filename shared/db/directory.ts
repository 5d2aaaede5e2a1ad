import type { Clock } from '../clock.ts';
import type { Vault } from '../crypto.ts';
import type { App } from '../domain/app.ts';
import type { Handle } from './pool.ts';
import { findApp } from './tables/apps.ts';
import { openProfiles, type StoredProfile } from './tables/profiles.ts';

/**
 * How old an answer may be. A changed profile or option counts within one second on every process
 * (contract.md "Labels and wire names"), so half of that leaves room for the query itself.
 */
const maxAgeMs = 500;

/** Answers that nobody asked for lately are dropped, so that made-up app ids do not fill the memory. */
const maxEntries = 10_000;

/** Remembers an answer for a moment; callers at the same time share one question. */
class ShortMemory<V> {
  readonly #entries = new Map<string, { value: Promise<V>; askedAtMs: number }>();
  readonly #clock: Clock;
  readonly #ask: (key: string) => Promise<V>;

  constructor(clock: Clock, ask: (key: string) => Promise<V>) {
    this.#clock = clock;
    this.#ask = ask;
  }

  get(key: string): Promise<V> {
    const nowMs = this.#clock.monotonicMs();
    const known = this.#entries.get(key);
    if (known && nowMs - known.askedAtMs < maxAgeMs) return known.value;
    if (this.#entries.size >= maxEntries) this.#entries.clear();
    const value = this.#ask(key);
    this.#entries.set(key, { value, askedAtMs: nowMs });
    value.catch(() => this.#entries.delete(key));
    return value;
  }

  forget(key: string): void {
    this.#entries.delete(key);
  }
}

/** Apps and their profiles as this process knows them, at most half a second old. */
export class Directory {
  readonly #apps: ShortMemory<App | undefined>;
  readonly #profiles: ShortMemory<StoredProfile[]>;

  constructor(db: Handle, vault: Vault, clock: Clock) {
    this.#apps = new ShortMemory(clock, (appId) => findApp(db, vault, appId));
    this.#profiles = new ShortMemory(clock, (appId) => openProfiles(db, vault, appId));
  }

  app(appId: string): Promise<App | undefined> {
    return this.#apps.get(appId);
  }

  profiles(appId: string): Promise<StoredProfile[]> {
    return this.#profiles.get(appId);
  }

  /** Called by the process that changes an app itself, so that its own next answer is the new one. */
  forget(appId: string): void {
    this.#apps.forget(appId);
    this.#profiles.forget(appId);
  }
}
