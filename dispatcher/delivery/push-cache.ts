import { originalTarget, type PushOrder } from '../../shared/domain/pushes/push.ts';
import type { OpenPush } from '../../shared/domain/pushes/record.ts';
import { TtlCache } from '../../shared/ttl-cache.ts';

/**
 * Maximum pushes in the cache. They are cached without their conditions and take some kilobytes
 * each.
 */
const maxPushes = 512;

/**
 * Returns a request without its condition and device ids. The channels remain, because the message
 * contains them. Only planning needs the rest, which may be large.
 */
function withoutCondition(whole: PushOrder): PushOrder {
  const { redrive: _, ...order } = whole;
  const target = originalTarget(whole);
  const channels = target.kind === 'query' ? target.channels : null;
  return { ...order, target: { kind: 'query', where: {}, channels } };
}

/**
 * Caches the pushes that this dispatcher has planned recently, so that the sending threads need not
 * read them. The content of a push never changes. Its state is read with each batch.
 */
export class PushCache {
  readonly #pushes = new TtlCache<number, OpenPush>({ maxEntries: maxPushes });

  /** Adds a push that is about to be sent. */
  add(push: OpenPush): void {
    this.#pushes.set(push.id, {
      ...push,
      state: 'sending',
      pushOrder: withoutCondition(push.pushOrder),
    });
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
