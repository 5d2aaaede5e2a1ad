import type { Middleware } from 'koa';
import { refuse } from '../../shared/domain/errors/errors.ts';
import { isPlainPath } from '../../shared/domain/path.ts';

/**
 * Throws 1 for a path that a browser or a proxy could read in another way than this service does
 * (protocol/clients.md#paths).
 */
export function requirePlainPath(path: string): void {
  if (isPlainPath(path)) return;
  throw refuse(
    'invalidParameter',
    'A part of the path is "." or "..", or contains a backslash or an encoded slash.',
  );
}

/** Checks the path of every request, before any file or route is looked up. */
export const requirePlainPaths: Middleware = (ctx, next) => {
  const [path = ''] = ctx.originalUrl.split('?');
  requirePlainPath(path);
  return next();
};
