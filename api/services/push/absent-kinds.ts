import type { Clock } from '../../../shared/clock.ts';
import { changeMaxAgeMs, TtlCache } from '../../../shared/ttl-cache.ts';

/** Devices of one type. `vendor` null: with any vendor or none. */
export interface Kind {
  deviceType: string;
  vendor: string | null;
}

export const keyOf = (appId: string, { deviceType, vendor }: Kind): string =>
  `${appId} ${deviceType} ${vendor ?? ''}`;

/**
 * Remembers for half a second which kinds of devices an app does not have. Without it, every push
 * of an app without a Web Push profile searches for browsers (docs/develop/speed.md).
 */
export class AbsentKinds {
  readonly #absent: TtlCache<string, true>;

  constructor(clock: Clock) {
    this.#absent = new TtlCache({ clock, maxAgeMs: changeMaxAgeMs });
  }

  has(appId: string, kind: Kind): boolean {
    return this.#absent.get(keyOf(appId, kind)) === true;
  }

  add(appId: string, kind: Kind): void {
    this.#absent.set(keyOf(appId, kind), true);
  }

  /** Forgets the kinds of a saved device, so that the next push through this process finds it. */
  forget(appId: string, { deviceType, vendor }: Kind): void {
    for (const name of [null, vendor])
      this.#absent.delete(keyOf(appId, { deviceType, vendor: name }));
  }
}
