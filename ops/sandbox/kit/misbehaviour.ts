/** Selects the requests that a misbehaviour applies to. */
interface Scope {
  /** Number of requests. If absent, all requests until `behave()`. */
  count?: number;
  /** Only requests with this device token. */
  token?: string;
  /** Share of the requests, evenly distributed. */
  fraction?: number;
  /** Beginning of the path. If absent, all requests except token calls. */
  path?: string;
  /** Token calls at any path. */
  isTokenCall?: true;
}

/** Misbehaviours of a gateway. Each applies to some requests only. */
export type Misbehaviour = Scope &
  (
    | {
        kind: 'answer';
        status: number;
        retryAfter?: string;
        /** Sent as JSON; a string is sent unchanged. */
        body?: unknown;
        /** Members of the APNs body, if `body` is absent. */
        reason?: string;
        timestampMs?: number;
      }
    /** Processes the request, then resets the stream (HTTP/2) or the connection (HTTP/1.1). */
    | { kind: 'reset'; code?: number }
    /** APNs only: refuses the stream (REFUSED_STREAM) without processing the request. */
    | { kind: 'refuse' }
    /**
     * APNs only: sends GOAWAY with the previous stream as the last processed stream. This request
     * and later requests are not processed.
     */
    | { kind: 'goaway'; code?: number; reason?: string }
    /** Processes the request without a response. */
    | { kind: 'hang' }
    /** Delays the response. */
    | { kind: 'slow'; delayMs: number }
    /** Processes the request, then destroys the connection. */
    | { kind: 'disconnect' }
  );

/** Properties of a request that select a misbehaviour. */
export interface Target {
  tokens: readonly string[];
  path: string;
  isTokenCall?: boolean;
}

/** Active misbehaviours. The first that matches applies. */
export class Misbehaviours {
  #rules: { what: Misbehaviour; left: number; share: number }[] = [];

  add(what: Misbehaviour): void {
    this.#rules.push({ what, left: what.count ?? Number.POSITIVE_INFINITY, share: 0 });
  }

  clear(): void {
    this.#rules = [];
  }

  /**
   * Returns the misbehaviour for a request and counts it. Fast if there is no misbehaviour, which
   * is the usual case.
   */
  pick(target: Target): Misbehaviour | undefined {
    if (this.#rules.length === 0) return undefined;
    for (const rule of this.#rules) {
      const { fraction } = rule.what;
      if (!matches(rule.what, target)) continue;
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

function matches({ path, token, isTokenCall }: Misbehaviour, target: Target): boolean {
  if (token !== undefined && !target.tokens.includes(token)) return false;
  if (isTokenCall) return target.isTokenCall === true;
  return path === undefined ? target.isTokenCall !== true : target.path.startsWith(path);
}

/** A response that a misbehaviour may delay or break off. */
export interface OpenResponse {
  send(): void;
  reset(code?: number): void;
  disconnect(): void;
}

/** Delays the response of a processed request, breaks it off, or sends no response. */
export function disrupt(what: Misbehaviour, response: OpenResponse): void {
  if (what.kind === 'slow') setTimeout(() => response.send(), what.delayMs);
  if (what.kind === 'reset') response.reset(what.code);
  if (what.kind === 'disconnect') response.disconnect();
}
