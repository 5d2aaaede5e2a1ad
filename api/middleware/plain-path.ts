import type { Middleware } from 'koa';
import { Refusal, refuse } from '../../shared/domain/errors/errors.ts';
import { isPlainPath } from '../../shared/domain/path.ts';
import { detail } from '../../shared/domain/texts/texts.ts';
import type { Route } from '../route.ts';
import { brokenLinkPage } from '../services/verification/links.ts';
import { languageOf } from './errors.ts';
import { showPage } from './pages/html-pages.ts';

/**
 * Throws error 1 if a browser or a proxy could interpret the path differently from Carillon
 * (protocol/clients.md#paths).
 */
export function requirePlainPath(path: string): void {
  if (isPlainPath(path)) return;
  throw refuse('invalidParameter', detail('ambiguousPath'));
}

/**
 * Checks the path of every request before any file or route is found. People who opened a link of a
 * mail get a page. `find` returns the route of a path.
 */
export function requirePlainPaths(
  find: (method: string, path: string) => Route | undefined,
): Middleware {
  return async (ctx, next) => {
    const [path = ''] = ctx.originalUrl.split('?');
    try {
      requirePlainPath(path);
    } catch (error) {
      const reply = find(ctx.method, ctx.path)?.replies[200];
      const isPage =
        reply !== undefined && 'contentType' in reply && reply.contentType.startsWith('text/html');
      if (!isPage || !(error instanceof Refusal)) throw error;
      ctx.state.refusal = error;
      showPage(ctx, brokenLinkPage(languageOf(ctx)));
      return;
    }
    await next();
  };
}
