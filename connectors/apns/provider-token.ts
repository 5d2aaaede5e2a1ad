import { createPrivateKey, type KeyObject, sign } from 'node:crypto';
import type { Clock } from '../../shared/clock.ts';

/** Provider token with its time of issue. */
export interface ProviderToken {
  /** Value of the `authorization` header. */
  authorization: string;
  issuedAtS: number;
  /** It replaces a refused token, after whose refusal its connections take no other one. */
  isReplacement?: true;
}

export interface TokenKey {
  teamId: string;
  keyId: string;
  privateKey: string;
}

/**
 * Tokens change every half hour: within Apple's "not more than once every 20 minutes, not less than
 * once every 60". All threads and processes use the same slots, so APNs sees one token at a time
 * (protocol/apns.md#provider-tokens).
 */
const slotS = 30 * 60;
/** Tolerated clock error: APNs refuses a token issued in the future. */
const skewS = 5 * 60;
/** Shortest time between two replacements of a key's token. */
const shortestLifeS = 20 * 60;

/** Provider tokens of one key: created on demand, shared by all requests. */
export class ProviderTokens {
  readonly #key: TokenKey;
  readonly #privateKey: KeyObject;
  readonly #clock: Clock;
  #current: ProviderToken | null = null;
  /** When a token was last replaced before its slot ended. */
  #replacedAtS = Number.NEGATIVE_INFINITY;

  constructor(key: TokenKey, clock: Clock) {
    this.#key = key;
    this.#privateKey = createPrivateKey(key.privateKey);
    this.#clock = clock;
  }

  /** Returns the current token. Signing is synchronous, so concurrent callers get the same one. */
  current(): ProviderToken {
    const nowS = Math.floor(this.#clock.now() / 1000);
    if (this.#current === null || this.#isDue(this.#current, nowS))
      this.#current = this.#mint(slotStartS(nowS));
    return this.#current;
  }

  /**
   * Replaces `token`, which the gateway refused, once for all callers with the same refusal and at
   * most every 20 minutes. Returns the token to use, or null if there is no other.
   */
  replace(token: ProviderToken): ProviderToken | null {
    const current = this.current();
    if (current !== token) return current;
    const nowS = Math.floor(this.#clock.now() / 1000);
    // Rounded to a minute, so that other threads mostly create the same token.
    const issuedAtS = nowS - (nowS % 60);
    if (issuedAtS <= token.issuedAtS || nowS - this.#replacedAtS < shortestLifeS) return null;
    this.#replacedAtS = nowS;
    this.#current = { ...this.#mint(issuedAtS), isReplacement: true };
    return this.#current;
  }

  #isDue(token: ProviderToken, nowS: number): boolean {
    // The clock was set back: the token is now in the future.
    if (token.issuedAtS > nowS) return true;
    // A replacement stays for 20 minutes even if its slot ends sooner.
    return slotStartS(nowS) > token.issuedAtS && nowS - this.#replacedAtS >= shortestLifeS;
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
 * Keeps the requests with one token apart from those with the next one, and opens new connections
 * for a replacement: APNs refuses a connection whose tokens alternate, or change within 20 minutes
 * (protocol/apns.md#provider-tokens).
 */
export class TokenTurns {
  readonly #current: () => ProviderToken | null;
  readonly #renew: () => void;
  readonly #running = new Set<Promise<void>>();
  #token: ProviderToken | null = null;

  /**
   * `current` returns the token of the moment, null with certificates; `renew` opens new
   * connections.
   */
  constructor(current: () => ProviderToken | null, renew: () => void) {
    this.#current = current;
    this.#renew = renew;
  }

  /** Calls `work` with the current token, once all work with another token has ended. */
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

/** Returns the time of issue of the current slot's token. */
const slotStartS = (nowS: number): number => nowS - skewS - ((nowS - skewS) % slotS);

const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url');
