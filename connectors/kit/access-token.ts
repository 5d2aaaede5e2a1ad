/**
 * Access tokens that are fetched by a call (develop/architecture.md#access-tokens). Each sender has
 * one instance. All threads and dispatchers share a token through the store. One thread renews the
 * token before it expires.
 */

import { createPrivateKey } from 'node:crypto';
import { retryMs } from '../../shared/backoff.ts';
import { type Clock, dayMs, minuteMs, sleep } from '../../shared/clock.ts';
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import type { Hint } from '../../shared/domain/reasons.ts';
import { type HttpResult, isTemporaryStatus } from '../../shared/http/result.ts';
import type {
  AttemptResult,
  GatewayCheck,
  StoredToken,
  TokenStore,
} from '../contract/connector.ts';
import {
  delayingReactions,
  profileError,
  type ResponseRule,
  retry,
  unanswered,
} from './response-rules.ts';
import { parseObject } from './values.ts';

/**
 * Access token of a gateway. `lifetimeMs` is the time for which the token is used. It may be
 * shorter than the lifetime that the gateway grants.
 */
interface TokenGrant {
  value: string;
  lifetimeMs: number;
}

/** Result of a token call. */
export type TokenFetch = ({ ok: true } & TokenGrant) | { ok: false; attempt: AttemptResult };

/** Access token, or the result for all recipients if no token is available (`retry` or `profile_error`). */
type TokenResult = { ok: true; value: string } | { ok: false; attempt: AttemptResult };

interface AccessTokensOptions {
  store: TokenStore;
  clock: Clock;
  /**
   * Text that differs between credentials and hosts of the token call. Only its digest is stored.
   */
  credential: string;
  /** Calls the gateway once. Must not throw. */
  fetch(): Promise<TokenFetch>;
}

/**
 * A token is renewed when this lifetime is left, or a quarter of its lifetime if that is shorter.
 */
const renewBeforeMs = 5 * minuteMs;
/** Maximum lifetime of a token. No vendor grants more than a day, and a longer time may be no date. */
const maxLifetimeMs = 30 * dayMs;
/**
 * Maximum duration of a claim to renew the token. It is longer than any token call. If a process
 * crashes during its call, another process may renew the token after this time.
 */
const leaseMs = 20_000;
const pollMs = 100;
/** If a replaced token is refused within this time, the credentials are wrong, not the token. */
const proofMs = minuteMs;
/** Waits between failed token calls. */
const callWaits = { firstMs: 1000, maxMs: minuteMs, maxRequestedMs: dayMs };

