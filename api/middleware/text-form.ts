import type { Middleware } from 'koa';
import type { JsonObject } from '../../shared/domain/json.ts';
import { readBody } from './body.ts';

/** Members of a text-form body that stand for headers (compat.md 2.3 "Text form"). */
const headerOfMember = new Map([
  ['_ApplicationId', 'x-lc-id'],
  ['_ApplicationKey', 'x-lc-key'],
  ['_MasterKey', 'x-avoscloud-master-key'],
  ['_ApplicationProduction', 'x-lc-prod'],
  ['_SessionToken', 'x-lc-session'],
]);

const allowedMethods = new Set(['GET', 'PUT', 'DELETE', 'POST']);

/**
 * Old browsers avoid the CORS preflight by sending `text/plain` with credentials and method inside the
 * body. Turned here into the request that was meant; members that begin with one `_` go no further.
 */
export const textForm: Middleware = async (ctx, next) => {
  const isCall = ctx.path.startsWith('/1.1/');
  if (isCall && ctx.method === 'POST' && !ctx.get('x-lc-id') && ctx.is('text/plain')) {
    const { value, bytes } = await readBody(ctx);
    for (const [member, header] of headerOfMember) {
      const sent = value[member];
      if (typeof sent === 'string' || typeof sent === 'number' || typeof sent === 'boolean')
        ctx.req.headers[header] = String(sent);
    }
    const rest = withoutPrivateMembers(value);
    const method = value._method;
    if (typeof method === 'string' && allowedMethods.has(method.toUpperCase())) {
      ctx.state.sentMethod = ctx.method;
      ctx.method = method.toUpperCase();
      if (ctx.method === 'GET') ctx.query = { ...ctx.query, ...asQuery(rest) };
    }
    ctx.state.parsedBody = { value: ctx.method === 'GET' ? {} : rest, bytes };
  }
  await next();
};

function withoutPrivateMembers(body: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(body).filter(([key]) => !key.startsWith('_') || key.startsWith('__')),
  );
}

function asQuery(body: JsonObject): Record<string, string> {
  return Object.fromEntries(
    Object.entries(body).map(([key, value]) => [
      key,
      typeof value === 'string' ? value : JSON.stringify(value),
    ]),
  );
}
