import { type Clock, minuteMs } from '../../../shared/clock.ts';

/** Time for which an app shares no group with others after a group failed that it was in. */
const apartMs = 10_000;
/** Time for which an app is in no group after one of its own failed. */
const excludedMs = minuteMs;

/**
 * Remembers which apps may share groups. A group fails when one of its rows waits too long for another transaction, or
 * PostgreSQL refuses it; which row it was is not known. Groups of single apps show whose it was, and delay no others.
 */
export class SharedGroups {
  readonly #clock: Clock;
  readonly #apartUntilMs = new Map<string, number>();
  readonly #excludedUntilMs = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Tells whether an app shares no group with others. */
  isApart(appId: string): boolean {
    return this.#isBefore(this.#apartUntilMs, appId);
  }

  /** Tells whether an app is in no group. */
  isExcluded(appId: string): boolean {
    return this.#isBefore(this.#excludedUntilMs, appId);
  }

  /** Notes that a group of these apps failed. */
  noteFailure(apps: ReadonlySet<string>): void {
    const nowMs = this.#clock.monotonicMs();
    const [only] = apps;
    if (apps.size === 1 && only !== undefined && this.isApart(only))
      this.#excludedUntilMs.set(only, nowMs + excludedMs);
    for (const appId of apps) this.#apartUntilMs.set(appId, nowMs + apartMs);
  }

  #isBefore(until: Map<string, number>, appId: string): boolean {
    if (until.size === 0) return false;
    const untilMs = until.get(appId);
    if (untilMs === undefined) return false;
    if (this.#clock.monotonicMs() < untilMs) return true;
    until.delete(appId);
    return false;
  }
}
