import type { Push } from '../../shared/domain/pushes/record.ts';
import { isToAll } from '../../shared/query/targets/targets.ts';
import { TtlCache } from '../../shared/ttl-cache.ts';
import { firstBatchSize, pageSize } from './pages.ts';

/** Most apps whose size is kept. */
const mostApps = 10_000;

/**
 * Halves of the numbers of devices that the latest pushes to all devices of an app had, as far as this dispatcher planned them. Such a
 * push has no number of targets before its last page.
 */
export class AudienceSizes {
  readonly #halves = new TtlCache<string, number>({ maxEntries: mostApps });

  /** Takes how many devices a push had that is planned. Keeps half of it where each half is a batch of a good size. */
  note({ appId, pushOrder }: Push, devices: number): void {
    const hasHalves = devices > 2 * firstBatchSize && devices <= pageSize;
    // Most pushes need no look at their condition.
    if (!hasHalves && this.#halves.get(appId) === undefined) return;
    if (!isToAll(pushOrder)) return;
    if (hasHalves) this.#halves.set(appId, Math.ceil(devices / 2));
    else this.#halves.delete(appId);
  }

  /**
   * Returns half the targets that a fresh push probably has: two batches cost less than the small first one and two others. Undefined
   * for other pushes (develop/architecture.md#batches).
   */
  halfOf({ appId, pushOrder, plannedThrough }: Push): number | undefined {
    const half = this.#halves.get(appId);
    if (half === undefined || plannedThrough > 0 || pushOrder.flowControl !== null) return undefined;
    return isToAll(pushOrder) ? half : undefined;
  }
}
