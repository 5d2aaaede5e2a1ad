/** Ways in which the gateway can be told to misbehave, each for some requests only. */
export type Misbehaviour = Scope &
  (
    | { kind: 'answer'; status: number; reason: string; timestampMs?: number; retryAfter?: string }
    /** Resets the stream after the request was processed. */
    | { kind: 'reset'; code?: number }
    /** REFUSED_STREAM: not processed. */
    | { kind: 'refuse' }
    /** GOAWAY that names the stream before this one as the last: this one and later ones are not processed. */
    | { kind: 'goaway'; code?: number; reason?: string }
    /** Processed, never answered. */
    | { kind: 'hang' }
    /** Answered late. */
    | { kind: 'slow'; delayMs: number }
    /** Processed, then the whole connection is gone without a word. */
    | { kind: 'disconnect' }
  );

interface Scope {
  /** How many requests it strikes; absent: all, until `behave()`. */
  count?: number;
  /** Strikes requests to this device token only. */
  token?: string;
  /** Strikes this share of the requests, evenly spread. */
  fraction?: number;
}

/** The misbehaviours in force; the first that fits a request strikes. */
export class Misbehaviours {
  #rules: { what: Misbehaviour; left: number; share: number }[] = [];

  add(what: Misbehaviour): void {
    this.#rules.push({ what, left: what.count ?? Number.POSITIVE_INFINITY, share: 0 });
  }

  clear(): void {
    this.#rules = [];
  }

  /** Cheap while there are none, which is nearly always. */
  strike(token: string): Misbehaviour | undefined {
    if (this.#rules.length === 0) return undefined;
    for (const rule of this.#rules) {
      if (rule.what.token !== undefined && rule.what.token !== token) continue;
      if (rule.what.fraction !== undefined) {
        rule.share += rule.what.fraction;
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
