// Replaces shared/process/module-url.ts in a bundle. The bundler fills in both placeholders.
import { existsSync } from 'node:fs';

const root = new URL('__ROOT__/', import.meta.url);
const bundle = new URL('__BUNDLE__', import.meta.url);

/**
 * Resolves a module that is started by its file name. Returns the bundled module, or the source if
 * the bundle does not contain it.
 */
export function moduleUrl(path, base) {
  const source = new URL(base.endsWith('.ts') ? path : path.replace(/\.ts$/, '.js'), base);
  const bundled = new URL(source.href.slice(root.href.length).replace(/\.ts$/, '.js'), bundle);
  return existsSync(bundled) ? bundled : source;
}
