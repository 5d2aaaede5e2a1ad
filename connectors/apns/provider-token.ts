import { createPrivateKey, type KeyObject, sign } from 'node:crypto';
import type { Clock } from '../../shared/clock.ts';

/** Provider token with the time when it was issued. */
export interface ProviderToken {
  /** Value of the `authorization` header. */
  authorization: string;
  issuedAtS: number;
  /**
   * True if the token replaces a refused token. A connection that has refused a token accepts no
   * other token.
   */
  isReplacement?: true;
}

export interface TokenKey {
  teamId: string;
  keyId: string;
  privateKey: string;
}

/**
 * Tokens change every half hour. Apple requires a change at most every 20 minutes and at least
 * every 60 minutes. All threads and processes use the same time slots, so APNs sees one token at a
 * time (protocol/apns.md#provider-tokens).
 */
const slotS = 30 * 60;
/** Tolerated clock error in seconds. APNs refuses a token from the future. */
const skewS = 5 * 60;
/** Minimum time between two replacements of a key's token. */
const minLifeS = 20 * 60;

/** Creates the provider tokens of one key on demand. All requests share the current token. */
export class ProviderTokens {
  readonly #key: TokenKey;
  readonly #privateKey: KeyObject;
  readonly #clock: Clock;
  #current: ProviderToken | null = null;
  /** Time when a token was last replaced before its time slot ended. */
  #replacedAtS = Number.NEGATIVE_INFINITY;

  constructor(key: TokenKey, clock: Clock) {
    this.#key = key;
    this.#privateKey = createPrivateKey(key.privateKey);
    this.#clock = clock;
  }

  /**
   * Returns the current token. Signing is synchronous, so concurrent callers get the same token.
   */
  current(): ProviderToken {
    const nowS = Math.floor(this.#clock.now() / 1000);
    if (this.#current === null || this.#isDue(this.#current, nowS))
      this.#current = this.#mint(slotStartS(nowS));
    return this.#current;
  }

  /**
   * Replaces a token that the gateway refused. Concurrent callers with the same refusal get the
   * same new token. A token is replaced at most every 20 minutes. Returns the token to use; null if
   * there is no other token.
   */
  replace(token: ProviderToken): ProviderToken | null {
    const current = this.current();
    if (current !== token) return current;
    const nowS = Math.floor(this.#clock.now() / 1000);
    // Rounded to a minute, so that other threads usually create the same token.
    const issuedAtS = nowS - (nowS % 60);
    if (issuedAtS <= token.issuedAtS || nowS - this.#replacedAtS < minLifeS) return null;
    this.#replacedAtS = nowS;
    this.#current = { ...this.#mint(issuedAtS), isReplacement: true };
    return this.#current;
  }

  #isDue(token: ProviderToken, nowS: number): boolean {
    // The clock was set back, so the token is from the future.
    if (token.issuedAtS > nowS) return true;
    // A replacement is used for at least 20 minutes, even if its time slot ends sooner.
    return slotStartS(nowS) > token.issuedAtS && nowS - this.#replacedAtS >= minLifeS;
  }

  #mint(issuedAtS: number): ProviderToken {
    const { keyId, teamId } = this.#key;
    const unsigned = `${encode({ alg: 'ES256', kid: keyId })}.${encode({ iss: teamId, iat: issuedAtS })}`;
    const signature = sign('sha256', Buffer.from(unsigned), {
      key: this.#privateKey,
      // A JWT contains raw r and s, not DER (RFC 7518 3.4).
      dsaEncoding: 'ieee-p1363',
    });
    return { authorization: `bearer ${unsigned}.${signature.toString('base64url')}`, issuedAtS };
  }
}

/**
 * Ensures that requests with different tokens do not run at the same time. Opens new connections
 * for a replacement. APNs refuses a connection whose tokens alternate or change within 20 minutes
 * (protocol/apns.md#provider-tokens).
 */
export class TokenLock {
  readonly #current: () => ProviderToken | null;
  readonly #renew: () => void;
  readonly #running = new Set<Promise<void>>();
  #token: ProviderToken | null = null;

  /**
   * `current` returns the current token, or null with certificates. `renew` opens new connections.
   */
  constructor(current: () => ProviderToken | null, renew: () => void) {
    this.#current = current;
    this.#renew = renew;
  }

  /** Calls `work` with the current token after all work with another token has ended. */
  async run(work: (token: ProviderToken | null) => Promise<void>): Promise<void> {
    while (this.#running.size > 0 && this.#current() !== this.#token)
      await Promise.race(this.#running);
    const next = this.#current();
    if (this.#token && next !== this.#token && next?.isReplacement) this.#renew();
    this.#token = next;
    const running = work(this.#token).finally(() => this.#running.delete(running));
    this.#running.add(running);
    await running;
  }
}

/** Returns the issue time of tokens of the current time slot. */
const slotStartS = (nowS: number): number => nowS - skewS - ((nowS - skewS) % slotS);

const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url');
