import { originalTarget, type PushOrder } from '../../shared/domain/pushes/push.ts';
import type { OpenPush } from '../../shared/domain/pushes/record.ts';
import { TtlCache } from '../../shared/ttl-cache.ts';

/**
 * Maximum pushes in the cache. They are cached without their conditions and take some kilobytes
 * each.
 */
const maxPushes = 32;

/**
 * Returns a planned push as the sending threads need it: without its condition and device ids,
 * which may be large. The channels remain, because the message contains them.
 */
export function withoutCondition(push: OpenPush): OpenPush {
  const { redrive: _, ...order } = push.pushOrder;
  const target = originalTarget(push.pushOrder);
  const channels = target.kind === 'query' ? target.channels : null;
  const pushOrder: PushOrder = { ...order, target: { kind: 'query', where: {}, channels } };
  return { ...push, state: 'sending', pushOrder };
}

/**
 * Caches the pushes that this dispatcher has planned recently, so that the sending threads need not
 * read them. The content of a push never changes. Its state is read with each batch. A small push
 * is not cached, because its planning job passes it on (`PlannedBatch`).
 */
export class PushCache {
  readonly #pushes = new TtlCache<number, OpenPush>({ maxEntries: maxPushes });

  /** Adds a push that is about to be sent. */
  add(push: OpenPush): void {
    this.#pushes.set(push.id, withoutCondition(push));
  }

  /**
   * Returns a push without its condition, and moves it to the newest end of the cache. Returns
   * undefined if it is not cached.
   */
  get(pushId: number): OpenPush | undefined {
    const push = this.#pushes.get(pushId);
    if (push) this.#pushes.set(pushId, push);
    return push;
  }
}
