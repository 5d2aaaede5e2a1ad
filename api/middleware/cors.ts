import cors from '@koa/cors';
import type { Middleware } from 'koa';

/** Paths of the admin API, in any case: the router takes them so. A test looks at each of its routes. */
const adminPaths = /^\/console(?:\/|$)/i;

/**
 * Browsers may call the public API from any origin (protocol/clients.md#cross-origin-requests): what they ask for in the preflight is
 * granted, since the keys, not the origin, decide. The admin API is for our own console and gets none.
 */
export function allowCrossOrigin(): Middleware {
  const allow = cors({
    origin: (ctx) => ctx.get('Origin') || '*',
    allowMethods: ['HEAD', 'GET', 'POST', 'PUT', 'DELETE', 'OPTIONS'],
    exposeHeaders: ['Location', 'Retry-After'],
    maxAge: 86_400,
    keepHeadersOnError: true,
  });
  return (ctx, next) => (adminPaths.test(ctx.path) ? next() : allow(ctx, next));
}
