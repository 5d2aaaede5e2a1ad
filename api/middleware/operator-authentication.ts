import type { Context } from 'koa';
import type { Clock } from '../../shared/clock.ts';
import { isBearer } from '../../shared/crypto.ts';
import { Refusal } from '../../shared/domain/errors/errors.ts';
import { originKey } from '../channel/admission.ts';

/** Wrong tokens of one address in a window; one more and the window is closed to it. */
const maxFailedAttempts = 10;
const windowMs = 60_000;
/** Addresses that are remembered; of more the one that began first is forgotten. */
const defaultMaxAddresses = 10_000;

interface FailedAttempts {
  count: number;
  endsAtMs: number;
}

/**
 * Lets the operator in: `Authorization: Bearer <CARILLON_ADMIN_TOKEN>` (protocol/admin-api.md#errors).
 *
 * After ten wrong tokens within a minute an address (of IPv6 a /64) gets 429 for the rest of that minute, the right
 * token too: otherwise guesses could go on, and the right one would show. Each process counts for itself. Callers that
 * share an address share the count, so behind a proxy `TRUSTED_PROXIES` has to be set.
 */
export class OperatorAuthenticator {
  readonly #adminToken: string;
  readonly #clock: Clock;
  readonly #maxAddresses: number;
  readonly #failures = new Map<string, FailedAttempts>();

  constructor({
    adminToken,
    clock,
    maxAddresses = defaultMaxAddresses,
  }: { adminToken: string; clock: Clock; maxAddresses?: number }) {
    this.#adminToken = adminToken;
    this.#clock = clock;
    this.#maxAddresses = maxAddresses;
  }

  /** Throws 401, 429 with the seconds left, and 415 for a body that is not `application/json`. */
  authenticate(ctx: Context): void {
    const sent = ctx.get('authorization');
    const origin = originKey(ctx.ip);
    this.#checkFailures(origin);
    if (!isBearer(sent, this.#adminToken)) {
      // What holds no token is no guess.
      if (/^Bearer ./i.test(sent)) this.#countFailure(origin);
      throw new Refusal('unauthorized');
    }
    // A page of another origin can send a form or a text without a preflight, but not this type.
    if (hasBody(ctx) && !ctx.is('application/json'))
      throw new Refusal('unsupportedMediaType', {
        text: 'The admin API takes bodies of the content type application/json.',
      });
  }

  #checkFailures(origin: string): void {
    const known = this.#failures.get(origin);
    if (!known) return;
    const leftMs = known.endsAtMs - this.#clock.monotonicMs();
    if (leftMs <= 0) this.#failures.delete(origin);
    else if (known.count >= maxFailedAttempts)
      throw new Refusal('tooManyRequests', {
        text: 'Too many wrong tokens from this address.',
        retryAfterSeconds: Math.ceil(leftMs / 1000),
      });
  }

  #countFailure(origin: string): void {
    const known = this.#failures.get(origin);
    if (known) {
      known.count += 1;
      return;
    }
    const [oldest] = this.#failures.keys();
    if (oldest !== undefined && this.#failures.size >= this.#maxAddresses) this.#failures.delete(oldest);
    this.#failures.set(origin, { count: 1, endsAtMs: this.#clock.monotonicMs() + windowMs });
  }
}

const hasBody = (ctx: Context): boolean =>
  Number(ctx.get('content-length')) > 0 || ctx.get('transfer-encoding') !== '';
