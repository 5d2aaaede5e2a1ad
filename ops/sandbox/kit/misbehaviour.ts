/** Which requests a misbehaviour strikes. */
export interface Scope {
  /** How many requests it strikes; absent: all, until `behave()`. */
  count?: number;
  /** Strikes requests to this device token only. */
  token?: string;
  /** Strikes this share of the requests, evenly spread. */
  fraction?: number;
}

/** The misbehaviours in force; the first that fits a request strikes. `Target`: what is known of a request by then. */
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

  /** Cheap while there are none, which is nearly always. */
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
