/**
 * Resolves a module that is started by its file name: a worker thread, a child process, or a lazy
 * import. `path` is relative to `base` and ends with `.ts`. In the compiled package, where `base`
 * ends with `.js`, returns the compiled module, because Node.js does not strip types below
 * `node_modules`.
 */
export function moduleUrl(path: string, base: string): URL {
  return new URL(base.endsWith('.ts') ? path : path.replace(/\.ts$/, '.js'), base);
}
