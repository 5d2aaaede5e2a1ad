import { randomBytes } from 'node:crypto';

/** Issues access tokens that expire, and recognises them. */
export class TokenIssuer {
  /** Lifetime of tokens issued from now on. */
  lifetimeMs: number;
  readonly #tokens = new Map<string, number>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number, lifetimeMs = 3_600_000) {
    this.#nowMs = nowMs;
    this.lifetimeMs = lifetimeMs;
  }

  /** Issues a token; `expiresIn` is its lifetime in seconds. Older tokens stay valid. */
  issue(): { value: string; expiresIn: number } {
    const value = randomBytes(24).toString('base64url');
    this.#tokens.set(value, this.#nowMs() + this.lifetimeMs);
    return { value, expiresIn: Math.floor(this.lifetimeMs / 1000) };
  }

  check(value: string | undefined): 'valid' | 'expired' | 'unknown' {
    const endsAtMs = value === undefined ? undefined : this.#tokens.get(value);
    if (endsAtMs === undefined) return 'unknown';
    return endsAtMs > this.#nowMs() ? 'valid' : 'expired';
  }

  /** Expires every token issued so far. */
  expireAll(): void {
    for (const value of this.#tokens.keys()) this.#tokens.set(value, 0);
  }
}

/** Reply of a token call that checks nothing. */
export const anyToken = { access_token: 'x'.repeat(160), expires_in: 3600, token_type: 'Bearer' };

/** Returns the token of an `Authorization: Bearer` header. */
export const bearerOf = (authorization: string | undefined): string | undefined =>
  /^Bearer ([!-~]+)$/.exec(authorization ?? '')?.[1];