export class AccessTokens {
  readonly #options: AccessTokensOptions;
  #current: StoredToken | null = null;
  /** Token that the gateway refused and that the renewal in progress replaces. */
  #refused: string | null = null;
  #inFlight: Promise<TokenResult> | null = null;
  /**
   * Failed token calls in a row: the last result, and when the next call is allowed (`untilMs`,
   * monotonic).
   */
  #failure: {
    attempt: Extract<AttemptResult, { kind: 'retry' }>;
    count: number;
    untilMs: number;
  } | null = null;

  constructor(options: AccessTokensOptions) {
    this.#options = options;
  }

  /**
   * Returns the token. Renews it first if it has expired, and in the background if it expires soon.
   */
  current(): Promise<TokenResult> {
    const nowMs = this.#options.clock.now();
    const token = this.#current;
    if (token === null || token.expiresAtMs <= nowMs) return this.#obtain();
    if (renewAtMs(token) <= nowMs) void this.#obtain();
    return Promise.resolve({ ok: true, value: token.value });
  }

  /** Fetches a token to check the credentials, without storing it. */
  async check(): Promise<GatewayCheck> {
    const fetched = await this.#options.fetch();
    return fetched.ok ? { ok: true, gave: 'token' } : fetched;
  }

  /**
   * Replaces a token that the gateway refused, once for all threads that report the same refusal.
   * Returns null if the refused token was already a replacement: the credentials are wrong.
   */
  async replace(value: string): Promise<TokenResult | null> {
    const { clock, credential, store } = this.#options;
    const current = this.#current;
    if (current !== null && current.value !== value && current.expiresAtMs > clock.now())
      return { ok: true, value: current.value };
    const kept = await store.read(credential).catch(() => null);
    if (kept?.value === value && kept.isReplacement && clock.now() - kept.madeAtMs < proofMs)
      return null;
    this.#current = null;
    // A renewal that is in progress must not fall back to this token.
    this.#refused = value;
    return this.#obtain();
  }

  #obtain(): Promise<TokenResult> {
    this.#inFlight ??= this.#share()
      .catch(
        () => ({ ok: false, attempt: retry(0, 'token_store_unavailable') }) satisfies TokenResult,
      )
      .finally(() => {
        this.#inFlight = null;
        this.#refused = null;
      });
    return this.#inFlight;
  }

  /** Returns the token that another thread has renewed, or renews the token for all threads. */
  async #share(): Promise<TokenResult> {
    const { clock, credential, store } = this.#options;
    const endsAtMs = clock.monotonicMs() + leaseMs;
    for (;;) {
      const kept = await store.read(credential);
      if (this.#take(kept)) break;
      const result = await this.#tryRenew();
      if (result?.ok) return result;
      // While no new token can be fetched, the old one is used until it expires.
      if (result?.attempt.kind !== 'profile_error' && this.#take(kept, expiryMs)) break;
      if (result) return result;
      if (clock.monotonicMs() > endsAtMs)
        return { ok: false, attempt: retry(0, 'token_call_pending') };
      await sleep(pollMs);
    }
    return { ok: true, value: this.#current?.value ?? '' };
  }

  /**
   * Renews the token. Returns the last failure if it is too early for another call. Returns
   * undefined while another thread renews the token.
   */
  async #tryRenew(): Promise<TokenResult | undefined> {
    const { credential, store } = this.#options;
    const failure = this.#recentFailure();
    if (failure) return { ok: false, attempt: failure };
    return (await store.claim(credential, leaseMs)) ? this.#renew() : undefined;
  }

  /** Uses a stored token if the time that `endMs` returns has not come. */
  #take(kept: StoredToken | null, endMs = renewAtMs): boolean {
    if (kept === null || kept.value === this.#refused || endMs(kept) <= this.#options.clock.now())
      return false;
    this.#current = kept;
    return true;
  }

  async #renew(): Promise<TokenResult> {
    const { clock, credential, fetch, store } = this.#options;
    try {
      // Another thread may have renewed the token between our read and our claim.
      if (this.#take(await store.read(credential))) {
        await store.release(credential);
        return { ok: true, value: this.#current?.value ?? '' };
      }
      const fetched = await fetch();
      this.#recordResult(fetched);
      if (!fetched.ok) {
        await store.release(credential);
        return fetched;
      }
      const madeAtMs = clock.now();
      const { value, lifetimeMs } = fetched;
      const token = {
        value,
        madeAtMs,
        expiresAtMs: madeAtMs + Math.min(lifetimeMs, maxLifetimeMs),
        isReplacement: this.#refused !== null,
      };
      this.#current = token;
      await store.keep(credential, token);
      return { ok: true, value };
    } catch (error) {
      await store.release(credential).catch(() => undefined);
      throw error;
    }
  }

  /**
   * Returns the result of the last failed call until the next call is allowed. Otherwise each batch
   * would make a call.
   */
  #recentFailure(): AttemptResult | undefined {
    if (this.#failure === null) return undefined;
    const leftMs = this.#failure.untilMs - this.#options.clock.monotonicMs();
    return leftMs > 0 ? { ...this.#failure.attempt, afterMs: Math.ceil(leftMs) } : undefined;
  }

  /**
   * Records the result of a token call. After a temporary failure, the next call waits (`retryMs`).
   */
  #recordResult(fetched: TokenFetch): void {
    if (fetched.ok || fetched.attempt.kind !== 'retry' || fetched.attempt.afterMs === 0) {
      this.#failure = null;
      return;
    }
    const { attempt } = fetched;
    const count = this.#failure?.count ?? 0;
    const untilMs = this.#options.clock.monotonicMs() + retryMs(count, attempt.afterMs, callWaits);
    this.#failure = { attempt, count: count + 1, untilMs };
  }
}

const expiryMs = ({ expiresAtMs }: StoredToken): number => expiresAtMs;
const renewAtMs = ({ madeAtMs, expiresAtMs }: StoredToken): number =>
  expiresAtMs - Math.min(renewBeforeMs, (expiresAtMs - madeAtMs) / 4);

