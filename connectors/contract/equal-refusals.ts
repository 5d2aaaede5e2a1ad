import type { AttemptResult } from './attempt-result.ts';

/** Equal refusals without a success after which the gateway is not asked for the rest. */
export const maxEqualRefusals = 20;

/** Recipients of a batch whose refusals are compared: those of one topic, one region or one API. */
interface Group {
  counts: Map<string, number>;
  ending: AttemptResult | null;
}

/**
 * Equal refusals of one batch. If a gateway refuses the first devices of a batch for the same
 * reason and takes the message for none, it will refuse the rest: the rest gets the result of these
 * devices without a request. Answers that call a token invalid do not count, nor do refusals that
 * concern a single device.
 */
export class EqualRefusals {
  readonly #groups = new Map<string, Group>();
  /** Groups with a success, in any batch of the push. */
  readonly #successes: Set<string>;

  constructor(successes: Set<string> = new Set()) {
    this.#successes = successes;
  }

  noteSent(group: string): void {
    this.#successes.add(group);
  }

  /** Whether the message was taken for a recipient of the group. */
  hasSuccess(group: string): boolean {
    return this.#successes.has(group);
  }

  /**
   * Counts a refusal. Returns the result of the rest of the group, null as long as the rest may
   * succeed.
   */
  note(group: string, attempt: AttemptResult): AttemptResult | null {
    if (attempt.kind !== 'rejected' || this.#successes.has(group)) return null;
    const known = this.#groups.get(group) ?? { counts: new Map<string, number>(), ending: null };
    this.#groups.set(group, known);
    const key = `${attempt.status} ${attempt.reason}`;
    const count = (known.counts.get(key) ?? 0) + 1;
    known.counts.set(key, count);
    if (count >= maxEqualRefusals) known.ending ??= attempt;
    return known.ending;
  }

  /** Returns the result of the rest of a group, null as long as the rest may succeed. */
  endingOf(group: string): AttemptResult | null {
    return this.#groups.get(group)?.ending ?? null;
  }
}
