import cors from '@koa/cors';
import type { Middleware } from 'koa';

/**
 * Browsers may call the public API from any origin (compat.md 2.2): what they ask for in the preflight is
 * granted, since the keys, not the origin, decide. The admin API is for our own console and gets none.
 */
export function allowBrowsers(): Middleware {
  const allow = cors({
    origin: (ctx) => ctx.get('Origin') || '*',
    allowMethods: ['HEAD', 'GET', 'POST', 'PUT', 'DELETE', 'OPTIONS'],
    exposeHeaders: ['Location', 'Retry-After'],
    maxAge: 86_400,
    keepHeadersOnError: true,
  });
  return (ctx, next) => (ctx.path.startsWith('/console') ? next() : allow(ctx, next));
}