/**
 * Returns the result of a token call. `read` parses a JSON body and returns the token, the result
 * of a refusal, or null if it does not know the body. `hint` tells the operator what to check after
 * an OAuth error. A body that does not come from the gateway says nothing about the credentials, so
 * the call is repeated later.
 */
export function tokenFromReply(
  reply: HttpResult,
  read: (body: JsonObject, status: number) => TokenGrant | AttemptResult | null,
  hint?: Hint,
): TokenFetch {
  // A token call is idempotent, so it can be repeated if there was no response.
  if (reply.kind !== 'response')
    return { ok: false, attempt: unanswered({ ...reply, kind: 'not_sent' }, false) };
  const { retryAfterMs, status } = reply;
  const body = isTemporaryStatus(status) ? undefined : parseObject(reply.body);
  const found = body ? read(body, status) : null;
  if (found && !('value' in found)) return { ok: false, attempt: found };
  if (found && status < 300) return { ok: true, ...found };
  if (body && isOAuthError(body))
    return {
      ok: false,
      attempt: profileError(status, 'credentials_refused', hint ?? refusalHint(status)),
    };
  const reason = status < 300 ? 'token_reply_unreadable' : 'token_call_refused';
  return { ok: false, attempt: retry(status, reason, retryAfterMs) };
}

const refusalHint = (status: number): Hint => ({ code: 'credentialsRefused', params: { status } });

/** True if a value is a string of visible characters, as a header requires. */
export const isToken = (value: Json | undefined): value is string =>
  typeof value === 'string' && /^[!-~]+$/.test(value);

/** Returns the token of an OAuth 2.0 body (RFC 6749 section 5.1), or null. */
export const oauthGrant = ({
  access_token: value,
  expires_in: seconds,
}: JsonObject): TokenGrant | null =>
  isToken(value) && typeof seconds === 'number' && seconds > 0
    ? { value, lifetimeMs: seconds * 1000 }
    : null;

/**
 * Errors of token calls that say nothing about the credentials (RFC 6749 section 4.1.2.1, Google).
 */
const temporaryErrors = new Set([
  'temporarily_unavailable',
  'server_error',
  'internal_failure',
  'slow_down',
]);

/**
 * True if a body refuses the credentials: by a code of RFC 6749, by a number of Huawei, or by
 * Google's error object. JSON errors of proxies look different: a status (404), a word
 * ("forbidden") or a text ("Not Found").
 */
function isOAuthError({ error }: JsonObject): boolean {
  if (isJsonObject(error)) return typeof error.status === 'string';
  const code = String(error ?? '');
  return /^([a-z]+(_[a-z]+)+|\d{4,})$/.test(code) && !temporaryErrors.has(code);
}

/**
 * Returns the result of a refusal by its rule. Returns null if the code is unknown, because it
 * proves nothing.
 */
export function tokenRefusal(rule: ResponseRule, status: number, hint: Hint): AttemptResult | null {
  if (rule.reason === 'unknown_code' || rule.reaction === 'sent') return null;
  if (delayingReactions.has(rule.reaction)) return retry(status, rule.reason, rule.afterMs);
  return profileError(status, rule.reason, rule.hint ?? hint);
}

/** Signing key of a service account: an RSA key in PEM, and its id. */
interface SigningKey {
  algorithm: 'PS256' | 'RS256';
  keyId: string;
  privateKey: string;
}

/** Tolerated clock error in seconds. Gateways refuse an assertion from the future. */
export const skewS = 30;

/**
 * Signs a JWT. It is valid for `lifetimeS` seconds and starts slightly before `nowS` (epoch
 * seconds).
 */
export async function signJwt(
  { algorithm, keyId, privateKey }: SigningKey,
  {
    nowS,
    lifetimeS,
    ...claims
  }: { nowS: number; lifetimeS: number; iss: string; aud: string; scope?: string },
): Promise<string> {
  // Loaded on demand, because only one thread signs and each thread would need the memory.
  const { importPKCS8, SignJWT } = await import('jose');
  // Converts keys in other formats to PKCS#8.
  const pem = createPrivateKey(privateKey).export({ type: 'pkcs8', format: 'pem' }).toString();
  return new SignJWT({ ...claims, iat: nowS - skewS, exp: nowS - skewS + lifetimeS })
    .setProtectedHeader({ alg: algorithm, typ: 'JWT', kid: keyId })
    .sign(await importPKCS8(pem, algorithm));
}
