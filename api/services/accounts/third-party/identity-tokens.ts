import type { JSONWebKeySet, JWTVerifyGetKey } from 'jose';
import type { Clock } from '../../../../shared/clock.ts';
import { Refusal } from '../../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { identityOf } from '../../../../shared/domain/users/auth-data.ts';
import type {
  IdentityTokenCheck,
  PlatformConfirmation,
} from '../../../../shared/domain/users/auth-platforms.ts';
import { KeySets } from './key-sets.ts';
import type { PlatformClients } from './platform-clients.ts';

/** Tolerated difference between a platform's clock and this one. */
const clockToleranceSeconds = 30;

/** Result of a token: its subject, or that no key of the set signed it. */
type Verified = { subject: string | undefined } | 'unknown key';

/**
 * Verifies identity tokens (JWT) of platforms such as `lc_apple`: signature by the platform's key set, algorithm,
 * audience, issuer, expiry and subject (protocol/users.md#checked-platforms). Ignores key URLs inside a token.
 */
export class IdentityTokens {
  readonly #keySets: KeySets;
  readonly #clock: Clock;

  constructor(clients: PlatformClients, clock: Clock) {
    this.#keySets = new KeySets(clients, clock);
    this.#clock = clock;
  }

  /** Returns undefined when the token does not prove the entry's `uid`. Throws 503 when the keys cannot be fetched. */
  async check(entry: JsonObject, settings: IdentityTokenCheck): Promise<PlatformConfirmation | undefined> {
    const { identity_token: token } = entry;
    if (typeof token !== 'string') return undefined;
    const { uid } = identityOf('', entry);
    const keys = await this.#keySets.current(settings);
    let verified = await this.#verify(token, settings, keys);
    if (verified === 'unknown key') {
      // The platform may have rotated its keys.
      const newer = await this.#keySets.newerThan(keys, settings);
      if (newer) verified = await this.#verify(token, settings, newer);
    }
    return verified !== 'unknown key' && verified.subject === uid ? {} : undefined;
  }

  async #verify(token: string, settings: IdentityTokenCheck, keys: JSONWebKeySet): Promise<Verified> {
    // With the first token: few services use such platforms.
    const { createLocalJWKSet, errors } = await import('jose');
    try {
      return { subject: await this.#subjectOf(token, settings, createLocalJWKSet(keys)) };
    } catch (error) {
      const isOtherKey =
        error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWSSignatureVerificationFailed;
      if (isOtherKey) return 'unknown key';
      if (error instanceof errors.JOSEError) return { subject: undefined };
      // A key of the set is malformed. That says nothing about the token.
      throw new Refusal('unavailable', {
        text: 'A key of the platform cannot be used.',
        retryAfterSeconds: 5,
      });
    }
  }

  async #subjectOf(
    token: string,
    settings: IdentityTokenCheck,
    keys: JWTVerifyGetKey,
  ): Promise<string | undefined> {
    const { jwtVerify, errors } = await import('jose');
    const options = {
      algorithms: settings.algorithms,
      audience: settings.audience,
      issuer: settings.issuer,
      requiredClaims: ['exp', 'sub'],
      clockTolerance: clockToleranceSeconds,
      currentDate: new Date(this.#clock.now()),
    };
    try {
      return (await jwtVerify(token, keys, options)).payload.sub;
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
      // A token that names no key, and a set with several: one of them may have signed it.
      for await (const key of error) {
        const verified = await jwtVerify(token, key, options).catch((failure: unknown) => {
          if (!(failure instanceof errors.JWSSignatureVerificationFailed)) throw failure;
        });
        if (verified) return verified.payload.sub;
      }
      throw new errors.JWKSNoMatchingKey();
    }
  }
}
