import cors from '@koa/cors';
import type { Middleware } from 'koa';

/**
 * Paths of the admin API. Other spellings match no route and get no CORS headers. A test checks
 * each of its routes.
 */
const adminPaths = /^\/console(?:\/|$)/i;

/**
 * Lets browsers call the public API from any origin (protocol/clients.md#cross-origin-requests),
 * because access depends on keys, not on origins. The admin API allows no other origin.
 */
export function allowCrossOrigin(): Middleware {
  const answerPreflight = cors({
    origin: (ctx) => ctx.get('Origin') || '*',
    allowMethods: ['HEAD', 'GET', 'POST', 'PUT', 'DELETE', 'OPTIONS'],
    maxAge: 86_400,
  });
  return (ctx, next) => {
    if (adminPaths.test(ctx.path)) return next();
    if (ctx.method === 'OPTIONS') return answerPreflight(ctx, next);
    ctx.vary('Origin');
    ctx.res.setHeader('Access-Control-Allow-Origin', ctx.req.headers.origin || '*');
    ctx.res.setHeader('Access-Control-Expose-Headers', 'Location,Retry-After');
    return next();
  };
}
