/** Requests that a misbehaviour applies to. */
export interface Scope {
  /** Number of requests; absent: all, until `behave()`. */
  count?: number;
  /** Only requests to this device token. */
  token?: string;
  /** Share of the requests, evenly spread. */
  fraction?: number;
}

/** Active misbehaviours; the first match applies. `Target`: features of a request that select one. */
export class Misbehaviours<Misbehaviour extends Scope, Target> {
  readonly #matches: (what: Misbehaviour, target: Target) => boolean;
  #rules: { what: Misbehaviour; left: number; share: number }[] = [];

  constructor(matches: (what: Misbehaviour, target: Target) => boolean) {
    this.#matches = matches;
  }

  add(what: Misbehaviour): void {
    this.#rules.push({ what, left: what.count ?? Number.POSITIVE_INFINITY, share: 0 });
  }

  clear(): void {
    this.#rules = [];
  }

  /** Returns the misbehaviour for a request and counts it. Cheap without misbehaviours, the usual case. */
  pick(target: Target): Misbehaviour | undefined {
    if (this.#rules.length === 0) return undefined;
    for (const rule of this.#rules) {
      const { fraction } = rule.what;
      if (!this.#matches(rule.what, target)) continue;
      if (fraction !== undefined) {
        rule.share += fraction;
        if (rule.share < 1) continue;
        rule.share -= 1;
      }
      rule.left -= 1;
      if (rule.left <= 0) this.#rules = this.#rules.filter((other) => other !== rule);
      return rule.what;
    }
    return undefined;
  }
}
