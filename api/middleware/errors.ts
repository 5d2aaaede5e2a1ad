import type { Context, Middleware } from 'koa';
import { SealError } from '../../shared/crypto.ts';
import {
  isConnectionFailure,
  isInvalidValue,
  isStatementTimeout,
  isUndefinedTable,
} from '../../shared/db/limits/database-errors.ts';
import { ResultTooLarge } from '../../shared/db/limits/transaction.ts';
import { detailOf } from '../../shared/domain/errors/details.ts';
import { Refusal } from '../../shared/domain/errors/errors.ts';
import { messageIn } from '../../shared/domain/errors/errors-zh.ts';
import { QueueFull } from '../../shared/semaphore.ts';
import { languageOf } from './language.ts';

/** Paths whose refusals carry their name, with which the console finds its own text (protocol/admin-api.md#errors). */
const adminApi = '/console/api/';
const refusalHeader = 'X-Carillon-Refusal';
const detailHeader = 'X-Carillon-Refusal-Detail';
/** Longest header: proxies refuse replies with more than a few kilobytes of them. */
const maxDetailLength = 4096;

/**
 * Writes all error replies: `{"code","error"}` with the status of the table (protocol/errors.md#error-replies). The cause
 * goes to the log, never to the client.
 */
export const errors: Middleware = async (ctx, next) => {
  try {
    await next();
    if (ctx.status === 404 && ctx.body === undefined) throw new Refusal('notFound');
    // The router answers 501 for a method that no route has.
    if ((ctx.status === 405 || ctx.status === 501) && ctx.body === undefined)
      throw new Refusal('methodNotAllowed');
  } catch (error) {
    const refusal = toRefusal(error);
    writeRefusal(ctx, refusal);
    if (refusal.status >= 500) ctx.state.failure = refusal.cause ?? error;
    ctx.state.refusal = refusal;
  }
};

function writeRefusal(ctx: Context, refusal: Refusal): void {
  ctx.status = refusal.status;
  ctx.body = { code: refusal.code, error: messageIn(languageOf(ctx), refusal) };
  ctx.vary('Accept-Language');
  if (ctx.path.startsWith(adminApi)) nameRefusal(ctx, refusal);
  // Do not wait for the rest of the body.
  if (refusal.kind === 'requestTimeout') ctx.set('Connection', 'close');
  if (refusal.retryAfterSeconds !== undefined) ctx.set('Retry-After', String(refusal.retryAfterSeconds));
}

/** Names a refusal in headers, and the text of its own as a code with members: a header has ASCII only. */
function nameRefusal(ctx: Context, { kind, hasOwnText, message }: Refusal): void {
  ctx.set(refusalHeader, kind);
  const detail = hasOwnText ? detailOf(message) : undefined;
  const encoded = detail && encodeURIComponent(JSON.stringify(detail));
  if (encoded && encoded.length <= maxDetailLength) ctx.set(detailHeader, encoded);
}

/** Returns the refusal for an error; an unknown error is 500. */
export function toRefusal(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  if (error instanceof QueueFull)
    return new Refusal(error.isOfKey ? 'tooManyRequests' : 'unavailable', {
      cause: error,
      retryAfterSeconds: 1,
    });
  if (error instanceof ResultTooLarge)
    return new Refusal('tooLarge', {
      text: 'The reply would be too large: ask for fewer rows, or include fewer names.',
      cause: error,
    });
  if (error instanceof SealError || isUndefinedTable(error))
    return new Refusal('misconfigured', { cause: error, retryAfterSeconds: 60 });
  if (isStatementTimeout(error)) return new Refusal('timedOut', { cause: error });
  if (isInvalidValue(error)) return new Refusal('incorrectType', { cause: error });
  if (isConnectionFailure(error)) return new Refusal('unavailable', { cause: error, retryAfterSeconds: 1 });
  if (error instanceof URIError)
    return new Refusal('invalidParameter', { text: 'Malformed URL.', cause: error });
  return new Refusal('internal', { cause: error });
}
