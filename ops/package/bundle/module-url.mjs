// Takes the place of shared/process/module-url.ts in a bundle; the bundler replaces both names.
import { existsSync } from 'node:fs';

const root = new URL('__ROOT__/', import.meta.url);
const bundle = new URL('__BUNDLE__', import.meta.url);

/**
 * Resolves a module that is started by its file name to its bundled form, or to its source if the
 * bundle has none.
 */
export function moduleUrl(path, base) {
  const source = new URL(base.endsWith('.ts') ? path : path.replace(/\.ts$/, '.js'), base);
  const bundled = new URL(source.href.slice(root.href.length).replace(/\.ts$/, '.js'), bundle);
  return existsSync(bundled) ? bundled : source;
}
