import type { JSONWebKeySet, JWTVerifyGetKey } from 'jose';
import { z } from 'zod';
import type { Clock } from '../../../../shared/clock.ts';
import { Refusal } from '../../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { identityOf } from '../../../../shared/domain/users/auth-data.ts';
import type {
  IdentityTokenCheck,
  PlatformConfirmation,
} from '../../../../shared/domain/users/auth-platforms.ts';
import type { PlatformClients } from './platform-clients.ts';

/** Lifetime of a cached key set. A token with an unknown key refreshes it earlier, but at most every `minRefetchMs`. */
const maxAgeMs = 10 * 60_000;
const minRefetchMs = 30_000;
const maxKeySets = 100;
/** Tolerated difference between a platform's clock and this one. */
const clockToleranceSeconds = 30;

const keySet = z.object({ keys: z.array(z.looseObject({ kty: z.string() })) });

interface CachedKeys {
  keys: Promise<JSONWebKeySet>;
  fetchedAtMs: number;
}

/**
 * Verifies identity tokens (JWT) of platforms such as `lc_apple`: signature by the platform's key set, algorithm,
 * audience, issuer, expiry and subject (protocol/users.md#checked-platforms). Ignores key URLs inside a token.
 */
export class IdentityTokens {
  readonly #clients: PlatformClients;
  readonly #clock: Clock;
  readonly #cache = new Map<string, CachedKeys>();

  constructor(clients: PlatformClients, clock: Clock) {
    this.#clients = clients;
    this.#clock = clock;
  }

  /** Returns undefined when the token does not prove the entry's `uid`. Throws 503 when the keys cannot be fetched. */
  async check(entry: JsonObject, settings: IdentityTokenCheck): Promise<PlatformConfirmation | undefined> {
    const { identity_token: token } = entry;
    if (typeof token !== 'string') return undefined;
    const { uid } = identityOf('', entry);
    const subject = await this.#subjectOf(token, settings);
    return subject !== undefined && subject === uid ? {} : undefined;
  }

  async #subjectOf(token: string, settings: IdentityTokenCheck): Promise<string | undefined> {
    // With the first token: few services use such platforms.
    const { createLocalJWKSet, errors } = await import('jose');
    try {
      return await this.#verify(token, settings, createLocalJWKSet(await this.#keys(settings)));
    } catch (error) {
      if (!(error instanceof errors.JOSEError)) throw error;
      if (!(error instanceof errors.JWKSNoMatchingKey) || !this.#mayRefetch(settings)) return undefined;
    }
    // The platform may have rotated its keys.
    this.#cache.delete(cacheKeyOf(settings));
    return this.#subjectOf(token, settings);
  }

  async #verify(
    token: string,
    settings: IdentityTokenCheck,
    keys: JWTVerifyGetKey,
  ): Promise<string | undefined> {
    const { jwtVerify } = await import('jose');
    const { payload } = await jwtVerify(token, keys, {
      algorithms: settings.algorithms,
      audience: settings.audience,
      issuer: settings.issuer,
      requiredClaims: ['exp', 'sub'],
      clockTolerance: clockToleranceSeconds,
      currentDate: new Date(this.#clock.now()),
    });
    return payload.sub;
  }

  #mayRefetch(settings: IdentityTokenCheck): boolean {
    const known = this.#cache.get(cacheKeyOf(settings));
    return (
      settings.jwks === undefined &&
      known !== undefined &&
      this.#clock.monotonicMs() - known.fetchedAtMs > minRefetchMs
    );
  }

  #keys(settings: IdentityTokenCheck): Promise<JSONWebKeySet> {
    const { jwks, jwksUrl, ca } = settings;
    if (jwks) return Promise.resolve(jwks);
    const key = cacheKeyOf(settings);
    const nowMs = this.#clock.monotonicMs();
    const known = this.#cache.get(key);
    if (known && nowMs - known.fetchedAtMs < maxAgeMs) return known.keys;
    if (this.#cache.size >= maxKeySets) this.#cache.clear();
    const keys = this.#fetch(jwksUrl, ca);
    this.#cache.set(key, { keys, fetchedAtMs: nowMs });
    keys.catch(() => this.#cache.delete(key));
    return keys;
  }

  async #fetch(jwksUrl: string, ca: string | undefined): Promise<JSONWebKeySet> {
    const { origin, pathname, search } = new URL(jwksUrl);
    const reply = await this.#clients.fetchJson(
      { baseUrl: origin, ca },
      { method: 'GET', path: pathname + search },
    );
    const found = keySet.safeParse(reply);
    if (!found.success)
      throw new Refusal('unavailable', { text: 'The platform returned no keys.', retryAfterSeconds: 5 });
    return found.data;
  }
}

/**
 * Apps with another trust do not share keys: one of them may trust a server that the other does
 * not.
 */
const cacheKeyOf = ({ jwksUrl, ca = '' }: IdentityTokenCheck): string => `${jwksUrl} ${ca}`;
