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
import { PeerError } from '../../../../shared/http/result.ts';
import type { PlatformClients } from './platform-clients.ts';

/** Age at which a set is fetched again, to find keys that the platform ended. */
const maxAgeMs = 10 * 60_000;
/** Pause after a fetch before a token with an unknown key makes another one. */
const minRefetchMs = 30_000;
/** The same after a fetch that failed. */
const retryMs = 1_000;
const maxKeySets = 100;

/** Set with at least one public key: an empty one replaces nothing. */
const keySet = z.object({
  keys: z
    .array(z.looseObject({ kty: z.string() }))
    .refine((keys) => keys.some(({ kty }) => ['RSA', 'EC', 'OKP'].includes(kty))),
});

interface CachedSet {
  /** Last good set of the platform; undefined before the first one. */
  keys?: JSONWebKeySet;
  fetchedAtMs: number;
  triedAtMs: number;
  /** Why the last fetch failed; undefined where it gave a set. */
  failure?: Error | undefined;
  /** Fetch in flight, which all calls share. */
  pending?: Promise<void> | undefined;
}

/**
 * Public keys of platforms. A set stays until a better one came: a failed fetch and an empty set
 * end no login (protocol/users.md#checked-platforms).
 */
class KeySets {
  readonly #clients: PlatformClients;
  readonly #clock: Clock;
  readonly #cache = new Map<string, CachedSet>();

  constructor(clients: PlatformClients, clock: Clock) {
    this.#clients = clients;
    this.#clock = clock;
  }

  /**
   * Returns the keys of a platform, at most ten minutes old if it answers. Throws 503 if there was
   * never a set.
   */
  async current(settings: IdentityTokenCheck): Promise<JSONWebKeySet> {
    if (settings.jwks) return settings.jwks;
    const known = this.#entryOf(settings);
    const ageMs = this.#clock.monotonicMs() - known.fetchedAtMs;
    const isOld = ageMs > maxAgeMs && this.#mayFetch(known);
    if (!known.keys || isOld) {
      // A login waits for a platform that answers, not for one that failed before.
      const hasFailed = known.failure !== undefined;
      const refreshed = this.#refresh(known, settings);
      if (!known.keys || !hasFailed) await refreshed;
    }
    return known.keys ?? noKeys(known);
  }

  /**
   * Returns a set that may have a key which `used` has not: the one in the cache if it is another,
   * else a fetched one. Returns undefined if the platform has published no other recently. Throws
   * 503 if the platform could not be asked.
   */
  async newerThan(
    used: JSONWebKeySet,
    settings: IdentityTokenCheck,
  ): Promise<JSONWebKeySet | undefined> {
    if (settings.jwks) return undefined;
    const known = this.#entryOf(settings);
    if (known.keys === used && (known.pending || this.#mayFetch(known)))
      await this.#refresh(known, settings);
    if (known.keys !== used) return known.keys;
    return known.failure ? noKeys(known) : undefined;
  }

  #mayFetch({ triedAtMs, failure }: CachedSet): boolean {
    return this.#clock.monotonicMs() - triedAtMs > (failure ? retryMs : minRefetchMs);
  }

  /**
   * Fetches the set once for all calls that wait. Never rejects: without a good set the known one
   * stays.
   */
  #refresh(known: CachedSet, settings: IdentityTokenCheck): Promise<void> {
    known.pending ??= this.#fetch(settings)
      .then(
        (keys) =>
          Object.assign(known, {
            keys,
            fetchedAtMs: this.#clock.monotonicMs(),
            failure: undefined,
          }),
        (error: unknown) => Object.assign(known, { failure: causeOf(error, settings) }),
      )
      .then(() => {
        known.triedAtMs = this.#clock.monotonicMs();
        known.pending = undefined;
      });
    return known.pending;
  }

  async #fetch({ jwksUrl, ca }: IdentityTokenCheck): Promise<JSONWebKeySet> {
    const { origin, pathname, search } = new URL(jwksUrl);
    return keySet.parse(
      await this.#clients.fetchJson(
        { baseUrl: origin, ca },
        { method: 'GET', path: pathname + search },
      ),
    );
  }

  #entryOf({ jwksUrl, ca = '' }: IdentityTokenCheck): CachedSet {
    // Apps with another trust do not share keys: one of them may trust a server that the other does
    // not.
    const key = `${jwksUrl} ${ca}`;
    const entry = this.#cache.get(key) ?? {
      fetchedAtMs: -Infinity,
      triedAtMs: -Infinity,
    };
    // The set that was used longest ago makes room.
    this.#cache.delete(key);
    this.#cache.set(key, entry);
    const [oldest] = this.#cache;
    if (oldest && this.#cache.size > maxKeySets) this.#cache.delete(oldest[0]);
    return entry;
  }
}

/** Returns what a fetch failed by: no answer of the platform, or a document that is no key set. */
const causeOf = (error: unknown, { jwksUrl }: IdentityTokenCheck): Error =>
  error instanceof Refusal && error.cause instanceof Error
    ? error.cause
    : new PeerError(jwksUrl, 'an answer that is no key set');

function noKeys({ failure }: CachedSet): never {
  throw new Refusal('unavailable', {
    text: 'The keys of the platform are not available.',
    retryAfterSeconds: 5,
    cause: failure,
  });
}

/** Tolerated difference between a platform's clock and this one. */
const clockToleranceSeconds = 30;

/** Result of a token: its subject, or that no key of the set signed it. */
type Verified = { subject: string | undefined } | 'unknown key';

/**
 * Verifies identity tokens (JWT) of platforms such as `lc_apple`: signature by the platform's key
 * set, algorithm, audience, issuer, expiry and subject (protocol/users.md#checked-platforms).
 * Ignores key URLs inside a token.
 */
export class IdentityTokens {
  readonly #keySets: KeySets;
  readonly #clock: Clock;

  constructor(clients: PlatformClients, clock: Clock) {
    this.#keySets = new KeySets(clients, clock);
    this.#clock = clock;
  }

  /**
   * Returns undefined when the token does not prove the entry's `uid`. Throws 503 when the keys
   * cannot be fetched.
   */
  async check(
    entry: JsonObject,
    settings: IdentityTokenCheck,
  ): Promise<PlatformConfirmation | undefined> {
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

  async #verify(
    token: string,
    settings: IdentityTokenCheck,
    keys: JSONWebKeySet,
  ): Promise<Verified> {
    // With the first token: few services use such platforms.
    const { createLocalJWKSet, errors } = await import('jose');
    try {
      return { subject: await this.#subjectOf(token, settings, createLocalJWKSet(keys)) };
    } catch (error) {
      const isOtherKey =
        error instanceof errors.JWKSNoMatchingKey ||
        error instanceof errors.JWSSignatureVerificationFailed;
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
