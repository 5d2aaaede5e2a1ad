import cors from '@koa/cors';
import type { Middleware } from 'koa';

/** Paths of the admin API, in upper or lower case as the router matches them. A test tries each of its routes. */
const adminPaths = /^\/console(?:\/|$)/i;

/**
 * Lets browsers call the public API from any origin (protocol/clients.md#cross-origin-requests): keys decide, not origins.
 * The admin API allows no other origin.
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
