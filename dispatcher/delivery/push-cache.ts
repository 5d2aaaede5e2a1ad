import { originalTarget, type PushOrder } from '../../shared/domain/pushes/push.ts';
import type { Push } from '../../shared/domain/pushes/record.ts';
import { TtlCache } from '../../shared/ttl-cache.ts';

/** Most pushes that are kept, without their conditions; each takes some kilobytes. */
const mostPushes = 512;

/**
 * Returns an order with the target that a message names: its channels. Only planning reads the
 * rest, which may be large.
 */
function withoutCondition({ redrive, ...order }: PushOrder): PushOrder {
  const target = originalTarget({ ...order, ...(redrive ? { redrive } : {}) });
  const channels = target.kind === 'query' ? target.channels : null;
  return { ...order, target: { kind: 'query', where: {}, channels } };
}

/**
 * The pushes that this dispatcher has planned lately, for the threads that send their batches:
 * these then do not read them. What a message is made of never changes; whether the push goes on is
 * read with each batch.
 */
export class PushCache {
  readonly #pushes = new TtlCache<number, Push>({ maxEntries: mostPushes });

  /** Keeps a push that is sent from now on. */
  add(push: Push): void {
    this.#pushes.set(push.id, {
      ...push,
      state: 'sending',
      pushOrder: withoutCondition(push.pushOrder),
    });
  }

  /**
   * Returns a push without its condition, and makes it the newest one; undefined for one that is
   * not kept.
   */
  get(pushId: number): Push | undefined {
    const push = this.#pushes.get(pushId);
    if (push) this.#pushes.set(pushId, push);
    return push;
  }
}
