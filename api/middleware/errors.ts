import type { Context, Middleware } from 'koa';
import { SealError } from '../../shared/crypto.ts';
import {
  isConnectionFailure,
  isDeadlock,
  isInvalidValue,
  isMissingReference,
  isStatementTimeout,
  isUndefinedTable,
} from '../../shared/db/limits/database-errors.ts';
import { ResultTooLarge } from '../../shared/db/limits/transaction.ts';
import { messageIn, operatorMessage, Refusal } from '../../shared/domain/errors/errors.ts';
import { detail, replyDetail } from '../../shared/domain/texts/texts.ts';
import { QueueFull } from '../../shared/semaphore.ts';

/** Returns the language of a reply by `Accept-Language`. English is the default. */
export const languageOf = (ctx: Context): 'en' | 'zh' =>
  // SDKs send no such header, and parsing it takes longer than most of a call.
  ctx.req.headers['accept-language'] !== undefined && ctx.acceptsLanguages('en', 'zh') === 'zh'
    ? 'zh'
    : 'en';

/**
 * Paths whose refusals have their name in a header. The console uses it to show its own text
 * (protocol/admin-api.md#errors).
 */
const adminApi = '/console/api/';
const refusalHeader = 'X-Carillon-Refusal';
const detailHeader = 'X-Carillon-Refusal-Detail';
/** Maximum length of a header. Proxies refuse replies with more than a few kilobytes of headers. */
const maxDetailLength = 4096;

/**
 * Writes all error replies: `{"code","error"}` with the status of the error table
 * (protocol/errors.md#error-replies). The cause is logged and never sent to the client.
 */
export const errors: Middleware = async (ctx, next) => {
  try {
    await next();
    if (ctx.status === 404 && ctx.body === undefined) throw new Refusal('notFound');
    // The router replies with 501 to a method that no route has.
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
  const isOfAdmin = ctx.path.startsWith(adminApi);
  const textOf = isOfAdmin ? operatorMessage : messageIn;
  ctx.body = { code: refusal.code, error: textOf(languageOf(ctx), refusal) };
  ctx.vary('Accept-Language');
  if (isOfAdmin) nameRefusal(ctx, refusal);
  // The connection must close, because the rest of the body is not read.
  if (refusal.kind === 'requestTimeout') ctx.set('Connection', 'close');
  if (refusal.retryAfterSeconds !== undefined)
    ctx.set('Retry-After', String(refusal.retryAfterSeconds));
}

/**
 * Adds the refusal's name to the headers, and the code and parameters of its detail. Headers are
 * ASCII only, so the detail is URL-encoded.
 */
function nameRefusal(ctx: Context, { kind, detail }: Refusal): void {
  ctx.set(refusalHeader, kind);
  const encoded = detail && encodeURIComponent(JSON.stringify(replyDetail(detail)));
  if (encoded && encoded.length <= maxDetailLength) ctx.set(detailHeader, encoded);
}

/** Returns the refusal for an error. An unknown error becomes 500. */
export function toRefusal(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  if (error instanceof QueueFull)
    return new Refusal(error.isOfKey ? 'tooManyRequests' : 'unavailable', {
      cause: error,
      retryAfterSeconds: 1,
    });
  if (error instanceof ResultTooLarge)
    return new Refusal('tooLarge', {
      text: detail('replyTooLarge'),
      cause: error,
    });
  if (error instanceof SealError || isUndefinedTable(error))
    return new Refusal('misconfigured', { cause: error, retryAfterSeconds: 60 });
  if (isStatementTimeout(error)) return new Refusal('timedOut', { cause: error });
  if (isInvalidValue(error)) return new Refusal('incorrectType', { cause: error });
  // A concurrent call deleted the app or the object to which a new row refers.
  if (isMissingReference(error)) return new Refusal('conflict', { cause: error });
  if (isConnectionFailure(error) || isDeadlock(error))
    return new Refusal('unavailable', { cause: error, retryAfterSeconds: 1 });
  if (error instanceof URIError)
    return new Refusal('invalidParameter', { text: detail('malformedUrl'), cause: error });
  return new Refusal('internal', { cause: error });
}
