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

/**
 * Age after which a key set is fetched again, so that keys which the platform removed become
 * invalid.
 */
const maxAgeMs = 10 * 60_000;
/**
 * Minimum interval between fetches. A token with an unknown key can cause a fetch earlier than
 * `maxAgeMs`.
 */
const minRefetchMs = 30_000;
/** Minimum interval after a failed fetch. */
const retryMs = 1_000;
const maxKeySets = 100;

/** Key set with at least one public key. An empty set must not replace a good set. */
const keySet = z.object({
  keys: z
    .array(z.looseObject({ kty: z.string() }))
    .refine((keys) => keys.some(({ kty }) => ['RSA', 'EC', 'OKP'].includes(kty))),
});

interface CachedSet {
  /** Last good set of the platform. Undefined before the first successful fetch. */
  keys?: JSONWebKeySet;
  fetchedAtMs: number;
  triedAtMs: number;
  /** Error of the last fetch. Undefined if the fetch succeeded. */
  failure?: Error | undefined;
  /** Fetch in progress, which all calls share. */
  pending?: Promise<void> | undefined;
}

/**
 * Public keys of platforms. A key set stays until a fetch returns a good one, so failed fetches and
 * empty sets do not stop logins (protocol/users.md#checked-platforms).
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
   * Returns the keys of a platform. They are at most ten minutes old if the platform answers.
   * Throws error 503 if no set was ever fetched.
   */
  async current(settings: IdentityTokenCheck): Promise<JSONWebKeySet> {
    if (settings.jwks) return settings.jwks;
    const entry = this.#entryOf(settings);
    const ageMs = this.#clock.monotonicMs() - entry.fetchedAtMs;
    const isOld = ageMs > maxAgeMs && this.#mayFetch(entry);
    if (!entry.keys || isOld) {
      // A login waits for the fetch only if the previous fetch succeeded.
      const hasFailed = entry.failure !== undefined;
      const refreshed = this.#refresh(entry, settings);
      if (!entry.keys || !hasFailed) await refreshed;
    }
    return entry.keys ?? noKeys(entry);
  }

  /**
   * Returns a key set other than `used`, which may contain the missing key: the cached set if it
   * differs, otherwise a fetched set. Returns undefined if the platform has recently published no
   * other set. Throws error 503 if the fetch failed.
   */
  async newerThan(
    used: JSONWebKeySet,
    settings: IdentityTokenCheck,
  ): Promise<JSONWebKeySet | undefined> {
    if (settings.jwks) return undefined;
    const entry = this.#entryOf(settings);
    if (entry.keys === used && (entry.pending || this.#mayFetch(entry)))
      await this.#refresh(entry, settings);
    if (entry.keys !== used) return entry.keys;
    return entry.failure ? noKeys(entry) : undefined;
  }

  #mayFetch({ triedAtMs, failure }: CachedSet): boolean {
    return this.#clock.monotonicMs() - triedAtMs > (failure ? retryMs : minRefetchMs);
  }

  /**
   * Fetches the set once for all waiting calls. Never rejects: if the fetch fails, the cached set
   * stays.
   */
  #refresh(entry: CachedSet, settings: IdentityTokenCheck): Promise<void> {
    entry.pending ??= this.#fetch(settings)
      .then(
        (keys) =>
          Object.assign(entry, {
            keys,
            fetchedAtMs: this.#clock.monotonicMs(),
            failure: undefined,
          }),
        (error: unknown) => Object.assign(entry, { failure: causeOf(error, settings) }),
      )
      .then(() => {
        entry.triedAtMs = this.#clock.monotonicMs();
        entry.pending = undefined;
      });
    return entry.pending;
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
    // Apps with different certificates do not share keys, because one app may trust a server that
    // another app does not trust.
    const key = `${jwksUrl} ${ca}`;
    const entry = this.#cache.get(key) ?? {
      fetchedAtMs: -Infinity,
      triedAtMs: -Infinity,
    };
    // Moves the entry to the end, so that the least recently used set is evicted first.
    this.#cache.delete(key);
    this.#cache.set(key, entry);
    const [oldest] = this.#cache;
    if (oldest && this.#cache.size > maxKeySets) this.#cache.delete(oldest[0]);
    return entry;
  }
}

/**
 * Returns the cause of a failed fetch: the platform's missing reply, or a document that is not a
 * key set.
 */
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

/** Tolerated difference between a platform's clock and the local clock. */
const clockToleranceSeconds = 30;

/** Result of a verification: the token's subject, or that no key of the set signed the token. */
type Verified = { subject: string | undefined } | 'unknown key';

/**
 * Verifies identity tokens (JWT) of platforms such as `lc_apple`. Checks signature, algorithm,
 * audience, issuer, expiry and subject (protocol/users.md#checked-platforms). Ignores key URLs
 * inside a token.
 */
export class IdentityTokens {
  readonly #keySets: KeySets;
  readonly #clock: Clock;

  constructor(clients: PlatformClients, clock: Clock) {
    this.#keySets = new KeySets(clients, clock);
    this.#clock = clock;
  }

  /**
   * Returns undefined if the token does not prove the entry's `uid`. Throws error 503 if the keys
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
    // Imported with the first token, because few services use such platforms.
    const { createLocalJWKSet, errors } = await import('jose');
    try {
      return { subject: await this.#subjectOf(token, settings, createLocalJWKSet(keys)) };
    } catch (error) {
      const isOtherKey =
        error instanceof errors.JWKSNoMatchingKey ||
        error instanceof errors.JWSSignatureVerificationFailed;
      if (isOtherKey) return 'unknown key';
      if (error instanceof errors.JOSEError) return { subject: undefined };
      // A key of the set is malformed. This says nothing about the token.
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
      // The token names no key and the set has several keys. Any of them may have signed the token.
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
