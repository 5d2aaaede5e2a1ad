import type { Context } from 'koa';
import type { Clock } from '../../shared/clock.ts';
import { isBearer } from '../../shared/crypto.ts';
import { Refusal } from '../../shared/domain/errors/errors.ts';
import { originKey } from '../channel/admission.ts';

/** Wrong tokens of one IP address within a window, after which its calls are refused. */
const maxFailedAttempts = 10;
const windowMs = 60_000;
/** IP addresses that are counted; a further one replaces the oldest. */
const defaultMaxAddresses = 10_000;

interface FailedAttempts {
  count: number;
  endsAtMs: number;
}

/**
 * Authenticates the operator: `Authorization: Bearer <CARILLON_ADMIN_TOKEN>` (protocol/admin-api.md#errors).
 *
 * After ten wrong tokens within a minute an IP address (of IPv6 a /64) gets 429 for the rest of that minute, also with the
 * right token, so that guessing cannot go on. Each process counts for itself. Callers that share an address share the
 * count, so an instance behind a proxy needs `TRUSTED_PROXIES`.
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
      // A request without a token is no attempt.
      if (/^Bearer ./i.test(sent)) this.#countFailure(origin);
      throw new Refusal('unauthorized');
    }
    // A page of another origin can send forms and texts without a preflight, but not JSON.
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
