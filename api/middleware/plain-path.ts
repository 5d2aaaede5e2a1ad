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
 * A name in base64, whose alphabet contains a slash: at least two groups of four characters, or
 * 16 characters without padding. Apple gives ids of channels no length.
 */
const base64 = /^(?=(?:.{4}){2,}$|.{16})[A-Za-z0-9+/]+={0,2}$/;

/**
 * True if the last part of a path is base64 with an encoded slash, and the route accepts it. Without
 * a dot, no software can resolve such a part to another folder.
 */
function hasBase64Name(path: string, route: Route | undefined): boolean {
  const [last = '', ...rest] = path.split('/').reverse();
  return (
    route?.takesBase64Name === true &&
    isPlainPath(rest.join('/')) &&
    base64.test(last.replaceAll(/%(2f|2b|3d)/gi, (text) => decodeURIComponent(text)))
  );
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
    if (!isPlainPath(path) && hasBase64Name(path, find(ctx.method, ctx.path))) return next();
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
