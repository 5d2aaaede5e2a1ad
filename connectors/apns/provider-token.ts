import { createPrivateKey, type KeyObject, sign } from 'node:crypto';
import type { Clock } from '../../shared/clock.ts';

/** A provider token and what it was made for. */
export interface ProviderToken {
  /** Value of the `authorization` header. */
  authorization: string;
  issuedAtS: number;
}

export interface TokenKey {
  teamId: string;
  keyId: string;
  privateKey: string;
}

/**
 * Tokens change on the half hour: within Apple's "not more than once every 20 minutes, not less than once
 * every 60", and all threads and processes have the same one at the same time, so that no fleet storms
 * APNs with different ones (protocol/apns.md#provider-tokens).
 */
const slotS = 30 * 60;
/** A token issued in the future is refused: this much may our clock be ahead. */
const skewS = 5 * 60;
/** A key's tokens are not replaced more often than this, whatever the gateway says. */
const shortestLifeS = 20 * 60;

/** The provider token of one key: made when needed, then shared by all requests. */
export class ProviderTokens {
  readonly #key: TokenKey;
  readonly #privateKey: KeyObject;
  readonly #clock: Clock;
  #current: ProviderToken | null = null;
  /** When a token was last made out of turn. */
  #replacedAtS = Number.NEGATIVE_INFINITY;

  constructor(key: TokenKey, clock: Clock) {
    this.#key = key;
    this.#privateKey = createPrivateKey(key.privateKey);
    this.#clock = clock;
  }

  /** The token of now. Signing is synchronous: callers at the same moment cannot make two. */
  current(): ProviderToken {
    const nowS = Math.floor(this.#clock.now() / 1000);
    if (this.#current === null || this.#isDue(this.#current, nowS)) this.#current = this.#mint(turnS(nowS));
    return this.#current;
  }

  /**
   * The gateway refused `token`. Makes another one, once for all who come with the same refusal, and at
   * most every 20 minutes. Gives what to go on with, or null when there is nothing better to offer.
   */
  replace(token: ProviderToken): ProviderToken | null {
    const current = this.current();
    if (current !== token) return current;
    const nowS = Math.floor(this.#clock.now() / 1000);
    // Other threads of this service come to the same minute, so they mostly make the same token.
    const issuedAtS = nowS - (nowS % 60);
    if (issuedAtS <= token.issuedAtS || nowS - this.#replacedAtS < shortestLifeS) return null;
    this.#replacedAtS = nowS;
    this.#current = this.#mint(issuedAtS);
    return this.#current;
  }

  #isDue(token: ProviderToken, nowS: number): boolean {
    // The clock was set back: the token now lies in the future.
    if (token.issuedAtS > nowS) return true;
    // One made out of turn stays for its 20 minutes even when the turn comes sooner.
    return turnS(nowS) > token.issuedAtS && nowS - this.#replacedAtS >= shortestLifeS;
  }

  #mint(issuedAtS: number): ProviderToken {
    const { keyId, teamId } = this.#key;
    const unsigned = `${encode({ alg: 'ES256', kid: keyId })}.${encode({ iss: teamId, iat: issuedAtS })}`;
    const signature = sign('sha256', Buffer.from(unsigned), {
      key: this.#privateKey,
      // A JWT holds r and s as they are, not DER (RFC 7518 3.4).
      dsaEncoding: 'ieee-p1363',
    });
    return { authorization: `bearer ${unsigned}.${signature.toString('base64url')}`, issuedAtS };
  }
}

/** When the token of this half hour was issued. */
const turnS = (nowS: number): number => nowS - skewS - ((nowS - skewS) % slotS);

const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url');
