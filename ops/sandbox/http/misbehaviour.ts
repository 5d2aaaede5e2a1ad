/** Which requests a misbehaviour strikes. */
export interface Scope {
  /** How many requests it strikes; absent: all, until `behave()`. */
  count?: number;
  /** Strikes requests to this device token only. */
  token?: string;
  /** Strikes this share of the requests, evenly spread. */
  fraction?: number;
  /** Strikes requests to paths that begin so; absent: all but token calls. */
  path?: string;
}

/** Ways in which an HTTP gateway can be told to misbehave, each for some requests only. */
export type Misbehaviour = Scope &
  (
    | { kind: 'answer'; status: number; body?: unknown; retryAfter?: string }
    /** Processed; then the stream, or with HTTP/1.1 the connection, is reset. */
    | { kind: 'reset' }
    /** Processed, never answered. */
    | { kind: 'hang' }
    /** Answered late. */
    | { kind: 'slow'; delayMs: number }
    /** Processed, then the whole connection is gone without a word. */
    | { kind: 'disconnect' }
  );

/** What is known of a request when it is decided whether a misbehaviour strikes. */
export interface Target {
  tokens: readonly string[];
  path?: string;
  isTokenCall?: boolean;
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

  strike(target: Target): Misbehaviour | undefined {
    for (const rule of this.#rules) {
      const { token, fraction } = rule.what;
      if (!isInPath(rule.what, target)) continue;
      if (token !== undefined && !target.tokens.includes(token)) continue;
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

const isInPath = ({ path }: Scope, target: Target): boolean =>
  path === undefined ? target.isTokenCall !== true : (target.path ?? '').startsWith(path);
